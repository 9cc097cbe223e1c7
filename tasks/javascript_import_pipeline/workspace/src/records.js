const SKU = /^[A-Z]{2}-\d{3,6}$/;
const PRICE = /^(\d{1,7})(?:\.(\d{2}))?$/;

/** Returns true for lines that are skipped. */
export function isBlank(bytes) {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09);
}

/** Parses a line. Returns `{ record }`, or `{ reason }` if the line is rejected. */
export function parseRecord(bytes) {
  const fields = bytes.toString("utf8").split("|");
  if (fields.length !== 3) return { reason: `${fields.length} fields instead of 3` };
  const [sku, title, price] = fields.map((field) => field.trim());
  if (!SKU.test(sku)) return { reason: "bad SKU" };
  if (title === "") return { reason: "no title" };
  const match = PRICE.exec(price);
  if (match === null) return { reason: "bad price" };
  return { record: { sku, title, cents: Number(match[1]) * 100 + Number(match[2] ?? 0) } };
}
