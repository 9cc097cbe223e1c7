import { RequestError } from "./errors.js";

/** Keeps flags and segments, and tells listeners about each change. */
export class Store {
  #flags = new Map();
  #segments = new Map();
  #listeners = [];

  /** Calls `listener({ kind, key })` after each change; `kind` is `flag`, `segment` or `all`. */
  onChange(listener) {
    this.#listeners.push(listener);
  }

  flag(key) {
    return this.#flags.get(key);
  }

  segment(key) {
    return this.#segments.get(key);
  }

  flags() {
    return [...this.#flags.values()];
  }

  segments() {
    return [...this.#segments.values()];
  }

  putFlag(flag) {
    checkFlag(flag);
    const next = { rules: [], prerequisites: [], ...flag, version: (this.#flags.get(flag.key)?.version ?? 0) + 1 };
    refuseCycle(next.key, (key) => requiredFlags(key === next.key ? next : this.#flags.get(key)));
    this.#flags.set(next.key, next);
    this.#emit("flag", next.key);
    return next;
  }

  patchRule(flagKey, ruleId, set) {
    const flag = this.#flags.get(flagKey);
    const rule = flag?.rules.find(({ id }) => id === ruleId);
    if (!rule) throw new RequestError("not_found", `no rule \`${ruleId}\` in \`${flagKey}\``);
    const next = { ...rule };
    for (const [name, value] of Object.entries(set)) {
      if (name === "id") throw new RequestError("bad_request", "the id of a rule can't change");
      if (value) next[name] = value;
      else delete next[name];
    }
    return this.putFlag({ ...flag, rules: flag.rules.map((old) => (old === rule ? next : old)) });
  }

  deleteFlag(key) {
    const deleted = this.#flags.delete(key);
    if (deleted) this.#emit("flag", key);
    return deleted;
  }

  putSegment(segment) {
    checkKey(segment);
    const version = (this.#segments.get(segment.key)?.version ?? 0) + 1;
    const next = { included: [], excluded: [], rules: [], ...segment, version };
    refuseCycle(next.key, (key) => referredSegments(key === next.key ? next : this.#segments.get(key)));
    this.#segments.set(next.key, next);
    this.#emit("segment", next.key);
    return next;
  }

  deleteSegment(key) {
    const deleted = this.#segments.delete(key);
    if (deleted) this.#emit("segment", key);
    return deleted;
  }

  replaceAll(flags, segments) {
    flags.forEach(checkFlag);
    segments.forEach(checkKey);
    this.#flags = new Map(flags.map((flag) => [flag.key, { rules: [], prerequisites: [], version: 1, ...flag }]));
    this.#segments = new Map(
      segments.map((segment) => [segment.key, { included: [], excluded: [], rules: [], version: 1, ...segment }]),
    );
    this.#emit("all", null);
  }

  #emit(kind, key) {
    for (const listener of this.#listeners) listener({ kind, key });
  }
}

function checkKey(item) {
  if (typeof item?.key !== "string" || item.key === "") throw new RequestError("bad_request", "a key is missing");
}

function checkFlag(flag) {
  checkKey(flag);
  if (!Array.isArray(flag.variations) || flag.variations.length === 0) {
    throw new RequestError("bad_request", `\`${flag.key}\` has no variations`);
  }
  if (!flag.fallthrough) throw new RequestError("bad_request", `\`${flag.key}\` has no fallthrough`);
}

export function requiredFlags(flag) {
  return (flag?.prerequisites ?? []).map((prerequisite) => prerequisite.flag);
}

/** Keys of the segments in the clauses of a flag's or a segment's rules. */
export function referredSegments(item) {
  const clauses = (item?.rules ?? []).flatMap((rule) => rule.clauses ?? []);
  return clauses.filter(({ op }) => op === "segment").flatMap(({ values }) => values);
}

function refuseCycle(start, next) {
  const seen = new Set();
  const waiting = next(start);
  while (waiting.length > 0) {
    const key = waiting.pop();
    if (key === start) throw new RequestError("cycle", `\`${start}\` refers to itself`);
    if (seen.has(key)) continue;
    seen.add(key);
    waiting.push(...next(key));
  }
}
