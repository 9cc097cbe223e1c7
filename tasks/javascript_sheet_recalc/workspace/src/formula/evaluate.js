import { ErrorValue, finite, isError, toNumber, toText } from "../values.js";
import { functions } from "./functions.js";
import { area } from "./parser.js";

/** Number of formulas that were evaluated since the program started. */
export const counters = { evaluations: 0 };

/**
 * Evaluates a formula. `source.value(row, col)` is a cell's value; `source.filled(area)` yields the values of the cells in
 * a rectangle that aren't empty, row by row.
 */
export function evaluate(ast, source) {
  counters.evaluations++;
  const value = evaluateNode(ast, source);
  return value === null ? 0 : value;
}

export function evaluateNode(node, source) {
  switch (node.type) {
    case "error":
      return new ErrorValue(node.code);
    case "ref":
      return source.value(node.row, node.col);
    case "range":
      return new ErrorValue("#VALUE!");
    case "unary": {
      const operand = toNumber(evaluateNode(node.operand, source));
      return isError(operand) ? operand : -operand;
    }
    case "binary":
      return binary(node.operator, evaluateNode(node.left, source), evaluateNode(node.right, source));
    case "call": {
      const implementation = functions.get(node.name);
      if (!implementation) return new ErrorValue("#NAME?");
      return implementation(node.args, {
        value: (arg) => evaluateNode(arg, source),
        values: (arg) => argumentValues(arg, source),
      });
    }
    default:
      return node.value;
  }
}

/** The values of an argument: those of all filled cells of a reference or range, or the one value of an expression. */
function* argumentValues(arg, source) {
  if (arg.type === "ref" || arg.type === "range") yield* source.filled(area(arg));
  else yield evaluateNode(arg, source);
}

function binary(operator, left, right) {
  if (isError(left)) return left;
  if (isError(right)) return right;
  if (operator === "&") return toText(left) + toText(right);
  if (!["+", "-", "*", "/"].includes(operator)) return compare(operator, left, right);
  const [a, b] = [toNumber(left), toNumber(right)];
  if (isError(a)) return a;
  if (isError(b)) return b;
  if (operator === "+") return finite(a + b);
  if (operator === "-") return finite(a - b);
  if (operator === "*") return finite(a * b);
  return b === 0 ? new ErrorValue("#DIV/0!") : finite(a / b);
}

function compare(operator, left, right) {
  const blank = { number: 0, string: "", boolean: false };
  const a = left ?? blank[typeof right] ?? 0;
  const b = right ?? blank[typeof left] ?? 0;
  if (typeof a !== typeof b) return operator === "<>" ? true : operator === "=" ? false : new ErrorValue("#VALUE!");
  if (operator === "=") return a === b;
  if (operator === "<>") return a !== b;
  if (operator === "<") return a < b;
  if (operator === ">") return a > b;
  return operator === "<=" ? a <= b : a >= b;
}
