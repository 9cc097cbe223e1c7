import { ResultCache, fingerprint } from "./cache.js";
import { Compiler } from "./compile.js";
import { RequestError } from "./errors.js";
import { matchesAll } from "./match.js";
import { served } from "./rollout.js";
import { requiredFlags } from "./store.js";

/** Evaluates flags of a store and caches the results. */
export class Evaluator {
  #store;
  #compiler;
  #cache = new ResultCache();

  constructor(store) {
    this.#store = store;
    this.#compiler = new Compiler(store);
    store.onChange((change) => this.#drop(change));
  }

  evaluate(key, context) {
    if (typeof context?.key !== "string") throw new RequestError("bad_request", "the context has no key");
    const flag = this.#store.flag(key);
    if (!flag) throw new RequestError("not_found", `no flag \`${key}\``);
    const print = fingerprint(context, this.#compiler.plan(flag).attributes);
    let result = this.#cache.get(key, print);
    if (!result) {
      const { variation, reason } = this.#compute(flag, context);
      result = { variation, value: flag.variations[variation], reason, version: flag.version };
      this.#cache.set(key, print, result);
    }
    return result;
  }

  stats() {
    return { hits: this.#cache.hits, misses: this.#cache.misses };
  }

  #compute(flag, context) {
    const off = (reason) => ({ variation: flag.off_variation, reason });
    if (!flag.on) return off("off");
    for (const { flag: key, variation } of flag.prerequisites) {
      const required = this.#store.flag(key);
      const isMet = required?.on && this.#compute(required, context).variation === variation;
      if (!isMet) return off(`prerequisite:${key}`);
    }
    const segment = (key) => this.#store.segment(key);
    for (const { id, clauses, serve } of this.#compiler.plan(flag).rules) {
      if (matchesAll(clauses, context, segment)) {
        return { variation: served(serve, flag.key, context), reason: `rule:${id}` };
      }
    }
    return { variation: served(flag.fallthrough, flag.key, context), reason: "fallthrough" };
  }

  #drop({ kind, key }) {
    if (kind === "all") {
      this.#cache.clear();
      return;
    }
    if (kind === "flag") this.#cache.drop(key);
    for (const flag of this.#store.flags()) {
      const isAffected =
        kind === "flag" ? requiredFlags(flag).includes(key) : this.#compiler.plan(flag).segments.has(key);
      if (isAffected) this.#cache.drop(flag.key);
    }
  }
}
