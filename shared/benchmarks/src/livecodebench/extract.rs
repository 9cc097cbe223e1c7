//! The code in a reply.

/// What opens and closes a block of code, wherever it stands in a line.
const FENCE: &str = "```";

/// What lies between the last two lines that hold a fence; empty where there are fewer than two. Lines end at `\n`
/// alone, and one line with two fences counts once.
pub(super) fn code(reply: &str) -> &str {
    let mut lines = FencedLines { reply, end: reply.len() };
    let (Some(closing), Some(opening)) = (lines.next_back(), lines.next_back()) else { return "" };
    // Between the two lines stands at least the line end of the first; with nothing else, the block is empty.
    let start = opening.1 + 1;
    reply.get(start..closing.0.saturating_sub(1).max(start)).unwrap_or_default()
}

/// Lines with a fence, from the last one back: nothing before the last two is looked at.
struct FencedLines<'a> {
    reply: &'a str,
    /// Where what has not been looked at ends.
    end: usize,
}

impl FencedLines<'_> {
    /// Where the line starts and where it ends, without its line end.
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

    /// The rule word by word.
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
    fn code_is_what_the_vectors_say() {
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
    fn nasty_replies_have_their_code() {
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
        fn it_is_the_rule(reply in "([`\n a~\r\u{e9}]|```|\n```|```\n){0,24}") {
            prop_assert_eq!(code(&reply), by_lines(&reply));
        }
    }
}
