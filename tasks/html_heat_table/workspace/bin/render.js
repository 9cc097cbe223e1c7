#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { renderPage } from "../src/page.js";

const args = process.argv.slice(2);
const [path] = args.filter((arg) => !arg.startsWith("--"));
if (!path) {
  process.stderr.write("usage: render DATA.json [--hide-empty] [--sort-total]\n");
  process.exit(2);
}
const report = JSON.parse(readFileSync(path, "utf8"));
const options = { hideEmpty: args.includes("--hide-empty"), sortTotal: args.includes("--sort-total") };
process.stdout.write(renderPage(report, options) + "\n");
