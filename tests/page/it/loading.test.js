/** Files that are fetched before the browser finds them in imports: all that a view needs, and no others. */

import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { ROOT } from '../support/bench.js'
import { loadBytes } from '../support/measure.js'
import { pageTest } from '../support/page-test.js'

const PAGE = path.join(ROOT, 'frontend-static')
const PRELOAD = path.join(PAGE, 'js/preload.js')
/** Largest first visit with headers, in bytes. */
const FIRST_VISIT_MAX = 100_000
/** Views that are shown without the server, from an archive that the reader has opened before. */
const WITHOUT_SERVER = /^\/verify\/./

/** @param {string} file path in the folder of the page */
function read(file) {
  return fs.readFileSync(path.join(PAGE, file), 'utf8')
}

/**
 * Returns a module and all that it imports, but not what it loads on request.
 *
 * @param {string} file
 * @param {Set<string>} found
 */
function withImports(file, found = new Set()) {
  if (found.has(file)) return found
  found.add(file)
  for (const [, name] of read(file).matchAll(/^(?:import|export)\b[^;']*?from '(\.[^']+)'/gm)) withImports(path.join(path.dirname(file), name), found)
  return found
}

/** Returns the stylesheets that modules load. @param {Iterable<string>} modules */
function stylesOf(modules) {
  return [...modules].flatMap((file) => [...read(file).matchAll(/useStyles\(([^)]*)\)/g)])
    .flatMap(([, names]) => [...names.matchAll(/'([^']+)'/g)].map(([, name]) => `css/${name}`))
}

/** Returns the files of every view by route, without those that all views have. */
function filesOfViews() {
  const common = withImports('js/app.js')
  const views = [...read('js/app.js').matchAll(/\['([^']+)', '[^']+', \(\) => import\('\.\/([^']+)'\)\]/g)]
  assert.ok(views.length > 10)
  return Object.fromEntries(views.filter(([, route]) => !WITHOUT_SERVER.test(route)).map(([, route, file]) => {
    const own = [...withImports(`js/${file}`)].filter((name) => !common.has(name) && name !== 'js/preload.js')
    return [route, [...new Set([...stylesOf(own), ...own])]]
  }))
}

test('the modules of every view are named in index.html', () => {
  const named = [...read('index.html').matchAll(/<(?:link rel="modulepreload" href|script type="module" src)="\/page\/([^"]+)">/g)].map(([, file]) => file)
  assert.deepEqual(named.toSorted(), [...withImports('js/app.js')].toSorted())
})

test('the files of every view are named in preload.js', () => {
  const entries = Object.entries(filesOfViews()).map(([route, files]) => `  '${route}': [\n${files.map((file) => `    '${file}',\n`).join('')}  ],\n`)
  const now = fs.readFileSync(PRELOAD, 'utf8')
  const wanted = now.replace(/(const FILES = {\n)[^]*?(}\n)/, (_, start, end) => start + entries.join('') + end)
  if (process.env.BENCH_WRITE_PRELOADS) fs.writeFileSync(PRELOAD, wanted)
  else assert.equal(now, wanted, 'BENCH_WRITE_PRELOADS=1 node --test tests/page/it/loading.test.js writes preload.js')
})

pageTest('the first visit is small', async (world) => {
  const { files, data, requests } = await loadBytes(await world.window(), '/')
  assert.ok(files + data <= FIRST_VISIT_MAX, `${files} bytes of files and ${data} bytes of data in ${requests} requests`)
}, { skip: Boolean(process.env.BENCH_PAGE_FOLDER) && 'files of a folder aren\'t compressed' })
