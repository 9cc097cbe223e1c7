//! Batches of records and their encoding.

use crate::crc::crc32;
use crate::varint::{self, VarintError};

const CONTROL: u8 = 1;

/// Size of the checksum before a body.
pub const CRC_BYTES: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub offset: u64,
    pub time: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
}

/// A batch as read from a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub is_control: bool,
    /// At least one, in rising order of offsets.
    pub records: Vec<Record>,
}

impl Batch {
    pub fn first_offset(&self) -> u64 {
        self.records[0].offset
    }

    /// Returns the offset after the batch.
    pub fn next_offset(&self) -> u64 {
        self.first_offset() + self.records.len() as u64
    }

    /// Returns the highest time of the records.
    pub fn max_time(&self) -> Option<i64> {
        self.records.iter().map(|record| record.time).max()
    }
}

/// Error for a body that doesn't follow the format.
#[derive(Debug)]
pub struct BadBody;

impl From<VarintError> for BadBody {
    fn from(_: VarintError) -> Self {
        Self
    }
}

/// Reads the fields of a body or a record one after another.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn unsigned(&mut self) -> Result<u64, BadBody> {
        let (value, size) = varint::read_u64(self.rest)?;
        self.rest = &self.rest[size..];
        Ok(value)
    }

    fn signed(&mut self) -> Result<i64, BadBody> {
        let (value, size) = varint::read_i64(self.rest)?;
        self.rest = &self.rest[size..];
        Ok(value)
    }

    fn bytes(&mut self, count: u64) -> Result<&'a [u8], BadBody> {
        let count = usize::try_from(count).map_err(|_| BadBody)?;
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(BadBody)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn optional_bytes(&mut self) -> Result<Option<Vec<u8>>, BadBody> {
        match self.signed()? {
            -1 => Ok(None),
            count => {
                let count = u64::try_from(count).map_err(|_| BadBody)?;
                Ok(Some(self.bytes(count)?.to_vec()))
            }
        }
    }
}

/// Decodes a body of the segment with the base offset `base`.
pub fn decode(body: &[u8], base: u64) -> Result<Batch, BadBody> {
    let mut fields = Fields { rest: body };
    let first_offset = base.wrapping_add(fields.unsigned()?);
    let base_time = fields.signed()?;
    let flags = fields.bytes(1)?[0];
    let count = fields.unsigned()?;
    if count == 0 {
        return Err(BadBody);
    }
    let mut records: Vec<Record> = Vec::new();
    let mut last_delta = None;
    for _ in 0..count {
        let size = fields.unsigned()?;
        if size > fields.rest.len() as u64 {
            return Err(BadBody);
        }
        let delta = fields.unsigned()?;
        match last_delta {
            None if delta != 0 => return Err(BadBody),
            Some(last) if delta <= last => return Err(BadBody),
            _ => last_delta = Some(delta),
        }
        records.push(Record {
            offset: first_offset.wrapping_add(delta),
            time: base_time.wrapping_add(fields.signed()?),
            key: fields.optional_bytes()?,
            value: fields.optional_bytes()?,
        });
    }
    if !fields.rest.is_empty() {
        return Err(BadBody);
    }
    Ok(Batch { is_control: flags & CONTROL != 0, records })
}

/// Encodes a batch, with its length and checksum, for the segment with the base offset `base`.
pub fn encode(records: &[Record], base: u64) -> Vec<u8> {
    let first = &records[0];
    let mut body = Vec::new();
    varint::write_u64(&mut body, first.offset.wrapping_sub(base));
    varint::write_i64(&mut body, first.time);
    body.push(0);
    varint::write_u64(&mut body, records.len() as u64);
    for record in records {
        let mut own = Vec::new();
        varint::write_u64(&mut own, record.offset.wrapping_sub(first.offset));
        varint::write_i64(&mut own, record.time.wrapping_sub(first.time));
        for bytes in [&record.key, &record.value] {
            match bytes {
                None => varint::write_i64(&mut own, -1),
                Some(bytes) => {
                    varint::write_i64(&mut own, bytes.len() as i64);
                    own.extend_from_slice(bytes);
                }
            }
        }
        varint::write_u64(&mut body, own.len() as u64);
        body.extend_from_slice(&own);
    }
    let mut out = Vec::new();
    varint::write_u64(&mut out, (CRC_BYTES + body.len()) as u64);
    out.extend_from_slice(&crc32(&body).to_le_bytes());
    out.extend_from_slice(&body);
    out
}
