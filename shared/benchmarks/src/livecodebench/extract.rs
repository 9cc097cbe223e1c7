//! Extracts the code from a reply.

/// Marker of a line that opens or closes a code block. It may be anywhere in the line.
const FENCE: &str = "```";

/// Returns the text between the last two lines that contain a fence; empty if there are fewer than two. Only `
/// ` ends a line, and a line with two fences counts once.
pub(super) fn code(reply: &str) -> &str {
    let mut lines = FencedLines { reply, end: reply.len() };
    let (Some(closing), Some(opening)) = (lines.next_back(), lines.next_back()) else { return "" };
    // There is at least the line end of the opening line in between. If there is nothing else, the block is empty.
    let start = opening.1 + 1;
    reply.get(start..closing.0.saturating_sub(1).max(start)).unwrap_or_default()
}

/// Iterates over lines with a fence, from the last one backward, so that nothing before the last two is scanned.
struct FencedLines<'a> {
    reply: &'a str,
    /// End of the text that is not scanned yet.
    end: usize,
}

impl FencedLines<'_> {
    /// Returns start and end of the next line, without its line end.
    fn next_back(&mut self) -> Option<(usize, usize)> {
        let left = self.reply.get(..self.end)?;
        let fence = left.rfind(FENCE)?;
        let start = left.get(..fence)?.rfind('\n').map_or(0, |line_end| line_end + 1);
        let end = left.get(fence..)?.find('\n').map_or(left.len(), |length| fence + length);
        self.end = start;
        Some((start, end))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reference implementation of the rule.
    fn by_lines(reply: &str) -> String {
        let lines: Vec<&str> = reply.split('\n').collect();
        let fenced: Vec<usize> =
            lines.iter().enumerate().filter(|(_, line)| line.contains(FENCE)).map(|(at, _)| at).collect();
        match fenced.as_slice() {
            [.., opening, closing] => lines[opening + 1..*closing].join("\n"),
            _ => String::new(),
        }
    }

    #[test]
    fn code_matches_the_vectors() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/livecodebench_text.json");
        let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let cases = all["extraction"].as_array().unwrap();
        assert_eq!(cases.len(), 20);
        for case in cases {
            assert_eq!(
                code(case["response"].as_str().unwrap()),
                case["official_chat"].as_str().unwrap(),
                "{case}"
            );
        }
    }

    #[test]
    fn code_is_found_in_edge_cases() {
        assert_eq!(code("```\n```"), "");
        assert_eq!(code("```\n\n```"), "");
        assert_eq!(code("```\n\n\n```"), "\n");
        assert_eq!(code("``````"), "");
        assert_eq!(code("```a```\nb\n"), "");
        assert_eq!(code("~~~\nx\n~~~"), "");
        assert_eq!(code("```py\r\nx\r\n```\r\n"), "x\r");
        assert_eq!(code("```\na\0b\n```"), "a\0b");
        let long = format!("```python\n{}```", "x = 1\n".repeat(1_000_000));
        assert_eq!(code(&long).len(), 6 * 1_000_000 - 1);
        let fences = "```\n".repeat(100_000);
        assert_eq!(code(&fences), "");
    }

    proptest! {
        #[test]
        fn code_matches_the_reference_implementation(reply in "([`\n a~\r\u{e9}]|```|\n```|```\n){0,24}") {
            prop_assert_eq!(code(&reply), by_lines(&reply));
        }
    }
}
