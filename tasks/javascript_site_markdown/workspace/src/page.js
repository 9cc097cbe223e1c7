/** Splits the source of a page into front matter and body. */
export function parsePage(source) {
  const text = source.replace(/\r\n/g, "\n");
  if (!text.startsWith("---\n")) return { matter: {}, body: text };
  const end = text.indexOf("\n---\n", 3);
  if (end < 0) throw new Error("front matter isn't closed");
  const matter = {};
  for (const line of text.slice(4, end + 1).split("\n")) {
    if (line.trim() === "") continue;
    const match = /^([\w-]+):\s*(.*?)\s*$/.exec(line);
    if (match === null) throw new Error(`bad line in front matter: \`${line}\``);
    matter[match[1]] = parseValue(match[2]);
  }
  return { matter, body: text.slice(end + 5) };
}

function parseValue(text) {
  if (!text.startsWith("[") || !text.endsWith("]")) return text;
  return text
    .slice(1, -1)
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}
