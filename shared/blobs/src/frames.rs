//! Compression to zstd frames, and decompression with a size limit.

use std::cell::RefCell;
use std::io::{self, Read};

use zstd::bulk::{Compressor, Decompressor};

/// Compression level: zstd's default. Higher levels cost more time than the space on answers is
/// worth.
const LEVEL: i32 = 3;

/// Frames that declare a larger size are decompressed in pieces, since the declaration may be
/// false.
const AT_ONCE_BYTES_MAX: u64 = 16 * 1024 * 1024;

thread_local! {
    // A context has over a megabyte of tables: creating one for each small body would cost more
    // than the compression.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Compresses `content` to one zstd frame with a checksum.
pub fn compress(content: &[u8]) -> io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|cached| {
        let compressor = match cached {
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

/// Decompresses a frame. Returns an error if the content exceeds `limit_bytes`, regardless of the
/// frame's size.
pub fn decompress(frame: &[u8], limit_bytes: usize) -> io::Result<Vec<u8>> {
    let declared = zstd::zstd_safe::get_frame_content_size(frame).ok().flatten();
    let limit = (limit_bytes as u64).min(AT_ONCE_BYTES_MAX);
    match declared.filter(|bytes| *bytes <= limit).and_then(|bytes| usize::try_from(bytes).ok()) {
        Some(bytes) => decompress_at_once(frame, bytes),
        None => decompress_in_pieces(frame, limit_bytes),
    }
}

fn decompress_at_once(frame: &[u8], bytes: usize) -> io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|cached| {
        let decompressor = match cached {
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
        return Err(io::Error::other(format!("it decompresses to more than {limit_bytes} bytes")));
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
    fn both_ways_of_decompressing_agree() {
        for content in [&b""[..], b"x", &[7; 100_000]] {
            let frame = compress(content).unwrap();
            assert_eq!(decompress_in_pieces(&frame, content.len()).unwrap(), content);
            assert_eq!(decompress_at_once(&frame, content.len()).unwrap(), content);
        }
    }

    #[test]
    fn damage_is_detected() {
        let mut frame = compress(b"some answer of a model, long enough to be kept as it is").unwrap();
        let middle = frame.len() / 2;
        frame[middle] ^= 1;
        assert!(decompress(&frame, 1_000).is_err());
        assert!(decompress(b"not zstd", 1_000).is_err());
    }
}
