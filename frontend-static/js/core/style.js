/** Stylesheets that a view needs in addition to those of every view. */

/** @type {Map<string, Promise<void>>} */
const loading = new Map()

/**
 * Loads stylesheets by their path under `css/`, once each, such as `views/run.css`. Views wait for it before they show
 * anything, so that nothing is drawn without its style. A missing file isn't an error.
 *
 * @param {...string} paths
 * @returns {Promise<void>}
 */
export async function useStyles(...paths) {
  await Promise.all(paths.map((path) => {
    let wait = loading.get(path)
    if (!wait) loading.set(path, wait = load(path))
    return wait
  }))
}

/** @param {string} path */
function load(path) {
  return /** @type {Promise<void>} */ (new Promise((resolve) => {
    const link = document.createElement('link')
    link.rel = 'stylesheet'
    link.href = new URL(`../../css/${path}`, import.meta.url).href
    link.onload = link.onerror = () => resolve()
    document.head.append(link)
  }))
}
