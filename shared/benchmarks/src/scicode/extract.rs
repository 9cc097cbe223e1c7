//! Extracts the code of a step from a reply, as the official program does.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

const FENCE: &str = "```";
const PYTHON_FENCE: &str = "```python";

/// Import lines, with the blank lines before them. Whitespace is that of Python's `\s`, which includes four more
/// control characters than that of `regex`. It matches across lines, so words on two lines can count as one import.
static IMPORTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r"(?m)^S*(import .*|from .*S+importS+.*)".replace('S', r"[\s\x1c-\x1f]");
    Regex::new(&pattern).ok()
});

/// Returns the code of a reply: the first Python block, else the first block, else the whole reply; without imports.
pub(super) fn code(reply: &str) -> Cow<'_, str> {
    let block = match (reply.split_once(PYTHON_FENCE), reply.split_once(FENCE)) {
        (Some((_, after)), _) | (None, Some((_, after))) => {
            after.split_once(FENCE).map_or(after, |(block, _)| block)
        }
        (None, None) => reply,
    };
    match IMPORTS.as_ref() {
        Some(imports) => imports.replace_all(block, ""),
        None => Cow::Borrowed(block),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_python_block_wins() {
        for (reply, expected) in [
            ("a\n```python\nx = 1\n```\nb\n```python\ny\n```", "\nx = 1\n"),
            ("```\none\n```\n```python\ntwo\n```", "\ntwo\n"),
            ("```\none\n```\n```py\ntwo\n```", "\none\n"),
            ("```python3\nx\n```", "3\nx\n"),
            ("```python\nx = 1", "\nx = 1"),
            ("x = 1\n", "x = 1\n"),
            ("a ``` b", " b"),
            ("", ""),
            ("```python```", ""),
        ] {
            assert_eq!(code(reply), expected, "{reply:?}");
        }
    }

    #[test]
    fn imports_are_removed_with_the_blank_lines_before_them() {
        for (block, expected) in [
            ("import numpy\nx", "\nx"),
            ("\n\n  import numpy as np\nfrom a.b import c\nx", "\n\nx"),
            ("x\n\n\n    from a import b\ny", "x\n\ny"),
            ("important = 1", "important = 1"),
            ("import\tnumpy", "import\tnumpy"),
            ("x = 1; import y", "x = 1; import y"),
            ("# import y", "# import y"),
            ("from here\nimport y\nz", "\nz"),
            ("from here we go\nto import it\nz", "from here we go\nto import it\nz"),
            ("from a\n\nimport\n  b c\nz", "\nz"),
            ("yield\n\u{1c}import os\nz", "yield\n\nz"),
            ("def f():\n    import os\n    return 1", "def f():\n\n    return 1"),
            ("import a\r\nx", "\nx"),
            ("import", "import"),
            ("a\nfrom b to c", "a\nfrom b to c"),
        ] {
            assert_eq!(code(block), expected, "{block:?}");
        }
    }
}
