//! zstd frames with an upper bound.

use std::cell::RefCell;
use std::io::{self, Read};

use zstd::bulk::{Compressor, Decompressor};

/// Level 3 is zstd's own default; higher levels cost more time than they save space on answers.
const LEVEL: i32 = 3;

/// Frames that say to be larger are unpacked piece by piece, in case they do not say the truth.
const AT_ONCE_BYTES_MAX: u64 = 16 * 1024 * 1024;

thread_local! {
    // A context is over a megabyte of tables: made for each small body it would cost more than the work.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// One zstd frame with the content's checksum in it.
pub fn compress(content: &[u8]) -> io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            none => {
                let mut compressor = Compressor::new(LEVEL)?;
                compressor.include_checksum(true)?;
                none.insert(compressor)
            }
        };
        compressor.compress(content)
    })
}

/// The content of a frame. More than `limit_bytes` is an error, however small the frame is.
pub fn decompress(frame: &[u8], limit_bytes: usize) -> io::Result<Vec<u8>> {
    let said = zstd::zstd_safe::get_frame_content_size(frame).ok().flatten();
    let limit = (limit_bytes as u64).min(AT_ONCE_BYTES_MAX);
    match said.filter(|bytes| *bytes <= limit).and_then(|bytes| usize::try_from(bytes).ok()) {
        Some(bytes) => decompress_at_once(frame, bytes),
        None => decompress_in_pieces(frame, limit_bytes),
    }
}

fn decompress_at_once(frame: &[u8], bytes: usize) -> io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new()?),
        };
        decompressor.decompress(frame, bytes)
    })
}

fn decompress_in_pieces(frame: &[u8], limit_bytes: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let decoder = zstd::stream::Decoder::with_buffer(frame)?;
    decoder.take(limit_bytes as u64 + 1).read_to_end(&mut content)?;
    if content.len() > limit_bytes {
        return Err(io::Error::other(format!("it unpacks to more than {limit_bytes} bytes")));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_survives() {
        for content in [&b""[..], b"x", &[7; 100_000]] {
            assert_eq!(decompress(&compress(content).unwrap(), content.len()).unwrap(), content);
        }
    }

    #[test]
    fn a_frame_that_unpacks_to_too_much_is_refused() {
        let bomb = compress(&vec![0; 1_000_000]).unwrap();
        assert!(bomb.len() < 1_000);
        assert!(decompress(&bomb, 999_999).is_err());
    }

    #[test]
    fn both_ways_of_unpacking_agree() {
        for content in [&b""[..], b"x", &[7; 100_000]] {
            let frame = compress(content).unwrap();
            assert_eq!(decompress_in_pieces(&frame, content.len()).unwrap(), content);
            assert_eq!(decompress_at_once(&frame, content.len()).unwrap(), content);
        }
    }

    #[test]
    fn damage_is_noticed() {
        let mut frame = compress(b"some answer of a model, long enough to be kept as it is").unwrap();
        let middle = frame.len() / 2;
        frame[middle] ^= 1;
        assert!(decompress(&frame, 1_000).is_err());
        assert!(decompress(b"not zstd", 1_000).is_err());
    }
}
