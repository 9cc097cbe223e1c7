import { build } from "../src/build.js";

const [command, folder] = process.argv.slice(2);
if (command !== "build" || folder === undefined) {
  process.stderr.write("usage: node bin/quarry.js build FOLDER\n");
  process.exit(2);
}

let rendered = 0;
let failed = 0;
try {
  const { pages } = build(folder, {
    rendered({ url }) {
      rendered += 1;
      process.stdout.write(`rendered ${url}\n`);
    },
    failed(path, error) {
      failed += 1;
      process.stderr.write(`failed ${path}: ${error.message}\n`);
    },
  });
  process.stdout.write(`${pages} pages: ${rendered} rendered, ${failed} failed\n`);
} catch (error) {
  process.stderr.write(`quarry: ${error.message}\n`);
  process.exit(1);
}
process.exitCode = failed > 0 ? 1 : 0;
