import { RequestError } from "../errors.js";
import { parseReference } from "../refs.js";
import { ERROR_CODES } from "../values.js";

const WORD = /[A-Za-z_$][A-Za-z0-9_.$]*/y;
const NUMBER = /([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?/iy;
const STRING = /"((?:[^"]|"")*)"/y;
const SYMBOL = /<=|>=|<>|[-+*/&=<>(),:]/y;
const SPACE = /\s+/y;

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/**
 * Splits a formula into tokens `{ type, start, end, … }`. `start` and `end` are offsets in the whole text of the cell,
 * including its leading `=`.
 */
export function tokenize(text) {
  const tokens = [];
  let at = 1;
  const push = (type, length, more = {}) => {
    tokens.push({ type, start: at, end: at + length, ...more });
    at += length;
  };
  while (at < text.length) {
    const space = matchAt(SPACE, text, at);
    if (space) {
      at += space[0].length;
      continue;
    }
    const code = ERROR_CODES.find((known) => text.startsWith(known, at));
    if (code) {
      push("error", code.length, { code });
      continue;
    }
    const string = matchAt(STRING, text, at);
    if (string) {
      push("string", string[0].length, { value: string[1].replaceAll('""', '"') });
      continue;
    }
    const word = matchAt(WORD, text, at);
    if (word) {
      pushWord(word[0]);
      continue;
    }
    const number = matchAt(NUMBER, text, at);
    if (number) {
      push("number", number[0].length, { value: Number(number[0]) });
      continue;
    }
    const symbol = matchAt(SYMBOL, text, at);
    if (!symbol) throw new RequestError("syntax", `unexpected \`${text[at]}\` at offset ${at}`);
    push("symbol", symbol[0].length, { symbol: symbol[0] });
  }
  tokens.push({ type: "end", start: at, end: at });
  return tokens;

  function pushWord(word) {
    // `LOG10(` is a function, `LOG10` would be a reference.
    const isCall = /^\s*\(/.test(text.slice(at + word.length));
    const reference = isCall ? null : parseReference(word);
    if (reference) push("ref", word.length, reference);
    else if (!isCall && /^(true|false)$/i.test(word)) push("boolean", word.length, { value: /^t/i.test(word) });
    else push("name", word.length, { name: word.toUpperCase(), isCall });
  }
}
