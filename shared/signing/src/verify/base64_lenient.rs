//! Base64 decoding as in the compatible verifier: characters outside the alphabet are skipped, the text ends at padding
//! that completes a group, and unused bits at the end are ignored.

/// Decodes `text`; `None` if a group is incomplete.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len() / 4 * 3);
    let mut bits = 0u32;
    // Characters of the current group, and padding after them.
    let mut group = 0u32;
    let mut padding = 0u32;
    for &byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                if group >= 2 {
                    padding += 1;
                    if group + padding >= 4 {
                        return Some(decoded);
                    }
                }
                continue;
            }
            _ => continue,
        };
        padding = 0;
        bits = bits << 6 | u32::from(value);
        group = (group + 1) % 4;
        // The first character yields no complete byte; each later one completes one.
        let complete = match group {
            2 => bits >> 4,
            3 => bits >> 2,
            0 => bits,
            _ => continue,
        };
        decoded.push((complete & 0xff) as u8);
    }
    (group == 0).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn lenient_where_the_compatible_verifier_is() {
        assert_eq!(decode(b"").unwrap(), b"");
        assert_eq!(decode(b"AQID").unwrap(), [1, 2, 3]);
        assert_eq!(decode(b" A\nQ!I*D \r\n").unwrap(), [1, 2, 3]);
        assert_eq!(decode(b"AQI=").unwrap(), [1, 2]);
        assert_eq!(decode(b"AQJ=").unwrap(), [1, 2], "unused bits are ignored");
        assert_eq!(decode(b"AQ==AQID").unwrap(), [1], "padding ends the text");
        assert_eq!(decode(b"AQ=ID").unwrap(), [1, 2, 3], "padding that completes nothing is skipped");
        assert_eq!(decode(b"=AQID").unwrap(), [1, 2, 3]);
        for incomplete in [&b"abc"[..], b"A", b"AQ", b"AQ=", b"AQIDA==="] {
            assert_eq!(decode(incomplete), None, "{incomplete:?}");
        }
    }
}
