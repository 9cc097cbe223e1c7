//! Files in stored reports. Reports are JSON: a character takes up to six times the bytes that it takes in the file. A report that
//! is too large could not be read again.

use bench_domain::{EpisodeLog, json_text_bytes};

/// Maximum size of one kept file in bytes, of its text in the report, and of the texts of all kept files together. One more file is
/// kept below that, so that a report has at most 32 MiB of them.
const FILE_BYTES_MAX: usize = 8 << 20;
const TEXT_BYTES_MAX: usize = 12 << 20;
pub(crate) const LOGS_BYTES_MAX: usize = 20 << 20;

/// Returns true if a file can be shown as text.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    !bytes.iter().take(8_192).any(|byte| *byte == 0)
}

/// Makes a log of a file, without its middle if it is too long.
pub(crate) fn log_of(name: &str, content: &[u8]) -> EpisodeLog {
    let mut half = FILE_BYTES_MAX / 2;
    loop {
        let (text, omitted) = without_middle(content, half);
        if json_text_bytes(&text) <= TEXT_BYTES_MAX {
            return EpisodeLog {
                name: name.to_owned(),
                text,
                bytes: content.len() as u64,
                omitted: omitted as u64,
            };
        }
        half /= 2;
    }
}

/// Returns at most `half` bytes each of the beginning and of the end as text, and the number of bytes that are left out.
fn without_middle(content: &[u8], half: usize) -> (String, usize) {
    if content.len() <= 2 * half {
        return (String::from_utf8_lossy(content).into_owned(), 0);
    }
    let (head, rest) = content.split_at(half);
    let (middle, tail) = rest.split_at(rest.len() - half);
    let text = format!(
        "{}\n[… {} bytes omitted …]\n{}",
        String::from_utf8_lossy(head),
        middle.len(),
        String::from_utf8_lossy(tail)
    );
    (text, middle.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_keep_their_beginning_and_end() {
        let short = log_of("a", b"text");
        assert_eq!((short.text.as_str(), short.bytes, short.omitted), ("text", 4, 0));
        let content = [vec![b'a'; FILE_BYTES_MAX], vec![b'z'; 100]].concat();
        let long = log_of("a", &content);
        assert_eq!((long.bytes, long.omitted), (content.len() as u64, 100));
        assert!(long.text.starts_with("aaa") && long.text.ends_with("zzz"));
        assert!(long.text.contains("[… 100 bytes omitted …]"));
    }

    #[test]
    fn files_of_any_bytes_have_an_end_in_the_report() {
        for byte in [1, 0x1b, b'"', b'\n', 0xff, 0] {
            let content = vec![byte; FILE_BYTES_MAX];
            let log = log_of("a", &content);
            let stored = serde_json::to_string(&log.text).unwrap().len();
            assert!(stored <= TEXT_BYTES_MAX + 2, "{byte}: {stored}");
            assert!(log.text.len() > 1 << 20, "{byte}: {}", log.text.len());
        }
    }
}
