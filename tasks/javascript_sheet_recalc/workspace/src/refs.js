/** Last row and last column of a sheet (`ZZ`). */
export const MAX_ROW = 9999;
export const MAX_COL = 702;

const NAME = /^(\$?)([A-Za-z]{1,2})(\$?)([0-9]{1,4})$/;

export function columnLetters(col) {
  let letters = "";
  for (let rest = col; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    letters = String.fromCharCode(65 + ((rest - 1) % 26)) + letters;
  }
  return letters;
}

export function columnNumber(letters) {
  let col = 0;
  for (const letter of letters.toUpperCase()) {
    col = col * 26 + letter.charCodeAt(0) - 64;
  }
  return col;
}

export function cellName(row, col) {
  return columnLetters(col) + row;
}

/** Parses `B7`, `$B7`, `b$7` …; returns `null` if the text doesn't name a cell of the sheet. */
export function parseReference(text) {
  const match = NAME.exec(text);
  if (!match) return null;
  const row = Number(match[4]);
  const col = columnNumber(match[2]);
  if (row < 1) return null;
  return { row, col, absRow: match[3] === "$", absCol: match[1] === "$" };
}

/** Writes a reference in upper case, with its `$` marks. */
export function referenceText({ row, col, absRow, absCol }) {
  return (absCol ? "$" : "") + columnLetters(col) + (absRow ? "$" : "") + row;
}

/** Numbers that sort cells row by row. */
export function cellKey(row, col) {
  return row * (MAX_COL + 1) + col;
}

export function keyRow(key) {
  return Math.floor(key / (MAX_COL + 1));
}

export function keyCol(key) {
  return key % (MAX_COL + 1);
}
