import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";

import { fileReader, loadSite, pageData } from "./site.js";
import { Templates } from "./template.js";
import { Html } from "./values.js";

/**
 * Builds the site in a folder.
 *
 * Calls `report.rendered(page)` for each page that was written, and `report.failed(path, error)` for each that wasn't.
 */
export function build(folder, report) {
  const { site, pages, failures } = loadSite(folder);
  const templates = new Templates(fileReader(folder));
  for (const failure of failures) report.failed(failure.path, failure.error);
  const list = pages.map(pageData);
  for (const [index, page] of pages.entries()) {
    try {
      const html = templates.render(`layouts/${page.matter.layout ?? "page"}.html`, {
        site,
        page: list[index],
        pages: list,
        content: new Html(page.body),
        root: "../".repeat(page.path.split("/").length - 1),
      });
      const target = path.join(folder, "out", page.url);
      mkdirSync(path.dirname(target), { recursive: true });
      writeFileSync(target, html);
      report.rendered(page);
    } catch (error) {
      report.failed(page.path, error);
    }
  }
  return { pages: pages.length + failures.length };
}
