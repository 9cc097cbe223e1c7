//! Unified diffs of workspaces.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use similar::TextDiff;

use crate::workspace::{Workspace, WorkspaceFile};

/// Number of unchanged lines around a change.
const CONTEXT: usize = 3;

/// Returns the difference between two workspaces in these files, as a unified diff that [`Answer`](crate::Answer) reads.
pub fn unified_diff(before: &Workspace, after: &Workspace, changed: &BTreeSet<String>) -> String {
    let mut diff = String::new();
    // They follow at the end, since a header of git counts for the lines after it.
    let mut empty = String::new();
    for path in changed {
        let (old, new) = (before.get(path), after.get(path));
        let name = |file: Option<&WorkspaceFile>, side: &str| match file {
            Some(_) => format!("{side}/{path}"),
            None => "/dev/null".to_owned(),
        };
        let (old_name, new_name) = (name(old, "a"), name(new, "b"));
        let (Some(old), Some(new)) = (text(old), text(new)) else {
            let _ = writeln!(diff, "Binary files {old_name} and {new_name} differ");
            continue;
        };
        if old.is_empty() && new.is_empty() {
            // A file without lines has no hunk.
            let mode = if old_name == "/dev/null" { "new file mode" } else { "deleted file mode" };
            let _ = writeln!(empty, "diff --git a/{path} b/{path}\n{mode} 100644");
            continue;
        }
        let lines = TextDiff::from_lines(old, new);
        let _ = write!(diff, "{}", lines.unified_diff().context_radius(CONTEXT).header(&old_name, &new_name));
    }
    if !empty.is_empty() && !diff.is_empty() && !diff.ends_with('\n') {
        diff.push('\n');
    }
    diff + &empty
}

/// Returns the text of a file; that of no file is empty.
fn text(file: Option<&WorkspaceFile>) -> Option<&str> {
    file.map_or(Some(""), |file| std::str::from_utf8(&file.bytes).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Answer;

    #[test]
    fn a_diff_names_new_changed_and_removed_files() {
        let before = Workspace::from([("a", "1\n2\n"), ("gone", "x\n"), ("same", "s\n")]);
        let after = Workspace::from([("a", "1\n3\n"), ("new", "n\n"), ("same", "s\n")]);
        let changed = ["a", "gone", "new"].map(str::to_owned).into();
        assert_eq!(
            unified_diff(&before, &after, &changed),
            "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n"
        );
    }

    proptest! {
        #[test]
        fn a_diff_makes_the_change_that_it_shows(
            old in proptest::collection::vec("[ab]{0,2}", 1..30),
            new in proptest::collection::vec("[ab]{0,2}", 1..30),
        ) {
            let joined = |lines: &[String]| format!("{}\n", lines.join("\n"));
            let (old, new) = (joined(&old), joined(&new));
            prop_assume!(old != new);
            let before = Workspace::from([("f", old.as_str())]);
            let after = Workspace::from([("f", new.as_str())]);
            let diff = unified_diff(&before, &after, &["f".to_owned()].into());
            let answer = Answer::read(&format!("```diff\n{diff}```\n")).unwrap();
            prop_assert_eq!(answer.apply(&before).unwrap().workspace, after, "{}", diff);
        }
    }
}
