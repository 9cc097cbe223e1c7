//! Evaluation of text constants in Python files.
//!
//! Supports the syntax that prompts use: string literals with any quotes, raw or not, f-strings without placeholders,
//! all escapes except `\N{…}`, implicit concatenation and `+`, parentheses, and the methods `strip`, `lstrip` and
//! `rstrip`. Anything else is an error that names the unsupported syntax, never a guess.

use std::sync::LazyLock;

use regex::Regex;

/// Maximum depth of parentheses in a constant's expression.
const DEPTH_MAX: usize = 32;

/// A literal: its prefix, and its content in one of four kinds of quotes.
static LITERAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?xs) ^ ((?i: rb|br|rf|fr|r|u|b|f )?) (?:
            """ ((?:[^\\]|\\.)*?) """ | ''' ((?:[^\\]|\\.)*?) '''
            | " ((?:[^"\\\n]|\\.)*) " | ' ((?:[^'\\\n]|\\.)*) '
        )"#,
    )
    .ok()
});
/// Start of a literal.
static LITERAL_START: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"^(?i:rb|br|rf|fr|r|u|b|f)?(?:"""|'''|"|')"#).ok());
/// Rest of the line after the opening quote of an unclosed single-line literal.
static LINE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?s)^(?:[^\\\n]|\\.)*").ok());

/// Evaluates the module-level constant of that name, or the class member `Class.NAME`. The last assignment counts, as
/// after an import.
///
/// # Errors
/// Returns a sentence if the constant doesn't exist or its expression isn't supported.
pub(super) fn constant(source: &str, name: &str) -> Result<String, String> {
    let (class, member) = name.split_once('.').map_or((None, name), |(class, name)| (Some(class), name));
    let mut reader = Reader { source, position: 0 };
    let mut found = None;
    // `in_class`: the statements belong to the class. `body_indent`: indentation of its body; statements with a deeper
    // one belong to functions.
    let (mut in_class, mut body_indent) = (false, None);
    while let Some(line) = reader.next_line() {
        let statement = line.trim_start_matches([' ', '\t']);
        let indent = line.len() - statement.len();
        let is_own = match class {
            None => indent == 0,
            Some(class) if !line.starts_with(BLANKS) => {
                (in_class, body_indent) = (is_class(statement, class), None);
                false
            }
            Some(_) => in_class && *body_indent.get_or_insert(indent) == indent,
        };
        if let Some(expression) = assignment(statement, member).filter(|_| is_own) {
            found = Some(expression_at(source, source.len() - expression.len()));
        }
        reader.skip_line();
    }
    found.unwrap_or_else(|| Err(format!("it has no constant `{name}`")))
}

/// Returns true if a statement starts the class of that name.
fn is_class(statement: &str, name: &str) -> bool {
    let rest = statement.strip_prefix("class").filter(|rest| rest.starts_with([' ', '\t']));
    let rest = rest.and_then(|rest| rest.trim_start_matches([' ', '\t']).strip_prefix(name));
    rest.is_some_and(|rest| !rest.starts_with(is_name))
}

/// Returns true if a line starts an assignment to the constant.
pub(super) fn is_assignment(line: &str, name: &str) -> bool {
    assignment(line, name).is_some()
}

/// Evaluates the expression after `NAME =` at the start of this text.
pub(super) fn assigned_value(text: &str, name: &str) -> Option<Result<String, String>> {
    let expression = assignment(text, name)?;
    Some(expression_at(text, text.len() - expression.len()))
}

/// Returns the text after `NAME =` or `NAME: type =`.
fn assignment<'a>(statement: &'a str, name: &str) -> Option<&'a str> {
    let rest = statement.strip_prefix(name)?;
    if rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let rest = rest.trim_start_matches([' ', '\t']);
    let rest = match rest.strip_prefix(':') {
        Some(annotated) => {
            let end = annotated.find(['=', '\n', '"', '\'', '#'])?;
            annotated.get(end..)?
        }
        None => rest,
    };
    let expression = rest.strip_prefix('=')?;
    (!expression.starts_with('=')).then_some(expression)
}

fn expression_at(source: &str, start: usize) -> Result<String, String> {
    let mut reader = Reader { source, position: start };
    let value = reader.sum(0)?;
    reader.blanks(false);
    match reader.peek() {
        None | Some('\n' | ';' | '#') => Ok(value),
        Some(other) => Err(format!("its value continues with `{other}`, which is not evaluated here")),
    }
}

struct Reader<'a> {
    source: &'a str,
    position: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.position..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.position += next.len_utf8();
        Some(next)
    }

    fn take_if(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        self.position += if is_next { text.len() } else { 0 };
        is_next
    }

    /// Returns the rest of the source from the next logical line that contains a statement.
    fn next_line(&mut self) -> Option<&'a str> {
        loop {
            let rest = self.rest();
            let text = rest.trim_start_matches(BLANKS);
            match text.chars().next()? {
                '\n' => self.position += rest.len() - text.len() + 1,
                '#' => self.skip_line(),
                _ => return Some(rest),
            }
        }
    }

    /// Skips to the end of the logical line. Literals and brackets may contain line ends.
    fn skip_line(&mut self) {
        let mut depth = 0_usize;
        while let Some(next) = self.peek() {
            match next {
                '\n' if depth == 0 => return,
                '#' => self.comment(),
                '\\' => {
                    self.take();
                    self.take();
                }
                '(' | '[' | '{' => {
                    depth += 1;
                    self.position += 1;
                }
                ')' | ']' | '}' => {
                    depth = depth.saturating_sub(1);
                    self.position += 1;
                }
                _ if self.literal_starts() => {
                    self.literal().ok();
                }
                _ if is_name(next) => {
                    let name = self.rest().find(|c: char| !is_name(c)).unwrap_or(self.rest().len());
                    self.position += name;
                }
                _ => {
                    self.take();
                }
            }
        }
    }

    fn comment(&mut self) {
        let rest = self.rest();
        self.position += rest.find('\n').unwrap_or(rest.len());
    }

    /// Skips spaces, line continuations and, within parentheses, line ends and comments.
    fn blanks(&mut self, in_brackets: bool) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\x0c') => self.position += 1,
                Some('\\') if self.rest().starts_with("\\\n") => self.position += 2,
                Some('\n') if in_brackets => self.position += 1,
                Some('#') if in_brackets => self.comment(),
                _ => return,
            }
        }
    }

    /// Parses terms joined by `+`.
    fn sum(&mut self, depth: usize) -> Result<String, String> {
        let mut value = self.term(depth)?;
        loop {
            self.blanks(depth > 0);
            if !self.take_if("+") {
                return Ok(value);
            }
            value.push_str(&self.term(depth)?);
        }
    }

    /// Parses adjacent literals or a parenthesized expression, followed by method calls.
    fn term(&mut self, depth: usize) -> Result<String, String> {
        self.blanks(depth > 0);
        let mut value = if self.take_if("(") {
            if depth >= DEPTH_MAX {
                return Err(format!("its parentheses are more than {DEPTH_MAX} deep"));
            }
            let inner = self.sum(depth + 1)?;
            self.blanks(true);
            if !self.take_if(")") {
                return Err("a parenthesis of its value holds more than texts".to_owned());
            }
            inner
        } else {
            let mut joined = self.text()?;
            loop {
                self.blanks(depth > 0);
                if !self.literal_starts() {
                    break joined;
                }
                joined.push_str(&self.text()?);
            }
        };
        loop {
            self.blanks(depth > 0);
            if !self.take_if(".") {
                return Ok(value);
            }
            value = self.method(&value)?;
        }
    }

    fn method(&mut self, value: &str) -> Result<String, String> {
        self.blanks(false);
        let length = self.rest().find(|c: char| !is_name(c)).unwrap_or(self.rest().len());
        let name = self.rest().get(..length).unwrap_or_default();
        self.position += length;
        let not_known = || format!("its value uses `.{name}`, which is not evaluated here");
        self.blanks(false);
        if !self.take_if("(") {
            return Err(not_known());
        }
        self.blanks(true);
        let set = if self.literal_starts() { Some(self.sum(1)?) } else { None };
        self.blanks(true);
        if !self.take_if(")") {
            return Err(not_known());
        }
        let stripped = |c: char| set.as_ref().map_or_else(|| is_space(c), |set| set.contains(c));
        let value = match name {
            "strip" => value.trim_matches(stripped),
            "lstrip" => value.trim_start_matches(stripped),
            "rstrip" => value.trim_end_matches(stripped),
            _ => return Err(not_known()),
        };
        Ok(value.to_owned())
    }

    fn text(&mut self) -> Result<String, String> {
        if !self.literal_starts() {
            return Err("its value is not a string".to_owned());
        }
        let (prefix, body) = self.literal()?;
        let is = |kind: char| prefix.contains([kind, kind.to_ascii_uppercase()]);
        // An f-string without placeholders is a plain literal.
        if is('b') || (is('f') && body.contains(['{', '}'])) {
            return Err("its value is a formatted or a byte literal".to_owned());
        }
        if is('r') { Ok(body.to_owned()) } else { unescape(body) }
    }

    fn literal_starts(&self) -> bool {
        LITERAL_START.as_ref().is_some_and(|start| start.is_match(self.rest()))
    }

    /// Parses the literal that starts here and returns its prefix and content. An unclosed literal is skipped to the
    /// end of its line, or to the end of the file if it has triple quotes.
    fn literal(&mut self) -> Result<(&'a str, &'a str), String> {
        let rest = self.rest();
        let start =
            LITERAL_START.as_ref().and_then(|start| start.find(rest)).map_or("", |start| start.as_str());
        let is_long = start.ends_with("\"\"\"") || start.ends_with("'''");
        let found = LITERAL.as_ref().and_then(|literal| literal.captures(rest));
        // The first two quotes of an unclosed triple-quoted literal would match as an empty literal.
        let found = found.filter(|found| !is_long || found.get(2).or(found.get(3)).is_some());
        let found = found.and_then(|found| {
            let body = (2..=5).find_map(|kind| found.get(kind))?;
            Some((found.get_match().len(), found.get(1)?.as_str(), body.as_str()))
        });
        let Some((length, prefix, body)) = found else {
            let after = rest.get(start.len()..).unwrap_or_default();
            let line = LINE.as_ref().filter(|_| !is_long).and_then(|line| line.find(after));
            self.position += start.len() + line.map_or(after.len(), |line| line.len());
            return Err("a text in it is not closed".to_owned());
        };
        self.position += length;
        Ok((prefix, body))
    }
}

/// Replaces the escapes in the content of a literal.
fn unescape(body: &str) -> Result<String, String> {
    let mut value = String::with_capacity(body.len());
    let mut rest = body;
    while let Some((before, escape)) = rest.split_once('\\') {
        value.push_str(before);
        let Some(kind) = escape.chars().next() else { break };
        rest = escape.get(kind.len_utf8()..).unwrap_or_default();
        let digits = match kind {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        match kind {
            '\n' => {}
            '\\' | '\'' | '"' => value.push(kind),
            'a' => value.push('\x07'),
            'b' => value.push('\x08'),
            'f' => value.push('\x0c'),
            'n' => value.push('\n'),
            'r' => value.push('\r'),
            't' => value.push('\t'),
            'v' => value.push('\x0b'),
            '0'..='7' => {
                let length = escape.bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
                let (octal, after) = escape.split_at(length);
                value.push(character(octal, 8)?);
                rest = after;
            }
            'x' | 'u' | 'U' => {
                let code = rest.get(..digits).filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()));
                let code = code.ok_or_else(|| format!("an escape in it has fewer than {digits} digits"))?;
                value.push(character(code, 16)?);
                rest = rest.get(digits..).unwrap_or_default();
            }
            'N' => {
                return Err("a text in it has a \\N escape, which is not evaluated here".to_owned());
            }
            other => value.extend(['\\', other]),
        }
    }
    value.push_str(rest);
    Ok(value)
}

fn character(digits: &str, radix: u32) -> Result<char, String> {
    let code = u32::from_str_radix(digits, radix).unwrap_or(u32::MAX);
    char::from_u32(code).ok_or_else(|| format!("an escape in it, {code:#x}, is not a character"))
}

/// Characters that may indent a line.
const BLANKS: [char; 3] = [' ', '\t', '\x0c'];

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns true for the characters that `str.strip()` removes.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(source: &str) -> Result<String, String> {
        constant(source, "TEXT")
    }

    #[test]
    fn literals_in_every_form() {
        for (source, expected) in [
            ("TEXT = 'a'", "a"),
            ("TEXT='a'", "a"),
            ("TEXT = \"it's\"", "it's"),
            ("TEXT: str = 'a'  # why\n", "a"),
            ("TEXT = ''", ""),
            ("TEXT = \"\"\"a\n\"b\" ''\n\"\"\"", "a\n\"b\" ''\n"),
            ("TEXT = '''a\\\nb'''", "ab"),
            ("TEXT = \"\"\"\n a \n\"\"\".strip()\n", "a"),
            ("TEXT = \"\"\"\n a \n\"\"\" . lstrip('\\n') . rstrip ( )\n", " a"),
            ("TEXT = 'xyax'.strip('yx')", "a"),
            ("TEXT = 'a' \"b\" 'c'", "abc"),
            ("TEXT = ('a'\n  # why\n  \"b\"\n\n  'c')", "abc"),
            ("TEXT = (\n 'a'\n 'b '\n).strip()", "ab"),
            ("TEXT = 'a' + \\\n 'b'", "ab"),
            ("TEXT = (('a') + ('b' 'c')).strip('c')", "ab"),
            ("TEXT = 'a' 'b '.strip()", "ab"),
            ("TEXT = 'a' + 'b '.strip() + 'c'", "abc"),
            (r#"TEXT = '\x41\u00fc\U0001F600\101\0z\t\\\'\"\n'"#, "A\u{fc}\u{1f600}A\0z\t\\'\"\n"),
            (r"TEXT = '0|\%| \d'", r"0|\%| \d"),
            (r#"TEXT = r"\n\"{x}""#, r#"\n\"{x}"#),
            (r"TEXT = R'''\'''' 'x'", "\\'x"),
            ("TEXT = u'a'; OTHER = 'b'", "a"),
            ("TEXT = '\x1c\u{85}a\u{a0}'.strip()", "a"),
        ] {
            assert_eq!(value(source).as_deref(), Ok(expected), "{source}");
        }
    }

    #[test]
    fn members_of_classes_are_named_after_them() {
        let source = "\
TEXT = 'module'

class Other: pass
class Texts ( object ):
    \"\"\"What they are.
TEXT = 'no'
\"\"\"
# a comment at the margin

    def f(self):
        TEXT = 'local'
        return \"\"\"
TEXT = 'no'
\"\"\"

    TEXT = (f\"one \"
        'two\\n')
    FIELDS = f'a {TEXT}'
    RAW = rf'\\d'
\t\t\t\t\tTABS = 'no'
class Texts2:
    TEXT = 'other'
TEXTS = 1
class Empty:
    # nothing
";
        assert_eq!(constant(source, "Texts.TEXT").as_deref(), Ok("one two\n"));
        assert_eq!(constant(source, "Texts2.TEXT").as_deref(), Ok("other"));
        assert_eq!(constant(source, "TEXT").as_deref(), Ok("module"));
        assert_eq!(constant(source, "Texts.RAW").as_deref(), Ok("\\d"));
        assert!(constant(source, "Texts.FIELDS").unwrap_err().contains("formatted"));
        for none in ["Other.TEXT", "Empty.TEXT", "Texts.TABS", "Tex.TEXT", "Texts.NONE", "Texts.", ".TEXT"] {
            assert_eq!(constant(source, none), Err(format!("it has no constant `{none}`")));
        }
        assert!(constant("class A:\n  TEXT = 'x' * 2", "A.TEXT").unwrap_err().contains('*'));
    }

    /// Random sources with their value in CPython 3; null if CPython rejects them or the value isn't a string.
    const VECTORS: &str = include_str!("../../tests/data/python_constants.jsonl");

    #[test]
    fn values_match_python() {
        let mut equal = 0;
        for line in VECTORS.lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let source = row["source"].as_str().unwrap();
            match (value(source), row["value"].as_str()) {
                (Ok(own), Some(python)) => {
                    assert_eq!(own, python, "{source}");
                    equal += 1;
                }
                (Ok(own), None) => panic!("{source} is {own:?}"),
                // An unsupported expression must be reported, not guessed.
                (Err(error), Some(_)) => assert!(
                    error.contains("which is not evaluated here") || error.contains("formatted"),
                    "{source}: {error}"
                ),
                (Err(_), None) => {}
            }
        }
        assert!(equal > 300, "{equal}");
    }

    #[test]
    fn only_the_constant_itself_is_taken() {
        let source = "\
import os  # TEXT = 'comment'
\"\"\"
TEXT = 'in a text'
\"\"\"
NOT_TEXT = 'x'
TEXTS = 'x'
def f(a='''
TEXT = 1'''):
    TEXT = 'local'
    return (
TEXT == 'x')
table = [
TEXT, 'x', f'{os}',
]
TEXT = 'first'
TEXT = (
    'last'
)
rest = TEXT == 'y'
";
        assert_eq!(value(source).as_deref(), Ok("last"));
        assert_eq!(constant(source, "NOT_TEXT").as_deref(), Ok("x"));
        assert_eq!(value("x = '''\nTEXT = 'a'\n'''"), Err("it has no constant `TEXT`".into()));
        assert_eq!(value(""), Err("it has no constant `TEXT`".into()));
    }

    #[test]
    fn unsupported_syntax_is_named() {
        for (source, problem) in [
            ("TEXT = 7", "its value is not a string"),
            ("TEXT = f'{x}'", "a formatted or a byte literal"),
            ("TEXT = b'x'", "a formatted or a byte literal"),
            ("TEXT = 'x'.format(1)", "`.format`"),
            ("TEXT = 'x'.upper()", "`.upper`"),
            ("TEXT = 'x'.strip", "`.strip`"),
            ("TEXT = 'x' % 1", "continues with `%`"),
            ("TEXT = 'x' if y else 'z'", "continues with `i`"),
            ("TEXT = ('x', 'y')", "holds more than texts"),
            ("TEXT = 'x\ny'", "is not closed"),
            ("TEXT = '''x", "is not closed"),
            ("TEXT = '\\x4'", "fewer than 2 digits"),
            ("TEXT = '\\ud800'", "is not a character"),
            ("TEXT = '\\N{DASH}'", "\\N"),
            ("TEXT = ", "its value is not a string"),
        ] {
            let error = value(source).unwrap_err();
            assert!(error.contains(problem), "{source}: {error}");
        }
        let deep = format!("TEXT = {}'x'{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(value(&deep).unwrap_err().contains("deep"));
    }

    #[test]
    fn no_source_panics_or_loops() {
        let pieces =
            ["TEXT", "=", "'", "\"\"\"", "\\", "\n", "(", ")", ".strip()", "r", "+", "#", "ü", "\\x", " "];
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut source = String::from("TEXT = ");
            for _ in 0..12 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                source.push_str(pieces[(state >> 33) as usize % pieces.len()]);
            }
            value(&source).ok();
        }
        let long = "TEXT = ('a'\n".repeat(50_000);
        value(&long).ok();
        value(&format!("TEXT = {}", "'a' ".repeat(100_000))).unwrap();
    }
}
