/** Returns the number of characters (code points) of a text. */
export function lengthOf(text) {
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}

/** Returns the characters from `start` to before `end`. */
export function slice(text, start, end) {
  return Array.from(text).slice(start, end).join("");
}
