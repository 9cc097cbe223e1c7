//! Values of text constants of Python files, as Python would evaluate them.
//!
//! Understood is what a prompt is written in: literals in any quotes, raw or not, formatted ones that put nothing in,
//! with every escape but `\N{…}`, side by side or joined by `+`, in parentheses or not, and `strip`, `lstrip`, `rstrip`
//! behind them.
//! Anything else in the expression is an error with its name, never a guess.

/// Prefixes of literals, longest first; those of formatted and of byte literals are read over only.
const PREFIXES: [&str; 8] = ["rb", "br", "rf", "fr", "r", "u", "b", "f"];
/// Parentheses within each other in a constant's expression.
const DEPTH_MAX: usize = 32;

/// The value of the module-level constant of that name, or of `Class.NAME`: of its last assignment, as after an import.
///
/// # Errors
/// When there is none, or its expression is not one that is understood; in one sentence.
pub(super) fn constant(source: &str, name: &str) -> Result<String, String> {
    let mut found = None;
    let mut reader = Reader::new(source);
    if let Some((class, member)) = name.split_once('.') {
        while let Some(at) = reader.next_statement() {
            let is_class = is_class(reader.rest_from(at), class);
            reader.skip_line();
            if is_class {
                found = reader.member(member).or(found);
            }
        }
        return found.unwrap_or_else(|| Err(format!("it has no constant `{name}`")));
    }
    while let Some(at) = reader.next_statement() {
        if let Some(expression) = assignment(reader.rest_from(at), name) {
            let start = reader.source.len() - expression.len();
            found = Some(expression_at(reader.source, start));
        }
        reader.skip_line();
    }
    found.unwrap_or_else(|| Err(format!("it has no constant `{name}`")))
}

/// Whether a statement is the class of that name.
fn is_class(statement: &str, name: &str) -> bool {
    let rest = statement.strip_prefix("class").filter(|rest| rest.starts_with([' ', '\t']));
    let rest = rest.and_then(|rest| rest.trim_start_matches([' ', '\t']).strip_prefix(name));
    rest.is_some_and(|rest| !rest.starts_with(is_name))
}

/// Whether a line starts to give the constant a value.
pub(super) fn assigns(line: &str, name: &str) -> bool {
    assignment(line, name).is_some()
}

/// The value of the expression that follows `NAME =` at the start of this text.
pub(super) fn assigned(text: &str, name: &str) -> Option<Result<String, String>> {
    let expression = assignment(text, name)?;
    Some(expression_at(text, text.len() - expression.len()))
}

/// What follows `NAME =` or `NAME: type =`.
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
    let mut reader = Reader { source, at: start };
    let value = reader.sum(0)?;
    reader.blanks(false);
    match reader.peek() {
        None | Some('\n' | ';' | '#') => Ok(value),
        Some(other) => Err(format!("its value goes on with `{other}`, which is not evaluated here")),
    }
}

struct Reader<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(source: &'a str) -> Self {
        Self { source, at: 0 }
    }

    fn rest_from(&self, at: usize) -> &'a str {
        self.source.get(at..).unwrap_or_default()
    }

    fn rest(&self) -> &'a str {
        self.rest_from(self.at)
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn take_if(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    /// Where the next statement starts that stands at the left margin.
    fn next_statement(&mut self) -> Option<usize> {
        loop {
            match self.peek()? {
                '\n' => self.at += 1,
                ' ' | '\t' | '\x0c' | '#' | ')' | ']' | '}' => self.skip_line(),
                _ => return Some(self.at),
            }
        }
    }

    /// The value of a member of the class whose body starts here, which is read over.
    fn member(&mut self, name: &str) -> Option<Result<String, String>> {
        let mut indent = None;
        let mut found = None;
        while let Some(line) = self.next_indented_line() {
            let text = line.trim_start_matches([' ', '\t']);
            let own = line.len() - text.len();
            // Deeper lines are within functions.
            if *indent.get_or_insert(own) == own
                && let Some(expression) = assignment(text, name)
            {
                let start = self.source.len() - expression.len();
                found = Some(expression_at(self.source, start));
            }
            self.skip_line();
        }
        found
    }

    /// The rest from the next logical line that is indented; `None` when one comes that is not.
    fn next_indented_line(&mut self) -> Option<&'a str> {
        loop {
            let source = self.source;
            let rest = source.get(self.at..)?;
            let line = rest.split('\n').next().unwrap_or_default();
            let text = line.trim_start_matches([' ', '\t', '\x0c']);
            match text.chars().next() {
                None if line.len() == rest.len() => return None,
                None => self.at += line.len() + 1,
                Some('#') => self.skip_line(),
                Some(_) if text.len() == line.len() => return None,
                Some(_) => return Some(rest),
            }
        }
    }

    /// To the end of the logical line: literals and brackets may hold line ends.
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
                    self.at += 1;
                }
                ')' | ']' | '}' => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                _ if self.literal_starts() => {
                    // One that is not closed ends the file, as it does for Python.
                    if self.literal().is_err() && self.peek() != Some('\n') {
                        self.take();
                    }
                }
                _ if is_name(next) => {
                    let name = self.rest().find(|c: char| !is_name(c)).unwrap_or(self.rest().len());
                    self.at += name;
                }
                _ => {
                    self.take();
                }
            }
        }
    }

    fn comment(&mut self) {
        let rest = self.rest();
        self.at += rest.find('\n').unwrap_or(rest.len());
    }

    /// Blanks, continued lines, and within parentheses line ends and comments.
    fn blanks(&mut self, within: bool) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\x0c') => self.at += 1,
                Some('\\') if self.rest().starts_with("\\\n") => self.at += 2,
                Some('\n') if within => self.at += 1,
                Some('#') if within => self.comment(),
                _ => return,
            }
        }
    }

    /// Terms joined by `+`.
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

    /// Literals side by side or an expression in parentheses, and methods behind it.
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
        self.at += length;
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
            return Err("its value is not a text".to_owned());
        }
        match self.literal()? {
            Some(text) => Ok(text),
            None => Err("its value is a formatted or a byte literal".to_owned()),
        }
    }

    /// The length of a literal's prefix, when one starts here.
    fn prefix(&self) -> Option<usize> {
        let rest = self.rest();
        if rest.starts_with(['"', '\'']) {
            return Some(0);
        }
        let fits = |prefix: &&&str| {
            rest.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
                && rest.get(prefix.len()..).is_some_and(|rest| rest.starts_with(['"', '\'']))
        };
        PREFIXES.iter().find(fits).map(|prefix| prefix.len())
    }

    fn literal_starts(&self) -> bool {
        self.prefix().is_some()
    }

    /// One literal; `None` when it is of a kind that is no plain text.
    fn literal(&mut self) -> Result<Option<String>, String> {
        let length = self.prefix().ok_or("its value is not a text")?;
        let prefix = self.rest().get(..length).unwrap_or_default().to_ascii_lowercase();
        self.at += length;
        let start = self.at;
        let raw = prefix.contains('r');
        let plain = !prefix.contains(['f', 'b']);
        let value = self.quoted(raw || !plain)?;
        if plain {
            return Ok(Some(value));
        }
        // A formatted literal that puts nothing in is a plain one.
        if prefix.contains('b') || value.contains(['{', '}']) {
            return Ok(None);
        }
        self.at = start;
        self.quoted(raw).map(Some)
    }

    /// What stands in the quotes that start here.
    fn quoted(&mut self, raw: bool) -> Result<String, String> {
        let quote = if self.rest().starts_with('"') { "\"" } else { "'" };
        let long = quote.repeat(3);
        let is_long = self.take_if(&long);
        let end: &str = if is_long { &long } else { quote };
        if !is_long {
            self.take();
        }
        let mut value = String::new();
        loop {
            if self.take_if(end) {
                return Ok(value);
            }
            match self.take() {
                None => return Err("a text in it is not closed".to_owned()),
                Some('\n') if !is_long => {
                    self.at -= 1;
                    return Err("a text in it is not closed".to_owned());
                }
                Some('\\') if raw => {
                    value.push('\\');
                    value.extend(self.take());
                }
                Some('\\') => self.escape(&mut value)?,
                Some(other) => value.push(other),
            }
        }
    }

    fn escape(&mut self, value: &mut String) -> Result<(), String> {
        let Some(kind) = self.take() else { return Ok(()) };
        let plain = match kind {
            '\n' => return Ok(()),
            '\\' | '\'' | '"' => kind,
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            '0'..='7' => {
                let mut code = kind.to_digit(8).unwrap_or_default();
                for _ in 0..2 {
                    let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
                    code = code * 8 + digit;
                    self.at += 1;
                }
                character(code)?
            }
            'x' => self.by_code(2)?,
            'u' => self.by_code(4)?,
            'U' => self.by_code(8)?,
            'N' => {
                return Err("a text in it names a character by \\N, which is not evaluated here".to_owned());
            }
            other => {
                value.push('\\');
                other
            }
        };
        value.push(plain);
        Ok(())
    }

    /// The character of so many hexadecimal digits.
    fn by_code(&mut self, digits: usize) -> Result<char, String> {
        let text = self.rest().get(..digits).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = text.and_then(|text| u32::from_str_radix(text, 16).ok());
        let code = code.ok_or_else(|| format!("an escape in it has fewer than {digits} digits"))?;
        self.at += digits;
        character(code)
    }
}

fn character(code: u32) -> Result<char, String> {
    char::from_u32(code).ok_or_else(|| format!("an escape in it, {code:#x}, is no character of its own"))
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What `str.strip()` takes away.
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

    /// Random sources with what CPython 3 makes of them; null where it refuses them or they are no text.
    const VECTORS: &str = include_str!("../../tests/data/python_constants.jsonl");

    #[test]
    fn values_are_those_of_python() {
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
                // What is not evaluated here is said, not guessed.
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
    fn what_is_not_evaluated_is_named() {
        for (source, problem) in [
            ("TEXT = 7", "its value is not a text"),
            ("TEXT = f'{x}'", "a formatted or a byte literal"),
            ("TEXT = b'x'", "a formatted or a byte literal"),
            ("TEXT = 'x'.format(1)", "`.format`"),
            ("TEXT = 'x'.upper()", "`.upper`"),
            ("TEXT = 'x'.strip", "`.strip`"),
            ("TEXT = 'x' % 1", "goes on with `%`"),
            ("TEXT = 'x' if y else 'z'", "goes on with `i`"),
            ("TEXT = ('x', 'y')", "holds more than texts"),
            ("TEXT = 'x\ny'", "is not closed"),
            ("TEXT = '''x", "is not closed"),
            ("TEXT = '\\x4'", "fewer than 2 digits"),
            ("TEXT = '\\ud800'", "is no character"),
            ("TEXT = '\\N{DASH}'", "\\N"),
            ("TEXT = ", "its value is not a text"),
        ] {
            let error = value(source).unwrap_err();
            assert!(error.contains(problem), "{source}: {error}");
        }
        let deep = format!("TEXT = {}'x'{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(value(&deep).unwrap_err().contains("deep"));
    }

    #[test]
    fn no_source_panics_and_all_end() {
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
