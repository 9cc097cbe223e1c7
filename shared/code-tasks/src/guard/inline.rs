//! Tests within Rust sources: modules under `#[cfg(test)]`.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::workspace::{Workspace, WorkspaceFile};

/// Item between an answer's text and the tests, so that an attribute without an item belongs to it.
const SEPARATOR: &str = "\nconst _: () = ();\n\n";

/// Returns the Rust sources of an answer whose test modules differ from the task's, with the task's modules in place of them.
pub(super) fn restored(task: &Workspace, answer: &Workspace) -> BTreeMap<String, WorkspaceFile> {
    let mut changed = BTreeMap::new();
    for (path, file) in task.files().iter().filter(|(path, _)| path.ends_with(".rs")) {
        let Ok(text) = std::str::from_utf8(&file.bytes) else { continue };
        for declared in modules(text).iter().filter(|module| !module.has_body) {
            for inner in declared_paths(path, &declared.name) {
                if let Some(file) = task.get(&inner).filter(|file| answer.get(&inner) != Some(file)) {
                    changed.insert(inner, file.clone());
                }
            }
        }
        if answer.get(path) == Some(file) {
            continue;
        }
        // A source may become the root of a folder, and the reverse.
        let moved =
            other_place(path).filter(|other| answer.get(path).is_none() && answer.get(other).is_some());
        let target = moved.as_deref().unwrap_or(path);
        let given =
            answer.get(target).map_or("", |file| std::str::from_utf8(&file.bytes).unwrap_or_default());
        if let Some(text) = with_tests(text, given) {
            changed.insert(
                target.to_owned(),
                WorkspaceFile { bytes: text.into_bytes(), is_executable: file.is_executable },
            );
        }
    }
    changed
}

/// Returns the answer's source with the task's test modules, or `None` if it has them.
fn with_tests(task: &str, answer: &str) -> Option<String> {
    let (wanted, given) = (modules(task), modules(answer));
    let same = |one: &Module, other: &Module| {
        one.name == other.name && task[one.range.clone()] == answer[other.range.clone()]
    };
    if wanted.iter().all(|one| given.iter().any(|other| same(one, other))) {
        return None;
    }
    let mut text = answer.to_owned();
    for module in given.iter().rev().filter(|module| wanted.iter().any(|one| one.name == module.name)) {
        text.replace_range(module.range.clone(), "");
    }
    text.push_str(SEPARATOR);
    for module in &wanted {
        text.push_str(&task[module.range.clone()]);
        text.push('\n');
    }
    Some(text)
}

/// Returns the files that a declaration without a body in a source may be about.
fn declared_paths(source: &str, name: &str) -> [String; 2] {
    let (folder, file) = source.rsplit_once('/').map_or(("", source), |(folder, file)| (folder, file));
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let folder = match (folder, stem) {
        ("", "lib" | "main" | "mod") => String::new(),
        ("", stem) => format!("{stem}/"),
        (folder, "lib" | "main" | "mod") => format!("{folder}/"),
        (folder, stem) => format!("{folder}/{stem}/"),
    };
    [format!("{folder}{name}.rs"), format!("{folder}{name}/mod.rs")]
}

/// Returns the other place of a module's source: `a/mod.rs` for `a.rs`, and the reverse.
fn other_place(path: &str) -> Option<String> {
    match path.strip_suffix("/mod.rs") {
        Some(folder) => Some(format!("{folder}.rs")),
        None => path.strip_suffix(".rs").map(|stem| format!("{stem}/mod.rs")),
    }
}

/// A module under `#[cfg(test)]` that is in no other one.
#[derive(Debug, PartialEq, Eq)]
struct Module {
    name: String,
    /// Bytes of its source, from the attribute on.
    range: Range<usize>,
    /// False for a declaration, whose source is another file.
    has_body: bool,
}

/// Finds the test modules of a source.
fn modules(text: &str) -> Vec<Module> {
    let tokens: Vec<Token<'_>> = tokens(text);
    let mut found = Vec::new();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(token) = tokens.get(at) {
        if depth == 0
            && let Some((module, next)) = module(&tokens, at)
        {
            found.push(module);
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

/// Reads a test module from a token on. Returns it, and the index of the token after it.
fn module(tokens: &[Token<'_>], start: usize) -> Option<(Module, usize)> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let (mut at, mut is_test) = (start, false);
    while text(at) == "#" && text(at + 1) == "[" {
        let end = closing(tokens, at + 1)?;
        let inner = || tokens[at + 2..end].iter().map(|token| token.text);
        let is_cfg =
            text(at + 2) == "cfg" && inner().any(|word| word == "test") && !inner().any(|word| word == "not");
        // The module begins at this attribute: others before it stay where they are.
        if !is_test && !is_cfg {
            return None;
        }
        is_test = true;
        at = end + 1;
    }
    if !is_test {
        return None;
    }
    if text(at) == "pub" {
        at += 1;
        if text(at) == "(" {
            at = closing(tokens, at)? + 1;
        }
    }
    let name = tokens.get(at + 1).filter(|_| text(at) == "mod")?.text.to_owned();
    let (end, has_body) = match text(at + 2) {
        "{" => (closing(tokens, at + 2)?, true),
        ";" => (at + 2, false),
        _ => return None,
    };
    let range = tokens[start].start..tokens[end].start + tokens[end].text.len();
    Some((Module { name, range, has_body }, end + 1))
}

/// Returns the index of the token that closes the bracket at an index.
fn closing(tokens: &[Token<'_>], opened: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(opened) {
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
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

    const TASK: &str = "pub fn add() -> char {\n    '}'\n}\n\n#[cfg(test)]\n#[allow(dead_code)]\nmod tests {\n    use super::*;\n    // }\n    const TEXT: (&str, &str, u8) = (\"}\", r#\"}\"}\"#, b'}');\n    fn lives<'a>(x: &'a str) -> &'a str { x }\n    #[test]\n    fn adds() {\n        assert_eq!(add(), '{');\n    }\n}\n";

    fn own() -> &'static str {
        &TASK[TASK.find("#[cfg").unwrap()..TASK.trim_end().len()]
    }

    #[test]
    fn test_modules_end_at_their_own_brackets() {
        let found = modules(TASK);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), &TASK[found[0].range.clone()]), ("tests", own()));
        for text in [
            "/* #[cfg(test)] mod tests { } */",
            "const A: &str = \"#[cfg(test)] mod tests { }\";",
            "#[cfg(not(test))] mod real { }",
            "#[cfg(test)] use std::fmt;",
            "#[cfg(test)] mod tests {",
        ] {
            assert_eq!(modules(text), [], "{text}");
        }
    }

    #[test]
    fn changed_and_removed_test_modules_are_those_of_the_task() {
        let restored = |answer: &str| with_tests(TASK, answer);
        let right = TASK.replace("'}'\n", "'{'\n");
        assert_eq!(restored(&right), None);
        assert_eq!(restored(&format!("use std::fmt;\n{right}\n#[cfg(test)]\nmod more {{}}\n")), None);
        for answer in [
            "pub fn add() -> char { '}' }\n",
            "pub fn add() -> char { '}' }\n#[cfg(any())]\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {}\n}\n",
            "/* /* */ */ #[cfg(all(test, unix))] pub(crate) mod tests { }\npub fn add() -> char { '}' }\n",
        ] {
            let text = restored(answer).unwrap();
            assert!(text.ends_with(&format!("{SEPARATOR}{}\n", own())), "{text}");
            assert_eq!(modules(&text).len(), 1, "{text}");
            assert!(!text.contains("fn adds() {}"), "{text}");
        }
    }

    #[test]
    fn sources_of_declared_test_modules_and_removed_sources_are_restored() {
        let task = Workspace::from([
            ("src/lib.rs", "mod a;\n#[cfg(test)]\nmod tests;\n"),
            ("src/tests.rs", "#[test]\nfn one() { panic!() }\n"),
            ("src/a.rs", "#[cfg(test)]\nmod inner { #[test] fn two() {} }\n"),
        ]);
        let answer = Workspace::from([
            ("src/lib.rs", "mod a;\n"),
            ("src/tests.rs", "#[test]\nfn one() {}\n"),
            ("src/a/mod.rs", "pub fn x() {}\n"),
        ]);
        let restored = restored(&task, &answer);
        let text = |path: &str| String::from_utf8_lossy(&restored[path].bytes).into_owned();
        assert!(text("src/lib.rs").ends_with("#[cfg(test)]\nmod tests;\n"));
        assert!(text("src/tests.rs").contains("panic"));
        assert!(text("src/a/mod.rs").starts_with("pub fn x") && text("src/a/mod.rs").contains("fn two"));
        assert_eq!(restored.len(), 3);
        assert!(super::restored(&task, &task).is_empty());
    }
}
