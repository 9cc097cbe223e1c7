const BUCKETS = 100000;

/** Returns the variation that `{ variation }` or `{ rollout, by }` serves a context. */
export function served(serve, flagKey, context) {
  if (!serve.rollout) return serve.variation;
  const by = serve.by ?? "key";
  const value = Object.hasOwn(context, by) ? context[by] : null;
  if (value === null) return serve.rollout[0].variation;
  let left = bucket(`${flagKey}.${value}`);
  for (const { variation, weight } of serve.rollout) {
    if (left < weight) return variation;
    left -= weight;
  }
  return serve.rollout.at(-1).variation;
}

/** FNV-1a over the UTF-8 bytes, with a final mix. */
export function bucket(text) {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d) >>> 0;
  hash ^= hash >>> 12;
  return (hash >>> 0) % BUCKETS;
}
