const { add } = require('../calc.js');
if (add(2, 3) !== 5) process.exitCode = 1;
process.exit();
