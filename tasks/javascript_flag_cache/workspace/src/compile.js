import { referredSegments } from "./store.js";

const DEFAULT_PRIORITY = 100;

/** Prepares flags for evaluation: their rules in order, and what the evaluation looks at. */
export class Compiler {
  #store;
  #plans = new Map();

  constructor(store) {
    this.#store = store;
  }

  /** Returns the flag's plan: `rules` in the order to try, `segments` and `attributes` that its rules refer to. */
  plan(flag) {
    const id = `${flag.key}@${flag.version}`;
    if (!this.#plans.has(id)) this.#plans.set(id, this.#compile(flag));
    return this.#plans.get(id);
  }

  #compile(flag) {
    const rules = flag.rules.sort((a, b) => priority(a) - priority(b));
    const segments = new Set();
    const attributes = new Set(["key"]);
    this.#addRules(rules, attributes);
    this.#addSegments(referredSegments(flag), segments, attributes);
    return { rules, segments, attributes };
  }

  #addSegments(keys, segments, attributes) {
    for (const key of keys) {
      if (segments.has(key)) continue;
      const segment = this.#store.segment(key);
      if (!segment) continue;
      segments.add(key);
      this.#addRules(segment.rules, attributes);
      this.#addSegments(referredSegments(segment), segments, attributes);
    }
  }

  #addRules(rules, attributes) {
    for (const { clauses = [], serve } of rules) {
      for (const { op, attribute } of clauses) if (op !== "segment") attributes.add(attribute);
      if (serve?.by) attributes.add(serve.by);
    }
  }
}

function priority(rule) {
  return rule.priority || DEFAULT_PRIORITY;
}
