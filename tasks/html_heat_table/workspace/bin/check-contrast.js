#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { PAIRS, contrast } from "../src/colors.js";
import { themes } from "../src/css.js";

const path = process.argv[2] ?? fileURLToPath(new URL("../styles.css", import.meta.url));
for (const [theme, colors] of Object.entries(themes(readFileSync(path, "utf8")))) {
  for (const [ink, background, least] of PAIRS) {
    const ratio = Math.round(contrast(colors[ink], colors[background]) * 100) / 100;
    const isEnough = ratio >= least;
    process.stdout.write(`${theme} ${ink} on ${background} ${ratio.toFixed(2)} ${isEnough ? "ok" : "low"}\n`);
    if (!isEnough) process.exitCode = 1;
  }
}
