//! Extraction of a template from a file.

use bench_items::TemplatePart;

use super::python;

/// Fence of a Markdown code block: its character, length and indentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
}

/// Extracts a template from a file.
///
/// # Errors
/// Returns a sentence if the part isn't in the file or can't be evaluated.
pub(super) fn extract(path: &str, file: &[u8], part: TemplatePart) -> Result<String, String> {
    let text = std::str::from_utf8(file)
        .map_err(|error| format!("byte {} of it is not UTF-8", error.valid_up_to()))?;
    match part {
        TemplatePart::Whole => Ok(text.to_owned()),
        TemplatePart::PythonConstant(name) => {
            // Python does the same before it parses a file.
            let text =
                text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
            match is_markdown(path) {
                true => constant_of_markdown(&text, name),
                false => python::constant(&text, name),
            }
        }
        TemplatePart::FenceAfter(marker) => fence_after(&text.replace("\r\n", "\n"), marker),
    }
}

fn is_markdown(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default().to_lowercase();
    ["md", "markdown"].contains(&ending.as_str())
}

/// Finds a constant in a code block. The end of the block doesn't matter: the literal itself shows
/// where it ends, and prompts contain fences of their own.
fn constant_of_markdown(text: &str, name: &str) -> Result<String, String> {
    let mut indent = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some(fence) = fence(line) {
            indent = fence.indent;
        }
        let own = line.len() - line.trim_start_matches(' ').len();
        if own <= indent && line.get(own..).is_some_and(|line| python::is_assignment(line, name)) {
            let rest = remove_indent(text.get(at..).unwrap_or_default(), indent);
            if let Some(value) = python::assigned_value(&rest, name) {
                return value;
            }
        }
        at += line.len();
    }
    Err(format!("it has no constant `{name}`"))
}

/// Returns the lines of the first code block after a marker, without the line end before the
/// closing fence.
fn fence_after(text: &str, marker: &str) -> Result<String, String> {
    let after = text.find(marker).ok_or_else(|| format!("it does not hold `{marker}`"))? + marker.len();
    let rest = text.get(after..).unwrap_or_default();
    // A fence on the marker's own line doesn't count.
    let rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    let mut lines = rest.split('\n');
    let open = lines.by_ref().find_map(fence).ok_or_else(|| format!("no code block follows `{marker}`"))?;
    let mut block = Vec::new();
    for line in lines {
        let is_end = fence(line).is_some_and(|fence| fence.mark == open.mark && fence.length >= open.length)
            && line.trim().chars().all(|c| c == open.mark);
        if is_end {
            return Ok(block.join("\n"));
        }
        block.push(without_indent(line, open.indent));
    }
    Err(format!("the code block after `{marker}` is not closed"))
}

fn fence(line: &str) -> Option<Fence> {
    let bare = line.trim_start_matches(' ');
    let mark = bare.chars().next().filter(|c| ['`', '~'].contains(c))?;
    let length = bare.len() - bare.trim_start_matches(mark).len();
    let info = bare.get(length..).unwrap_or_default();
    (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Fence {
        mark,
        length,
        indent: line.len() - bare.len(),
    })
}

fn without_indent(line: &str, indent: usize) -> &str {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    line.get(blanks.min(indent)..).unwrap_or_default()
}

fn remove_indent(text: &str, indent: usize) -> String {
    text.split_inclusive('\n').map(|line| without_indent(line, indent)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = "\
# Card

Set `ASK` first, then ASK = what you like.

```python
ASK = \"\"\"
Look at this:
```
ASK = 'inner'
```
Done.
\"\"\".strip()
```

1. A list

   ~~~python
   OTHER = (\"one\\n\"
            \"two\")
   ~~~

## Judge prompt ##
text ```inline``` text
````text
First {a}
```
inner
```
Last
````
Next
```
second
```
## Open
```
never closed
";

    fn extract_from_card(part: TemplatePart) -> Result<String, String> {
        extract("README.md", CARD.as_bytes(), part)
    }

    #[test]
    fn constants_are_found_in_code_blocks() {
        let ask = extract_from_card(TemplatePart::PythonConstant("ASK"));
        assert_eq!(ask.as_deref(), Ok("Look at this:\n```\nASK = 'inner'\n```\nDone."));
        assert_eq!(extract_from_card(TemplatePart::PythonConstant("OTHER")).as_deref(), Ok("one\ntwo"));
        assert_eq!(
            extract_from_card(TemplatePart::PythonConstant("NONE")),
            Err("it has no constant `NONE`".into())
        );
        let windows = CARD.replace('\n', "\r\n");
        assert_eq!(extract("a.MD", windows.as_bytes(), TemplatePart::PythonConstant("ASK")), ask);
        let python =
            extract("a.py", b"\xef\xbb\xbfASK = '''a\r\nb\rc'''\r\n", TemplatePart::PythonConstant("ASK"));
        assert_eq!(python.as_deref(), Ok("a\nb\nc"));
    }

    #[test]
    fn blocks_end_at_their_own_fence() {
        let after = |marker| extract_from_card(TemplatePart::FenceAfter(marker));
        assert_eq!(after("## Judge prompt").as_deref(), Ok("First {a}\n```\ninner\n```\nLast"));
        assert_eq!(after("1. A list").as_deref(), Ok("OTHER = (\"one\\n\"\n         \"two\")"));
        assert_eq!(after("Next").as_deref(), Ok("second"));
        assert!(after("## Open").unwrap_err().contains("not closed"));
        assert!(after("never closed").unwrap_err().contains("no code block"));
        assert!(after("## Nowhere").unwrap_err().contains("does not hold"));
    }

    #[test]
    fn a_whole_file_is_kept_as_it_is() {
        let whole = |bytes: &[u8]| extract("a.txt", bytes, TemplatePart::Whole);
        assert_eq!(whole(b" a\r\n").as_deref(), Ok(" a\r\n"));
        assert_eq!(whole(b"a\xff"), Err("byte 1 of it is not UTF-8".into()));
    }
}
