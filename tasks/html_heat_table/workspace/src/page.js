import { escapeHtml } from "./escape.js";
import { renderTable } from "./table.js";

/** Renders a report as an HTML page. */
export function renderPage(report, options) {
  const tables = report.tables.map((table) => renderTable(table, options));
  const template = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(report.title)}</title>
<link rel="stylesheet" href="styles.css">
</head>
<body>
<main>
<h1>${escapeHtml(report.title)}</h1>
%TABLES%
</main>
<script type="application/json" id="report">${escapeHtml(JSON.stringify(report))}</script>
</body>
</html>`;
  return template.replace("%TABLES%", tables.join("\n"));
}
