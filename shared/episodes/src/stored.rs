//! Files in stored reports. Reports are JSON: a character takes up to six times the bytes that it takes in the file. A report that
//! is too large could not be read again.

use bench_domain::{EpisodeLog, json_text_bytes};

/// Maximum size of one kept file in bytes, and of the texts of all kept files together in the report.
const FILE_BYTES_MAX: usize = 8 << 20;
pub(crate) const LOGS_BYTES_MAX: usize = 20 << 20;
/// Minimum room for a file that doesn't fit as a whole. With less, it is left out.
const PART_BYTES_MIN: usize = 4 << 10;

/// Returns true if a file can be shown as text.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    !bytes.iter().take(8_192).any(|byte| *byte == 0)
}

/// Makes a log of a file, without its middle if its text would take more than `room` bytes of the report. Returns `None` if too
/// little would be left of it.
pub(crate) fn log_of(name: &str, content: &[u8], room: usize) -> Option<EpisodeLog> {
    let mut half = FILE_BYTES_MAX.min(room).max(content.len().min(PART_BYTES_MIN)).div_ceil(2);
    loop {
        let (text, omitted) = without_middle(content, half);
        if json_text_bytes(&text) <= room {
            return Some(EpisodeLog {
                name: name.to_owned(),
                text,
                bytes: content.len() as u64,
                omitted: omitted as u64,
            });
        }
        if half < PART_BYTES_MIN / 2 {
            return None;
        }
        half /= 2;
    }
}

/// Makes a log of a file whose content decides a grade. Returns why it can't be kept as it is, in one phrase.
pub(crate) fn whole_log_of(name: &str, content: Vec<u8>, room: usize) -> Result<EpisodeLog, String> {
    let bytes = content.len() as u64;
    let text = String::from_utf8(content).map_err(|_| "it isn't UTF-8".to_owned())?;
    match json_text_bytes(&text) {
        stored if stored <= room => Ok(EpisodeLog { name: name.to_owned(), text, bytes, omitted: 0 }),
        stored => Err(format!("{stored} bytes as JSON text, more than the limit of {room}")),
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
        let short = log_of("a", b"text.", LOGS_BYTES_MAX).unwrap();
        assert_eq!((short.text.as_str(), short.bytes, short.omitted), ("text.", 5, 0));
        let content = [vec![b'a'; FILE_BYTES_MAX], vec![b'z'; 100]].concat();
        let long = log_of("a", &content, LOGS_BYTES_MAX).unwrap();
        assert_eq!((long.bytes, long.omitted), (content.len() as u64, 100));
        assert!(long.text.starts_with("aaa") && long.text.ends_with("zzz"));
        assert!(long.text.contains("[… 100 bytes omitted …]"));
    }

    #[test]
    fn files_that_decide_are_kept_as_they_are_or_not_at_all() {
        let content = vec![b'a'; 2 * FILE_BYTES_MAX];
        let log = whole_log_of("a", content.clone(), LOGS_BYTES_MAX).unwrap();
        assert_eq!((log.text.as_bytes(), log.omitted), (&content[..], 0));
        assert!(whole_log_of("a", vec![1; 100], 599).unwrap_err().contains("600 bytes as JSON"));
        assert!(whole_log_of("a", b"caf\xe9".to_vec(), 100).unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn files_of_any_bytes_have_an_end_in_the_report() {
        for room in [LOGS_BYTES_MAX / 2, 100_000] {
            for byte in [1, 0x1b, b'"', b'\n', 0xff, 0] {
                let content = vec![byte; FILE_BYTES_MAX];
                let log = log_of("a", &content, room).unwrap();
                let stored = serde_json::to_string(&log.text).unwrap().len();
                assert!(stored <= room + 2, "{byte}: {stored}");
                assert!(log.text.len() > room / 16, "{byte}: {}", log.text.len());
            }
        }
    }

    #[test]
    fn a_file_is_left_out_if_too_little_of_it_would_be_left() {
        assert!(log_of("a", b"text", 3).is_none() && log_of("a", b"text", 4).is_some());
        assert!(log_of("a", &[b'a'; 100_000], 1_000).is_none());
        assert!(log_of("a", b"", 0).is_some());
    }
}
