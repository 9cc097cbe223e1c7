const OPERATORS = {
  in: (value, values) => values.includes(value),
  prefix: (value, values) => typeof value === "string" && values.some((start) => value.startsWith(start)),
  gt: (value, values) => typeof value === "number" && value > values[0],
  lt: (value, values) => typeof value === "number" && value < values[0],
};

/** Returns true if all clauses match a context. `segment(key)` looks a segment up. */
export function matchesAll(clauses = [], context, segment) {
  return clauses.every((clause) => matches(clause, context, segment) !== Boolean(clause.negate));
}

function matches({ op, attribute, values }, context, segment) {
  if (op === "segment") return values.some((key) => isMember(segment(key), context, segment));
  const actual = Object.hasOwn(context, attribute) ? context[attribute] : null;
  if (actual === null) return false;
  return [actual].flat().some((value) => OPERATORS[op](value, values));
}

function isMember(item, context, segment) {
  if (!item) return false;
  if (item.included.includes(context.key)) return true;
  if (item.excluded.includes(context.key)) return false;
  return item.rules.some((rule) => matchesAll(rule.clauses, context, segment));
}
