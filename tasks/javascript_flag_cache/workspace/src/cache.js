/** Results by flag and fingerprint of the context. */
export class ResultCache {
  #results = new Map();
  hits = 0;
  misses = 0;

  get(flagKey, fingerprint) {
    const result = this.#results.get(flagKey)?.get(fingerprint);
    if (result) this.hits++;
    else this.misses++;
    return result;
  }

  set(flagKey, fingerprint, result) {
    if (!this.#results.has(flagKey)) this.#results.set(flagKey, new Map());
    this.#results.get(flagKey).set(fingerprint, result);
  }

  drop(flagKey) {
    this.#results.delete(flagKey);
  }

  clear() {
    this.#results.clear();
  }
}

/** A text that is the same for contexts that agree on some attributes. */
export function fingerprint(context, attributes) {
  return [...attributes]
    .sort()
    .map((name) => `${name}=${context[name]}`)
    .join("|");
}
