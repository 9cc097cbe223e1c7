//! Test modules of a Rust source.

use std::ops::Range;

/// A module under `#[cfg(test)]` that is in no other one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Module {
    pub(super) name: String,
    /// Bytes of its source, from its first attribute on.
    pub(super) range: Range<usize>,
    /// False for a declaration, whose source is another file.
    pub(super) has_body: bool,
    /// Value of the attribute `path`.
    pub(super) path: Option<String>,
}

/// A source that is split into tokens.
pub(super) struct Source<'a> {
    tokens: Vec<Token<'a>>,
    /// For each token that opens a bracket, the index of the one that closes it.
    closing: Vec<Option<usize>>,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let tokens = tokens(text);
        let mut closing = vec![None; tokens.len()];
        let mut opened = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            match token.text {
                "{" | "(" | "[" => opened.push(at),
                "}" | ")" | "]" => {
                    if let Some(start) = opened.pop() {
                        closing[start] = Some(at);
                    }
                }
                _ => {}
            }
        }
        Self { tokens, closing }
    }

    /// Returns true if `mod NAME` is anywhere in it.
    pub(super) fn names_module(&self, name: &str) -> bool {
        self.tokens.windows(2).any(|pair| pair[0].text == "mod" && pair[1].text == name)
    }

    /// Finds the test modules.
    pub(super) fn modules(&self) -> Vec<Module> {
        let mut found = Vec::new();
        let (mut at, mut depth) = (0, 0_usize);
        while let Some(token) = self.tokens.get(at) {
            if depth == 0 && token.text == "#" {
                let (module, next) = self.module(at);
                found.extend(module);
                at = next;
                continue;
            }
            match token.text {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        found
    }

    fn word(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    /// Reads attributes and the test module after them, if it's one. Returns it, and the index of the token to go on with.
    fn module(&self, start: usize) -> (Option<Module>, usize) {
        let (mut at, mut is_test, mut path) = (start, false, None);
        while self.word(at) == "#" && self.word(at + 1) == "[" {
            let Some(end) = self.closing[at + 1] else { break };
            let attribute = &self.tokens[at + 2..end];
            is_test |= is_cfg_test(attribute);
            if let [name, equals, value] = attribute
                && (name.text, equals.text) == ("path", "=")
            {
                path = Some(value.text.trim_matches('"').to_owned());
            }
            at = end + 1;
        }
        let after = at.max(start + 1);
        if !is_test {
            return (None, after);
        }
        if self.word(at) == "pub" {
            at += 1;
            if self.word(at) == "(" {
                at = self.closing[at].map_or(at, |end| end + 1);
            }
        }
        let has_body = self.word(at + 2) == "{";
        let end = match self.word(at + 2) {
            "{" => self.closing[at + 2],
            ";" => Some(at + 2),
            _ => None,
        };
        let Some(end) = end.filter(|_| self.word(at) == "mod") else { return (None, after) };
        let range = self.tokens[start].start..self.tokens[end].start + self.tokens[end].text.len();
        (Some(Module { name: self.word(at + 1).to_owned(), range, has_body, path }), end + 1)
    }
}

/// Returns true for `cfg(test)` and `cfg(all(…, test, …))`. What `any` and `not` are about may be compiled without tests.
fn is_cfg_test(attribute: &[Token<'_>]) -> bool {
    let words: Vec<&str> = attribute.iter().map(|token| token.text).collect();
    match words[..] {
        ["cfg", "(", "test", ")"] => true,
        ["cfg", "(", "all", ..] => {
            words.contains(&"test") && !words.iter().any(|word| matches!(*word, "any" | "not"))
        }
        _ => false,
    }
}

/// A word, a mark or a literal.
#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    start: usize,
    text: &'a str,
}

/// Splits a source into tokens, without comments and spaces.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (length, is_token) = if first.is_whitespace() {
            (first.len_utf8(), false)
        } else if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if rest.starts_with("/*") {
            (comment(rest), false)
        } else if is_word(first) {
            let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            // `r"…"`, `b'…'`, `cr#"…"#` and others are one literal.
            (prefixed(&rest[..word], &rest[word..]).map_or(word, |literal| word + literal), true)
        } else if first == '"' {
            (quoted(rest, '"'), true)
        } else if first == '\'' {
            (character(rest), true)
        } else {
            (first.len_utf8(), true)
        };
        if is_token {
            found.push(Token { start: at, text: &rest[..length] });
        }
        at += length;
    }
    found
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Returns the length of a comment, in which others may be.
fn comment(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < text.len() {
        let rest = text.as_bytes().get(at..at + 2);
        match rest {
            Some(b"/*") => (at, depth) = (at + 2, depth + 1),
            Some(b"*/") => {
                (at, depth) = (at + 2, depth - 1);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns the length of the literal after a prefix, if it's one.
fn prefixed(prefix: &str, rest: &str) -> Option<usize> {
    match prefix {
        "r" | "br" | "cr" => {
            let marks = rest.len() - rest.trim_start_matches('#').len();
            rest[marks..].strip_prefix('"')?;
            let end = format!("\"{}", "#".repeat(marks));
            let inner = marks + 1;
            Some(rest[inner..].find(&end).map_or(rest.len(), |found| inner + found + end.len()))
        }
        "b" | "c" if rest.starts_with('"') => Some(quoted(rest, '"')),
        "b" if rest.starts_with('\'') => Some(quoted(rest, '\'')),
        _ => None,
    }
}

/// Returns the length of a literal with escapes that begins and ends with a mark.
fn quoted(text: &str, mark: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == mark => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a character, or of the mark and name of a lifetime.
fn character(text: &str) -> usize {
    let mut inner = text.chars().skip(1);
    match (inner.next(), inner.next()) {
        (Some('\\'), _) => quoted(text, '\''),
        (Some(c), Some('\'')) => c.len_utf8() + 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "pub fn add() -> char {\n    '}'\n}\n\n#[path = \"x.rs\"]\n#[cfg(test)]\n#[allow(dead_code)]\nmod tests {\n    use super::*;\n    // }\n    const TEXT: (&str, &str, u8) = (\"}\", r#\"}\"}\"#, b'}');\n    fn lives<'a>(x: &'a str) -> &'a str { x }\n    #[test]\n    fn adds() {\n        assert_eq!(add(), '{');\n    }\n}\n";

    fn modules(text: &str) -> Vec<Module> {
        Source::new(text).modules()
    }

    #[test]
    fn test_modules_begin_at_their_first_attribute_and_end_at_their_own_bracket() {
        let found = modules(TEXT);
        assert_eq!(found.len(), 1);
        let own = &TEXT[TEXT.find("#[path").unwrap()..TEXT.trim_end().len()];
        assert_eq!((found[0].name.as_str(), &TEXT[found[0].range.clone()]), ("tests", own));
        assert_eq!(found[0].path.as_deref(), Some("x.rs"));
        for text in ["#[cfg(all(test, unix))] pub(crate) mod a { }", "#[cfg(all(unix, test))] mod a;"] {
            assert_eq!(modules(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn other_items_are_no_test_modules() {
        for text in [
            "/* #[cfg(test)] mod tests { } */",
            "const A: &str = \"#[cfg(test)] mod tests { }\";",
            "#[cfg(not(test))] mod real { }",
            "#[cfg(any(test, feature = \"std\"))] mod imp { }",
            "#[cfg(all(unix, any(test, feature = \"std\")))] mod imp;",
            "#[cfg(all(not(test), unix))] mod imp;",
            "#[cfg(feature = \"test\")] mod imp;",
            "#[cfg(test)] use std::fmt;",
            "#[cfg(test)] mod tests {",
            "#![cfg(test)] mod tests { }",
            "mod inner { #[cfg(test)] mod tests { } }",
        ] {
            assert_eq!(modules(text), [], "{text}");
        }
        let source = "#[cfg(test)] use a::b;\n#[cfg(test)] mod tests;";
        assert_eq!(modules(source)[0].range, 23..source.len());
    }

    #[test]
    fn long_rows_of_brackets_and_attributes_take_no_time_that_grows_with_their_square() {
        // Minutes if each began a search for its end.
        for text in ["#[", "#[a]", "#[cfg(test)]", "#[cfg(test)] mod a("] {
            assert_eq!(modules(&text.repeat(50_000)), [], "{text}");
        }
    }
}
