//! Variable-length integers.

/// Longest encoding of a 64-bit integer.
pub const MAX_BYTES: usize = 10;

/// Reason why no integer could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VarintError {
    /// The input ends within the integer.
    Truncated,
    /// The bytes are no legal encoding.
    Malformed,
}

/// Reads an unsigned integer from the start of `input`. Returns it with the number of its bytes.
pub fn read_u64(input: &[u8]) -> Result<(u64, usize), VarintError> {
    let mut value = 0;
    let mut size = 0;
    for shift in (0..u64::BITS - 1).step_by(7) {
        let Some(&byte) = input.get(size) else {
            return Err(VarintError::Truncated);
        };
        size += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok((value, size));
        }
    }
    Err(VarintError::Malformed)
}

/// Reads a zigzag-encoded integer from the start of `input`. Returns it with the number of its bytes.
pub fn read_i64(input: &[u8]) -> Result<(i64, usize), VarintError> {
    let (value, size) = read_u64(input)?;
    Ok(((value >> 1) as i64 ^ -((value & 1) as i64), size))
}

/// Appends an unsigned integer.
pub fn write_u64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a zigzag-encoded integer.
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    write_u64(out, ((value << 1) ^ (value >> 63)) as u64);
}
