import { ErrorValue, finite, isError, toNumber } from "../values.js";

const wrongArguments = () => new ErrorValue("#VALUE!");

/** Yields the numbers of all arguments; text, booleans and empty cells are skipped. Yields the first error and ends. */
function* numbers(args, { values }) {
  for (const arg of args) {
    for (const value of values(arg)) {
      if (isError(value)) {
        yield value;
        return;
      }
      if (typeof value === "number") yield value;
    }
  }
}

function fold(args, context, start, step) {
  let result = start;
  for (const value of numbers(args, context)) {
    if (isError(value)) return value;
    result = step(result, value);
  }
  return finite(result ?? 0);
}

/** Implementations by name. `context.value` evaluates an argument; `context.values` yields the values in it. */
export const functions = new Map([
  ["SUM", (args, context) => fold(args, context, 0, (sum, value) => sum + value)],
  ["MAX", (args, context) => fold(args, context, null, (max, value) => (max === null ? value : Math.max(max, value)))],
  [
    "IF",
    (args, { value }) => {
      if (args.length < 2 || args.length > 3) return wrongArguments();
      const condition = toNumber(value(args[0]));
      if (isError(condition)) return condition;
      if (condition !== 0) return value(args[1]);
      return args.length === 3 ? value(args[2]) : false;
    },
  ],
]);
