const PROPERTY = /--([a-z0-9-]+)\s*:\s*([^;}]+)/g;

/** Returns the custom properties of each theme of a style sheet: `{ light, dark, "chosen-dark" }`, with resolved values. */
export function themes(css) {
  const text = css.replace(/\/\*[^]*?\*\//g, "");
  const media = /@media\s*\(prefers-color-scheme:\s*dark\)\s*\{\s*:root[^{]*\{([^}]*)\}/.exec(text);
  const chosen = /\[data-theme="dark"\]\s*\{([^}]*)\}/.exec(text);
  const root = /(?:^|[};\s]):root\s*\{([^}]*)\}/.exec(text);
  const light = resolved(properties(root?.[1] ?? ""));
  return {
    light,
    dark: { ...light, ...resolved(properties(media?.[1] ?? ""), light) },
    "chosen-dark": { ...light, ...resolved(properties(chosen?.[1] ?? ""), light) },
  };
}

function properties(block) {
  return Object.fromEntries([...block.matchAll(PROPERTY)].map(([, name, value]) => [name, value.trim()]));
}

function resolved(own, base = {}) {
  const all = { ...base, ...own };
  const resolve = (value) => {
    const name = /^var\(--([a-z0-9-]+)\)$/.exec(value)?.[1];
    return name ? resolve(all[name]) : value;
  };
  return Object.fromEntries(Object.entries(own).map(([name, value]) => [name, resolve(value)]));
}
