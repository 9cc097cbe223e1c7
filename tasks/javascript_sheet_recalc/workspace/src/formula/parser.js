import { RequestError } from "../errors.js";
import { tokenize } from "./lexer.js";

const LEVELS = [["=", "<>", "<", ">", "<=", ">="], ["&"], ["+", "-"], ["*", "/"]];

/**
 * Parses the text of a formula, with its leading `=`. Nodes:
 *
 * - `{ type: "number" | "string" | "boolean", value }`, `{ type: "error", code }`
 * - `{ type: "ref", row, col, absRow, absCol, start, end }`
 * - `{ type: "range", from, to }`, both `ref` nodes, in any order
 * - `{ type: "unary", operand }` (minus), `{ type: "binary", operator, left, right }`
 * - `{ type: "call", name, args }`
 */
export function parseFormula(text) {
  const tokens = tokenize(text);
  let at = 0;

  const peek = (symbol) => tokens[at].type === "symbol" && tokens[at].symbol === symbol;
  const take = (symbol) => (peek(symbol) ? tokens[at++] : null);
  const expect = (symbol) => take(symbol) ?? fail();
  const fail = () => {
    const { start } = tokens[at];
    throw new RequestError("syntax", `unexpected ${start < text.length ? `\`${text[start]}\`` : "end"} at offset ${start}`);
  };

  function binary(level) {
    if (level === LEVELS.length) return unary();
    let left = binary(level + 1);
    while (tokens[at].type === "symbol" && LEVELS[level].includes(tokens[at].symbol)) {
      const operator = tokens[at++].symbol;
      left = { type: "binary", operator, left, right: binary(level + 1) };
    }
    return left;
  }

  function unary() {
    if (take("-")) return { type: "unary", operand: unary() };
    return primary();
  }

  function primary() {
    const token = tokens[at];
    switch (token.type) {
      case "number":
      case "string":
      case "boolean":
        at++;
        return { type: token.type, value: token.value };
      case "error":
        at++;
        return { type: "error", code: token.code };
      case "ref": {
        at++;
        if (!take(":")) return { ...token };
        if (tokens[at].type !== "ref") fail();
        return { type: "range", from: { ...token }, to: { ...tokens[at++] } };
      }
      case "name":
        at++;
        return token.isCall ? call(token.name) : { type: "error", code: "#NAME?" };
      default: {
        expect("(");
        const inner = binary(0);
        expect(")");
        return inner;
      }
    }
  }

  function call(name) {
    expect("(");
    const args = [];
    if (!take(")")) {
      do args.push(binary(0));
      while (take(","));
      expect(")");
    }
    return { type: "call", name, args };
  }

  const ast = binary(0);
  if (tokens[at].type !== "end") fail();
  return ast;
}

/** Yields all `ref` and `range` nodes of a formula from left to right. The corners of a range aren't yielded. */
export function* references(node) {
  if (node.type === "ref" || node.type === "range") yield node;
  if (node.type === "unary") yield* references(node.operand);
  if (node.type === "binary") {
    yield* references(node.left);
    yield* references(node.right);
  }
  if (node.type === "call") for (const arg of node.args) yield* references(arg);
}

/** The rectangle that a `ref` or `range` node covers. */
export function area(node) {
  const { from, to } = node.type === "range" ? node : { from: node, to: node };
  return {
    top: Math.min(from.row, to.row),
    bottom: Math.max(from.row, to.row),
    left: Math.min(from.col, to.col),
    right: Math.max(from.col, to.col),
  };
}
