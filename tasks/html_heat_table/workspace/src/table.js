import { escapeHtml } from "./escape.js";
import { formatNumber, total } from "./format.js";
import { heatScale } from "./scale.js";

/** Returns the regions with the sites to show. */
function shownRegions(regions, { hideEmpty, sortTotal }) {
  return regions.map((region) => {
    let sites = region.sites;
    if (hideEmpty) sites = sites.filter(({ values }) => values.some((value) => value !== null));
    if (sortTotal) sites = [...sites].sort((a, b) => (total(b.values) ?? -Infinity) - (total(a.values) ?? -Infinity) || 0);
    return { ...region, shown: sites };
  });
}

/** Renders a table with its legend and note. */
export function renderTable(table, options) {
  const regions = shownRegions(table.regions, options);
  const scale = heatScale(regions.flatMap(({ shown }) => shown.flatMap(({ values }) => values)));
  const columns = table.groups.flatMap((group) => group.columns.map((name) => ({ group: group.name, name })));
  return `<section>
<div class="caption">${table.title} (${table.unit})</div>
<table>
${head(table, options)}
<tbody>
${regions.map((region) => body(region, columns, scale)).join("\n")}
</tbody>
</table>
${legend(table, scale)}
${table.note ? `<p class="note">${escapeHtml(table.note)}</p>` : ""}
</section>`;
}

function head({ groups }, { sortTotal }) {
  const names = groups.map(({ name, columns }) => `<th colspan="${columns.length}" scope="col" id="${name}">${escapeHtml(name)}</th>`);
  const columns = groups.flatMap((group) => group.columns);
  const sort = sortTotal ? "descending" : "none";
  return `<thead>
<tr><td rowspan="2">Region</td><td rowspan="2">Site</td>${names.join("")}<th rowspan="2" id="total" aria-sort="${sort}">Total</th></tr>
<tr>${columns.map((name) => `<th scope="col" id="${name}">${escapeHtml(name)}</th>`).join("")}</tr>
</thead>`;
}

function body(region, columns, scale) {
  return region.shown
    .map((site, index) => {
      const first = index === 0 ? `<th rowspan="${region.sites.length}" scope="row" id="${region.name}">${escapeHtml(region.name)}</th>` : "";
      const cells = site.values.map((value, column) => {
        const headers = `${region.name} ${site.name} ${columns[column].group} ${columns[column].name}`;
        return `<td class="heat-${scale.step(value)}" headers="${headers}">${formatNumber(value)}</td>`;
      });
      const sum = total(site.values);
      return `<tr data-site='${site.name}'>${first}<th scope="row" id="${site.name}">${escapeHtml(site.name)}</th>${cells.join("")}<td class="total" headers="${site.name} total">${formatNumber(sum)}</td></tr>`;
    })
    .join("\n");
}

function legend({ unit }, { begins, max, hasGaps }) {
  const items = begins.map((begin, index) => {
    const end = begins[index + 1] ?? max;
    return `<li><span class="swatch heat-${index}" aria-hidden="true"></span> ${formatNumber(begin)} to under ${formatNumber(end)} ${unit}</li>`;
  });
  if (hasGaps) items.push('<li><span class="swatch heat-none" aria-hidden="true"></span> no data</li>');
  return `<ul class="legend">${items.join("")}</ul>`;
}
