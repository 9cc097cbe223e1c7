//! Changes of a workspace as replies that an answer is read from.

use std::collections::BTreeSet;

use crate::{Answer, ReadError, Workspace, WorkspaceFile, unified_diff};

/// Change between two workspaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// A unified diff in a fenced block, which [`Answer::read`] reads; empty if nothing has changed.
    pub reply: String,
    /// Files whose change can't be written as a diff, each with the reason. Of those with other line ends, the rest of the
    /// change is in the diff.
    pub left_out: Vec<(String, String)>,
}

impl Change {
    /// Computes the change between two workspaces. Modes of files aren't part of it.
    ///
    /// # Errors
    /// If it is larger than an answer can be.
    pub fn between(before: &Workspace, after: &Workspace) -> Result<Self, ReadError> {
        let all: BTreeSet<&String> = before.files().keys().chain(after.files().keys()).collect();
        let content =
            |workspace: &'_ Workspace, path: &str| workspace.get(path).map(|file| file.bytes.clone());
        let is_changed = |path: &&&String| content(before, path) != content(after, path);
        let mut changed: BTreeSet<String> =
            all.iter().filter(is_changed).map(|path| (*path).clone()).collect();
        let mut left_out = Vec::new();
        match write_and_apply(before, after, &changed) {
            Reply::Exactly(reply) => return Ok(Self { reply, left_out }),
            Reply::TooLarge(error) => return Err(error),
            Reply::Otherwise(_) => {}
        }
        // Few files are the cause: characters that a diff can't have, or a file in place of a folder.
        let mut taken = after.clone();
        changed.retain(|path| {
            let one = BTreeSet::from([path.clone()]);
            let why = match write_and_apply(before, after, &one) {
                Reply::Exactly(_) => return true,
                Reply::Otherwise(why) => why,
                Reply::TooLarge(error) => error.to_string(),
            };
            if let Some(file) = with_line_ends(before.get(path), after.get(path)) {
                let is_changed = before.get(path).map(|file| &file.bytes) != Some(&file.bytes);
                taken.insert(path, file);
                if matches!(write_and_apply(before, &taken, &one), Reply::Exactly(_)) {
                    left_out
                        .push((path.clone(), "its line ends; the rest of its change is taken".to_owned()));
                    return is_changed;
                }
            }
            left_out.push((path.clone(), why));
            false
        });
        match write_and_apply(before, &taken, &changed) {
            Reply::Exactly(reply) => Ok(Self { reply, left_out }),
            Reply::TooLarge(error) => Err(error),
            Reply::Otherwise(why) => {
                left_out.extend(changed.into_iter().map(|path| (path, why.clone())));
                Ok(Self { reply: String::new(), left_out })
            }
        }
    }
}

/// Reply with a change, or the reason why there is none.
enum Reply {
    /// It leads to the same files.
    Exactly(String),
    /// It doesn't, for this reason.
    Otherwise(String),
    /// It is larger than an answer can be.
    TooLarge(ReadError),
}

/// Writes a change as a reply, and checks that the reply leads to the same files.
fn write_and_apply(before: &Workspace, after: &Workspace, changed: &BTreeSet<String>) -> Reply {
    if changed.is_empty() {
        return Reply::Exactly(String::new());
    }
    let diff = unified_diff(before, after, changed);
    let end = if diff.ends_with('\n') { "" } else { "\n" };
    let reply = format!("```diff\n{diff}{end}```\n");
    let answer = match Answer::read(&reply) {
        Ok(answer) => answer,
        Err(error @ (ReadError::TooLong { .. } | ReadError::TooManyParts | ReadError::TooManyFiles)) => {
            return Reply::TooLarge(error);
        }
        Err(error) => return Reply::Otherwise(error.to_string()),
    };
    let applied = match answer.apply(before) {
        Ok(applied) => applied.workspace,
        Err(error) => return Reply::Otherwise(error.to_string()),
    };
    let content = |workspace: &'_ Workspace, path: &str| workspace.get(path).map(|file| file.bytes.clone());
    match changed.iter().all(|path| content(&applied, path) == content(after, path)) {
        true => Reply::Exactly(reply),
        false => Reply::Otherwise("a diff can't have its line ends or characters".to_owned()),
    }
}

/// Returns a changed file with the line ends of the one before, and a new file with line feeds; `None` if it has them.
fn with_line_ends(before: Option<&WorkspaceFile>, after: Option<&WorkspaceFile>) -> Option<WorkspaceFile> {
    let after = after?;
    let text = std::str::from_utf8(&after.bytes).ok()?;
    let plain = text.replace("\r\n", "\n");
    let has_returns = before.is_some_and(|file| {
        let count = |end: &[u8]| file.bytes.windows(end.len()).filter(|part| *part == end).count();
        count(b"\n") > 0 && count(b"\n") == count(b"\r\n")
    });
    let wanted = if has_returns { plain.replace('\n', "\r\n") } else { plain };
    (wanted != text).then(|| WorkspaceFile { bytes: wanted.into_bytes(), is_executable: after.is_executable })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn applied(before: &Workspace, change: &Change) -> Workspace {
        Answer::read(&change.reply).unwrap().apply(before).unwrap().workspace
    }

    #[test]
    fn a_change_is_a_reply_that_makes_it() {
        let before = Workspace::from([
            ("a.py", "one\ntwo\n"),
            ("crlf.txt", "one\r\ntwo\r\n"),
            ("empty", ""),
            ("gone/b", "x"),
            ("same", "s"),
        ]);
        let after = Workspace::from([
            ("a.py", "one\n```\ntwo"),
            ("crlf.txt", "one\r\n2\r\n"),
            ("new/__init__.py", ""),
            ("new/c d.py", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n```diff\n<<<<<<< SEARCH\nFile: x\n"),
            ("same", "s"),
        ]);
        let change = Change::between(&before, &after).unwrap();
        assert_eq!(change.left_out, []);
        assert_eq!(applied(&before, &change), after, "{}", change.reply);
        assert_eq!(Change::between(&before, &before).unwrap(), Change::default());
    }

    #[test]
    fn what_a_diff_can_not_say_is_named() {
        let before = Workspace::from([("a", "1\n")]);
        let after = Workspace::from([
            ("a", "2\n"),
            ("lone", "one\rtwo\n"),
            ("think", "</think>\n"),
            ("workspace/w", "w\n"),
        ]);
        let change = Change::between(&before, &after).unwrap();
        let names: Vec<&str> = change.left_out.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(applied(&before, &change), Workspace::from([("a", "2\n"), ("think", "</think>\n")]));
        assert_eq!(names, ["lone", "workspace/w"], "{:?}", change.left_out);
    }

    #[test]
    fn files_keep_their_line_ends() {
        let before = Workspace::from([("a", "1\n2\n"), ("b", "1\r\n2\r\n"), ("c", "1\n")]);
        let after =
            Workspace::from([("a", "1\r\n3\r\n"), ("b", "1\n3\n"), ("c", "1\r\n"), ("new", "x\r\ny\n")]);
        let change = Change::between(&before, &after).unwrap();
        let names: Vec<&str> = change.left_out.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "new"], "{:?}", change.left_out);
        let taken = Workspace::from([("a", "1\n3\n"), ("b", "1\r\n3\r\n"), ("c", "1\n"), ("new", "x\ny\n")]);
        assert_eq!(applied(&before, &change), taken, "{}", change.reply);
    }

    #[test]
    fn a_change_has_a_maximum_size() {
        let files = (0..501).map(|number| {
            let file = crate::WorkspaceFile { bytes: b"x\n".to_vec(), is_executable: false };
            (format!("f{number}"), file)
        });
        let error = Change::between(&Workspace::from([]), &Workspace::new(files.collect())).unwrap_err();
        assert_eq!(error, ReadError::TooManyFiles);
    }

    proptest! {
        #[test]
        fn any_texts_are_changed_exactly_or_left_out(
            old in proptest::collection::btree_map("[a-c](/[a-c])?", "[ab \\-+@`\r\n\\\\]{0,12}", 0..4),
            new in proptest::collection::btree_map("[a-c](/[a-c])?", "[ab \\-+@`\r\n\\\\]{0,12}", 0..4),
        ) {
            let workspace = |files: &std::collections::BTreeMap<String, String>| {
                let mut made = Workspace::default();
                for (path, text) in files {
                    if !made.leads_through_file(path) && !made.has_folder(path) {
                        made.write(path, text.clone());
                    }
                }
                made
            };
            let (before, after) = (workspace(&old), workspace(&new));
            let change = Change::between(&before, &after).unwrap();
            let made = match change.reply.is_empty() {
                true => before.clone(),
                false => applied(&before, &change),
            };
            let left_out: Vec<&String> = change.left_out.iter().map(|(path, _)| path).collect();
            for path in before.files().keys().chain(after.files().keys()).filter(|path| !left_out.contains(path)) {
                prop_assert_eq!(made.get(path), after.get(path), "{} in {}", path, change.reply);
            }
        }
    }
}
