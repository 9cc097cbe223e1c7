import { isTrue, lookup, toText } from "./values.js";

const TAG = /\{\{\s*([#/>]?)\s*(.*?)\s*\}\}/gs;
const NAME = /^[\w-]+$/;

/**
 * Parses a template into nodes. A node has `kind` (`literal`, `value`, `each`, `if` or `partial`) and `line`.
 *
 * Errors begin with `FILE:LINE`.
 */
export function parse(file, source) {
  const root = { kind: "root", body: [] };
  const open = [{ node: root, target: root.body }];
  let end = 0;
  let line = 1;

  const fail = (message) => {
    throw new Error(`${file}:${line}: ${message}`);
  };
  const add = (node) => open.at(-1).target.push({ line, ...node });
  const begin = (node) => {
    add(node);
    const added = open.at(-1).target.at(-1);
    open.push({ node: added, target: added.body });
  };
  const literal = (text) => {
    if (text !== "") add({ kind: "literal", text });
    line += text.split("\n").length - 1;
  };
  const path = (text) => {
    const names = text.split(".");
    if (!names.every((name) => NAME.test(name))) fail(`bad path \`${text}\``);
    return names;
  };

  for (const match of source.matchAll(TAG)) {
    literal(source.slice(end, match.index));
    end = match.index + match[0].length;
    const [whole, sign, text] = match;
    const [word, ...rest] = text.split(/\s+/);
    if (sign === ">") {
      if (!NAME.test(text)) fail(`bad name of a partial \`${text}\``);
      add({ kind: "partial", name: text });
    } else if (sign === "#" && (word === "each" || word === "if")) {
      begin({ kind: word, path: path(rest.join(" ")), body: [], otherwise: [] });
    } else if (sign === "/" && open.at(-1).node.kind === text) {
      open.pop();
    } else if (sign === "" && text === "else" && open.at(-1).node.kind === "if") {
      const top = open.at(-1);
      if (top.target === top.node.otherwise) fail("second `{{else}}`");
      top.target = top.node.otherwise;
    } else if (sign === "" && text !== "else") {
      add({ kind: "value", path: path(text) });
    } else {
      fail(`unexpected tag \`${whole}\``);
    }
    line += whole.split("\n").length - 1;
  }
  literal(source.slice(end));
  if (open.length > 1) fail(`\`{{#${open.at(-1).node.kind}}}\` isn't closed`);
  return root.body;
}

/** Templates of a site. `read(file)` returns the source of a file; `undefined` if there is none. */
export class Templates {
  #read;
  #parsed = new Map();

  constructor(read) {
    this.#read = read;
  }

  /** Renders a layout with data. */
  render(file, data) {
    const result = [];
    this.#write(file, this.#nodes(file), data, result, [file]);
    return result.join("");
  }

  #nodes(file) {
    if (!this.#parsed.has(file)) {
      const source = this.#read(file);
      if (source === undefined) throw new Error(`\`${file}\` doesn't exist`);
      this.#parsed.set(file, parse(file, source));
    }
    return this.#parsed.get(file);
  }

  #write(file, nodes, data, result, including) {
    for (const node of nodes) {
      try {
        if (node.kind === "literal") {
          result.push(node.text);
        } else if (node.kind === "value") {
          result.push(toText(lookup(data, node.path)));
        } else if (node.kind === "if") {
          const branch = isTrue(lookup(data, node.path)) ? node.body : node.otherwise;
          this.#write(file, branch, data, result, including);
        } else if (node.kind === "each") {
          const list = lookup(data, node.path) ?? [];
          if (!Array.isArray(list)) throw new Error(`\`${node.path.join(".")}\` is no list`);
          for (const element of list) this.#write(file, node.body, { ...data, this: element }, result, including);
        } else {
          const partial = `partials/${node.name}.html`;
          if (including.includes(partial)) throw new Error(`\`${partial}\` includes itself`);
          this.#write(partial, this.#nodes(partial), data, result, [...including, partial]);
        }
      } catch (error) {
        if (error.hasPlace || /^(layouts|partials)\/[^:]+:\d+: /.test(error.message)) throw error;
        throw Object.assign(new Error(`${file}:${node.line}: ${error.message}`), { hasPlace: true });
      }
    }
  }
}
