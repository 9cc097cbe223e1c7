//! Reader for the bytes of one member, limited to the size in its header.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Take};

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::layout::{Entry, Method};

/// Decompresses one member. At its end, checks size, checksum and the end of the compressed data. Damage is an error of
/// kind `InvalidData`.
pub(crate) struct MemberReader<'a, R> {
    source: BufReader<Take<&'a mut R>>,
    inflate: Option<Decompress>,
    declared_bytes: u64,
    declared_crc: u32,
    bytes: u64,
    crc: Crc,
    is_done: bool,
}

impl<'a, R: Read + Seek> MemberReader<'a, R> {
    pub(crate) fn open(archive: &'a mut R, entry: &Entry) -> io::Result<Self> {
        archive.seek(SeekFrom::Start(entry.data_offset))?;
        Ok(Self {
            source: BufReader::with_capacity(64 * 1024, archive.take(entry.compressed_bytes)),
            inflate: match entry.method {
                Method::Stored => None,
                Method::Deflated => Some(Decompress::new(false)),
            },
            declared_bytes: entry.bytes,
            declared_crc: entry.crc,
            bytes: 0,
            crc: Crc::new(),
            is_done: false,
        })
    }
}

impl<R: Read> MemberReader<'_, R> {
    fn account(&mut self, output: &[u8]) -> io::Result<()> {
        self.bytes += output.len() as u64;
        self.crc.update(output);
        if self.bytes > self.declared_bytes {
            return Err(damaged("it is larger than declared"));
        }
        Ok(())
    }

    fn check_end(&mut self) -> io::Result<()> {
        if self.bytes != self.declared_bytes {
            return Err(damaged("it is smaller than declared"));
        }
        if self.crc.sum() != self.declared_crc {
            return Err(damaged("its checksum is wrong"));
        }
        if !self.source.fill_buf()?.is_empty() {
            return Err(damaged("bytes follow its compressed data"));
        }
        self.is_done = true;
        Ok(())
    }
}

impl<R: Read> Read for MemberReader<'_, R> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        if self.is_done || output.is_empty() {
            return Ok(0);
        }
        let Some(mut inflate) = self.inflate.take() else {
            let count = self.source.read(output)?;
            self.account(output.get(..count).unwrap_or_default())?;
            if count == 0 {
                self.check_end()?;
            }
            return Ok(count);
        };
        let result = self.inflate_some(&mut inflate, output);
        self.inflate = Some(inflate);
        result
    }
}

impl<R: Read> MemberReader<'_, R> {
    fn inflate_some(&mut self, inflate: &mut Decompress, output: &mut [u8]) -> io::Result<usize> {
        loop {
            let input = self.source.fill_buf()?;
            let is_last = input.is_empty();
            let (consumed, produced) = (inflate.total_in(), inflate.total_out());
            let status = inflate
                .decompress(input, output, FlushDecompress::None)
                .map_err(|_| damaged("its compressed data is damaged"))?;
            let consumed = usize::try_from(inflate.total_in() - consumed).unwrap_or(0);
            let produced = usize::try_from(inflate.total_out() - produced).unwrap_or(0);
            self.source.consume(consumed);
            self.account(output.get(..produced).unwrap_or_default())?;
            if matches!(status, Status::StreamEnd) {
                self.check_end()?;
                return Ok(produced);
            }
            if produced > 0 {
                return Ok(produced);
            }
            if is_last || consumed == 0 {
                return Err(damaged("its compressed data ends early"));
            }
        }
    }
}

fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
