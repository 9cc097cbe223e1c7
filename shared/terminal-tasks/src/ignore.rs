//! Rules of `.harborignore`: files of `tests` and `solution` that aren't copied into containers.

use regex::{Regex, RegexBuilder};

use crate::refusal::{FormatProblem, Refusal};
use crate::tree::Tree;

/// Name of the files with rules. They are never copied themselves.
const IGNORE_FILE: &str = ".harborignore";
/// Maximum number of rules of a task.
const RULES_MAX: usize = 200;
/// Maximum length of a rule, in bytes.
const RULE_BYTES_MAX: usize = 256;
/// Maximum size of a compiled rule, in bytes.
const COMPILED_BYTES_MAX: usize = 256 << 10;

/// Rules of all `.harborignore` files below `tests` and `solution`, of the task and its steps.
#[derive(Debug, Default)]
pub(crate) struct IgnoreRules {
    /// Rules in the order in which the last match counts.
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    /// Folder of the file with the rule.
    folder: String,
    pattern: Regex,
    is_negative: bool,
    is_for_folders: bool,
}

impl IgnoreRules {
    /// Reads the rules of a task.
    pub(crate) fn read(tree: &Tree) -> Result<Self, Refusal> {
        let mut files: Vec<&str> = tree
            .files()
            .map(|(path, _)| path)
            .filter(|path| path.name() == IGNORE_FILE)
            .map(|path| path.as_str())
            .collect();
        files.retain(|path| is_in_scope(path));
        // Rules of inner folders come later and win.
        files.sort_by_key(|path| path.split('/').count());
        let mut rules = Vec::new();
        for path in files {
            let bytes = tree.config(path)?.unwrap_or_default();
            let text = std::str::from_utf8(bytes).map_err(|_| Refusal::file(path, FormatProblem::NotUtf8))?;
            let folder = path.strip_suffix(IGNORE_FILE).unwrap_or(path).trim_end_matches('/');
            for (index, line) in text.lines().enumerate() {
                let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
                let invalid = |expected| {
                    let problem = FormatProblem::InvalidValue {
                        key: IGNORE_FILE.to_owned(),
                        value: line.to_owned(),
                        expected,
                    };
                    Refusal::line(path, number, problem)
                };
                if line.len() > RULE_BYTES_MAX || rules.len() >= RULES_MAX {
                    return Err(invalid("one of at most 200 patterns of at most 256 bytes"));
                }
                rules.extend(
                    Rule::parse(folder, line)
                        .map_err(|_| invalid("a pattern in the syntax of `.gitignore`"))?,
                );
            }
        }
        Ok(Self { rules })
    }

    /// Returns true if a file isn't copied: a rule excludes it or a folder above it.
    pub(crate) fn is_excluded(&self, path: &str) -> bool {
        if path.rsplit('/').next() == Some(IGNORE_FILE) {
            return true;
        }
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        ends.into_iter().any(|end| {
            let candidate = path.get(..end).unwrap_or(path);
            let is_folder = end < path.len();
            let last = self.rules.iter().rev().find(|rule| rule.matches(candidate, is_folder));
            last.is_some_and(|rule| !rule.is_negative)
        })
    }
}

/// Returns true for paths inside `tests` or `solution` of the task or of a step.
fn is_in_scope(path: &str) -> bool {
    let inner = match path.split('/').collect::<Vec<_>>().as_slice() {
        ["steps", _, folder, _, ..] | [folder, _, ..] => *folder,
        _ => "",
    };
    matches!(inner, "tests" | "solution")
}

impl Rule {
    /// Parses a line; `None` for blank lines and comments.
    fn parse(folder: &str, line: &str) -> Result<Option<Self>, regex::Error> {
        let line = trim_end(line);
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let (line, is_negative) = match line.strip_prefix('!') {
            Some(rest) => (rest, true),
            None => (line, false),
        };
        let (glob, is_for_folders) = match line.strip_suffix('/') {
            Some(rest) => (rest, true),
            None => (line, false),
        };
        if glob.is_empty() {
            return Ok(None);
        }
        let pattern = RegexBuilder::new(&to_regex(glob)).size_limit(COMPILED_BYTES_MAX).build()?;
        Ok(Some(Self { folder: folder.to_owned(), pattern, is_negative, is_for_folders }))
    }

    fn matches(&self, path: &str, is_folder: bool) -> bool {
        let inner = path.strip_prefix(self.folder.as_str()).and_then(|rest| rest.strip_prefix('/'));
        (is_folder || !self.is_for_folders) && inner.is_some_and(|inner| self.pattern.is_match(inner))
    }
}

/// Removes spaces at the end, except for an escaped one.
fn trim_end(line: &str) -> &str {
    let trimmed = line.trim_end();
    if trimmed.ends_with('\\') && trimmed.len() < line.len() {
        line.get(..=trimmed.len()).unwrap_or(trimmed)
    } else {
        trimmed
    }
}

/// Returns the regular expression of a pattern, for paths relative to the folder of its file.
fn to_regex(glob: &str) -> String {
    let (glob, is_anchored) = match glob.strip_prefix('/') {
        Some(rest) => (rest, true),
        None => (glob, glob.contains('/')),
    };
    let mut regex = if is_anchored { "^".to_owned() } else { "^(?:.*/)?".to_owned() };
    let mut rest = glob;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("**/") {
            regex.push_str("(?:.*/)?");
            rest = after;
            continue;
        }
        if rest == "**" {
            regex.push_str(".*");
            break;
        }
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
        match first {
            '*' => regex.push_str("[^/]*"),
            '?' => regex.push_str("[^/]"),
            '[' => match character_class(rest) {
                Some((class, after)) => {
                    regex.push_str(&class);
                    rest = after;
                }
                None => regex.push_str(r"\["),
            },
            '\\' => {
                let escaped = rest.chars().next().unwrap_or('\\');
                regex.push_str(&regex::escape(escaped.encode_utf8(&mut [0; 4])));
                rest = rest.get(escaped.len_utf8()..).unwrap_or_default();
            }
            other => regex.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    regex.push('$');
    regex
}

/// Reads a class after its `[`. Returns its regular expression and the rest, or `None` if it doesn't end.
fn character_class(text: &str) -> Option<(String, &str)> {
    let (text, is_negative) = match text.strip_prefix(['!', '^']) {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    // A `]` at the beginning is part of the class.
    let end = text.char_indices().skip(1).find(|(_, character)| *character == ']')?.0;
    let (class, rest) = (text.get(..end)?, text.get(end + 1..)?);
    let mut regex = if is_negative { "[^/".to_owned() } else { "[".to_owned() };
    for character in class.chars() {
        if character != '-' && !character.is_alphanumeric() {
            regex.push('\\');
        }
        regex.push(character);
    }
    regex.push(']');
    Some((regex, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::TaskPath;
    use crate::tree::TreeBuilder;

    fn rules(files: &[(&str, &str)]) -> Result<IgnoreRules, Refusal> {
        let mut builder = TreeBuilder::default();
        for (path, content) in files {
            builder.add(&TaskPath::new(path).unwrap(), None, &mut content.as_bytes()).unwrap();
        }
        IgnoreRules::read(&builder.finish())
    }

    #[test]
    fn patterns_are_those_of_gitignore() {
        for (pattern, excluded, included) in [
            ("*.pyc", "tests/a/b.pyc", "tests/a/b.py"),
            ("/a", "tests/a/x", "tests/b/a"),
            ("a/b", "tests/a/b", "tests/x/a/b"),
            ("cache/", "tests/x/cache/y", "tests/cache"),
            ("**/x", "tests/a/b/x", "tests/a/b/xy"),
            ("a/**/x", "tests/a/x", "tests/x"),
            ("a/**", "tests/a/b/c", "tests/b"),
            ("?.[ch]", "tests/x.c", "tests/x.o"),
            ("[!a]", "tests/b", "tests/a"),
            ("a b\\ ", "tests/a b ", "tests/a b"),
            ("\\#x", "tests/#x", "tests/x"),
            ("[x", "tests/[x", "tests/x"),
            ("a.c", "tests/a.c", "tests/abc"),
        ] {
            let rules = rules(&[("tests/.harborignore", pattern)]).unwrap();
            assert!(rules.is_excluded(excluded), "{pattern} {excluded}");
            assert!(!rules.is_excluded(included), "{pattern} {included}");
        }
    }

    #[test]
    fn the_last_rule_of_the_innermost_file_counts() {
        let rules = rules(&[
            (".harborignore", "*"),
            ("environment/.harborignore", "*"),
            ("tests/.harborignore", "# all logs\n*.log\n!keep.log\n"),
            ("tests/sub/.harborignore", "keep.log\n!*.log\nkeep.log\n"),
            ("steps/one/solution/.harborignore", "x\n"),
        ])
        .unwrap();
        for (path, is_excluded) in [
            ("tests/a.log", true),
            ("tests/keep.log", false),
            ("tests/sub/keep.log", true),
            ("tests/sub/a.log", false),
            ("tests/.harborignore", true),
            ("solution/a.log", false),
            ("environment/x", false),
            ("steps/one/solution/x", true),
            ("steps/two/solution/x", false),
        ] {
            assert_eq!(rules.is_excluded(path), is_excluded, "{path}");
        }
    }

    #[test]
    fn rules_are_bounded() {
        assert!(rules(&[("tests/.harborignore", &"x\n".repeat(RULES_MAX + 1))]).is_err());
        assert!(rules(&[("tests/.harborignore", &"x".repeat(RULE_BYTES_MAX + 1))]).is_err());
        proptest::proptest!(|(text in r"[\[\]!*?/\\ a^#-]{0,20}")| {
            let _ = rules(&[("tests/.harborignore", &text)]).map(|rules| rules.is_excluded("tests/a/b"));
        });
    }
}
