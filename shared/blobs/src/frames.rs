//! zstd frames with an upper bound.

use std::io::{self, Read};

/// Level 3 is zstd's own default; higher levels cost more time than they save space on answers.
const LEVEL: i32 = 3;

/// One zstd frame with the content's checksum in it.
pub fn compress(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::stream::Encoder::new(Vec::with_capacity(content.len() / 3 + 64), LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(content.len() as u64))?;
    io::Write::write_all(&mut encoder, content)?;
    encoder.finish()
}

/// The content of a frame. More than `limit_bytes` is an error, however small the frame is.
pub fn decompress(frame: &[u8], limit_bytes: usize) -> io::Result<Vec<u8>> {
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
    fn damage_is_noticed() {
        let mut frame = compress(b"some answer of a model, long enough to be kept as it is").unwrap();
        let middle = frame.len() / 2;
        frame[middle] ^= 1;
        assert!(decompress(&frame, 1_000).is_err());
        assert!(decompress(b"not zstd", 1_000).is_err());
    }
}
