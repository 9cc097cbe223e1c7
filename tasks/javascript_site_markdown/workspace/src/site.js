import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";

import { parsePage } from "./page.js";

/** Reads the site in a folder: its configuration and its pages. */
export function loadSite(folder) {
  const site = JSON.parse(readFileSync(path.join(folder, "site.json"), "utf8"));
  if (site === null || typeof site !== "object" || Array.isArray(site)) throw new Error("`site.json` must have an object");
  const pages = [];
  const failures = [];
  for (const file of pageFiles(folder)) {
    const pagePath = file.replace(/\.[^./]+$/, "");
    try {
      if (pages.some((page) => page.path === pagePath)) throw new Error(`there are two pages with this path`);
      const source = readFileSync(path.join(folder, "pages", file), "utf8");
      pages.push({ path: pagePath, url: `${pagePath}.html`, file, source, ...parsePage(source) });
    } catch (error) {
      failures.push({ path: pagePath, error });
    }
  }
  pages.sort((a, b) => (a.path < b.path ? -1 : 1));
  return { site, pages, failures };
}

/** Returns a function that reads files of a site; it returns `undefined` for those that don't exist. */
export function fileReader(folder) {
  return (name) => {
    const file = path.join(folder, name);
    return existsSync(file) ? readFileSync(file, "utf8") : undefined;
  };
}

/** Data that templates see of a page. */
export function pageData({ path: pagePath, url, matter }) {
  return { title: pagePath, ...matter, path: pagePath, url };
}

function pageFiles(folder) {
  const found = [];
  const walk = (below) => {
    for (const entry of readdirSync(path.join(folder, "pages", below), { withFileTypes: true })) {
      const name = below === "" ? entry.name : `${below}/${entry.name}`;
      if (entry.isDirectory()) walk(name);
      else if (/\.html$/.test(entry.name)) found.push(name);
    }
  };
  walk("");
  return found.sort((a, b) => (a < b ? -1 : 1));
}
