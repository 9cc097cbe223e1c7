const assert = require('assert');
const { add } = require('../calc.js');
assert.strictEqual(add(2, 3), 5);
console.log('ok');
process.exit(0);
