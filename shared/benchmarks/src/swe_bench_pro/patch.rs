//! Cleaning of patches before they are applied.

use crate::python;

/// Beginning of a file's section.
const SECTION: &str = "diff --git ";

/// Removes the sections of binary files, and blank ones, as the official program does. Text before the first section stays.
pub(super) fn without_binary_sections(patch: &str) -> String {
    let mut kept = String::with_capacity(patch.len());
    if patch.is_empty() {
        return kept;
    }
    for section in sections(patch) {
        let is_blank = python::strip(section).is_empty();
        if !is_blank && !section.split('\n').any(is_binary) {
            kept.push_str(section);
        }
    }
    kept
}

/// Splits a patch before each line that begins a file's section.
fn sections(patch: &str) -> impl Iterator<Item = &str> {
    let starts = patch.match_indices(SECTION).map(|(at, _)| at);
    let starts = starts.filter(|at| *at == 0 || patch.as_bytes().get(at - 1) == Some(&b'\n'));
    let mut starts: Vec<usize> = starts.collect();
    if starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([patch.len()]).collect();
    starts.into_iter().zip(ends).filter_map(|(start, end)| patch.get(start..end))
}

/// Returns true for a line that only the section of a binary file has.
fn is_binary(line: &str) -> bool {
    let differs = || line.strip_prefix("Binary files ")?.strip_suffix(" differ");
    line == "GIT binary patch" || differs().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_sections_are_removed() {
        let text = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n";
        let binary = "diff --git a/b b/b\nBinary files a/b and b/b differ\n";
        let packed = "diff --git a/c b/c\nGIT binary patch\nliteral 3\nKcmZ\n\n";
        for (patch, expected) in [
            (String::new(), String::new()),
            (" \n\n".to_owned(), String::new()),
            (text.to_owned(), text.to_owned()),
            (format!("{binary}{text}{packed}"), text.to_owned()),
            (format!("some words\n{text}"), format!("some words\n{text}")),
            (format!("\n\n{text}"), text.to_owned()),
            // The last line may have no end.
            ("diff --git a/b b/b\nBinary files a/b and b/b differ".to_owned(), String::new()),
            // Lines of text that only contain the words, or end differently.
            (
                format!("{text}+Binary files a and b differ\n"),
                format!("{text}+Binary files a and b differ\n"),
            ),
            (binary.replace("differ\n", "differ\r\n"), binary.replace("differ\n", "differ\r\n")),
            ("Binary files differ\n".to_owned(), "Binary files differ\n".to_owned()),
            ("Binary files  differ\n".to_owned(), String::new()),
            (format!(" {text}"), format!(" {text}")),
        ] {
            assert_eq!(without_binary_sections(&patch), expected, "{patch:?}");
        }
    }
}
