/** Requests of the page, compared with the API's own description. */

/**
 * Returns the requests whose method and path the API does not describe.
 *
 * @param {import('./bench.js').Bench} bench
 * @param {string[]} requests such as `GET /api/runs`
 * @returns {Promise<string[]>}
 */
export async function undescribed(bench, requests) {
  const { paths } = await bench.api('GET', '/openapi.json')
  const known = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ method: method.toUpperCase(), form: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{[^}]+\}/g, '[^/]+')}$`) })))
  return [...new Set(requests)].filter((request) => {
    const [method, path] = request.split(' ')
    return !known.some((route) => route.method === method && route.form.test(path))
  })
}
