import { pageTest } from '../support/page-test.js'
pageTest('probe', async ({ bench, open }) => {})
