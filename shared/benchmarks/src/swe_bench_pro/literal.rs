//! Reads lists of texts that are written as Python literals.

/// Maximum number of texts in a list.
const TEXTS_MAX: usize = 200_000;

/// Returns the texts of a list, tuple or set of Python string literals, such as `['a', "it's"]`.
///
/// # Errors
/// Returns the problem and its position in one phrase.
pub(super) fn texts(literal: &str) -> Result<Vec<String>, String> {
    let mut reader = Reader { text: literal, at: 0 };
    reader.skip_space();
    let close = match reader.next() {
        Some('[') => ']',
        Some('(') => ')',
        Some('{') => '}',
        _ => return Err("it is no list of texts in Python's notation".to_owned()),
    };
    let mut texts = Vec::new();
    loop {
        reader.skip_space();
        if reader.take(close) {
            break;
        }
        if texts.len() == TEXTS_MAX {
            return Err(format!("it has more than {TEXTS_MAX} texts"));
        }
        texts.push(reader.joined_strings()?);
        reader.skip_space();
        if !reader.take(',') {
            reader.expect(close)?;
            break;
        }
    }
    reader.skip_space();
    match reader.peek() {
        None => Ok(texts),
        Some(_) => Err(reader.problem("there is something after the list")),
    }
}

struct Reader<'a> {
    text: &'a str,
    /// Position in bytes.
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn take(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.at += wanted.len_utf8();
        }
        is_next
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        match self.take(wanted) {
            true => Ok(()),
            false => Err(self.problem(&format!("`{wanted}` or a comma is missing"))),
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r' | '\u{c}')) {
            self.next();
        }
    }

    fn problem(&self, what: &str) -> String {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        format!("{what} at character {}", before.chars().count() + 1)
    }

    /// Reads string literals that follow each other, which are one text.
    fn joined_strings(&mut self) -> Result<String, String> {
        let mut text = self.string()?;
        loop {
            self.skip_space();
            match self.peek() {
                Some('\'' | '"' | 'r' | 'R' | 'u' | 'U') => text.push_str(&self.string()?),
                _ => return Ok(text),
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let is_raw = matches!(self.peek(), Some('r' | 'R'));
        if is_raw || matches!(self.peek(), Some('u' | 'U')) {
            self.next();
        }
        let quote = match self.peek() {
            Some(quote @ ('\'' | '"')) => quote,
            _ => return Err(self.problem("there is no text in quotes")),
        };
        let triple = String::from_iter([quote; 3]);
        let is_long = self.rest().starts_with(&triple);
        self.at += if is_long { triple.len() } else { 1 };
        let mut text = String::new();
        loop {
            if is_long && self.rest().starts_with(&triple) {
                self.at += triple.len();
                return Ok(text);
            }
            match self.next() {
                None => return Err(self.problem("a text doesn't end")),
                Some(c) if c == quote && !is_long => return Ok(text),
                Some('\n') if !is_long => return Err(self.problem("a text doesn't end on its line")),
                Some('\\') if is_raw => {
                    text.push('\\');
                    text.extend(self.next());
                }
                Some('\\') => self.escape(&mut text)?,
                Some(c) => text.push(c),
            }
        }
    }

    /// Reads an escape after its backslash. Unknown ones stay as they are written, as in Python.
    fn escape(&mut self, text: &mut String) -> Result<(), String> {
        let Some(c) = self.next() else { return Err(self.problem("a text doesn't end")) };
        match c {
            '\n' => {}
            '\\' | '\'' | '"' => text.push(c),
            'a' => text.push('\u{7}'),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'v' => text.push('\u{b}'),
            'x' => text.push(self.code(2, 16)?),
            'u' => text.push(self.code(4, 16)?),
            'U' => text.push(self.code(8, 16)?),
            'N' => return Err(self.problem("characters by name aren't supported")),
            '0'..='7' => {
                self.at -= 1;
                let digits =
                    self.rest().bytes().take(3).take_while(|digit| matches!(digit, b'0'..=b'7')).count();
                text.push(self.code(digits, 8)?);
            }
            other => text.extend(['\\', other]),
        }
        Ok(())
    }

    /// Reads the digits of a character's code.
    fn code(&mut self, digits: usize, radix: u32) -> Result<char, String> {
        let found = self.rest().get(..digits).filter(|text| text.chars().all(|c| c.is_digit(radix)));
        let found = found.and_then(|text| char::from_u32(u32::from_str_radix(text, radix).ok()?));
        let found = found.ok_or_else(|| self.problem("an escape is no character"))?;
        self.at += digits;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_python_reads_them() {
        for (literal, expected) in [
            ("[]", vec![]),
            ("['a.py']", vec!["a.py"]),
            (" [ 'a', \"b\" , ]\n", vec!["a", "b"]),
            ("(\"it's\", 'say \"x\"')", vec!["it's", "say \"x\""]),
            ("{'a'}", vec!["a"]),
            (r#"['it\'s', "\"", '\\']"#, vec!["it's", "\"", "\\"]),
            (r"['\x41\u00e4\U0001f600\101\0', '\n\t']", vec!["Aä😀A\0", "\n\t"]),
            (r"['\d+ \w', r'\n']", vec!["\\d+ \\w", "\\n"]),
            ("['a' 'b', u'c']", vec!["ab", "c"]),
            ("['''a\n'b''', \"\"\"c\"\"\"]", vec!["a\n'b", "c"]),
            ("['| test [x, y]', 'ü']", vec!["| test [x, y]", "ü"]),
            ("['a\\\nb']", vec!["ab"]),
            ("['']", vec![""]),
        ] {
            assert_eq!(texts(literal).unwrap(), expected, "{literal}");
        }
    }

    #[test]
    fn other_values_are_named() {
        for (literal, part) in [
            ("", "no list of texts"),
            ("'a'", "no list of texts"),
            ("['a'", "`]` or a comma is missing at character 5"),
            ("['a", "doesn't end"),
            ("['a\nb']", "doesn't end on its line"),
            ("['a'] x", "after the list"),
            ("[1]", "no text in quotes at character 2"),
            ("[None, 'a']", "no text in quotes"),
            ("['a' 1]", "`]` or a comma is missing"),
            (r"['\ud800']", "no character"),
            (r"['\xg0']", "no character"),
            (r"['\N{DIGIT ONE}']", "by name"),
            ("['a',,'b']", "no text in quotes"),
            ("[['a']]", "no text in quotes"),
        ] {
            let problem = texts(literal).unwrap_err();
            assert!(problem.contains(part), "{literal}: {problem}");
        }
    }
}
