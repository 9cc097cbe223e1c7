const MODULUS = 65521;

/** Continues an Adler-32 checksum, which begins with 1. */
export function adler32(bytes, start = 1) {
  let low = start & 0xffff;
  let high = start >>> 16;
  for (const byte of bytes) {
    low = (low + byte) % MODULUS;
    high = (high + low) % MODULUS;
  }
  return ((high << 16) | low) >>> 0;
}
