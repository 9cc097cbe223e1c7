use proptest::prelude::*;

use super::*;
use crate::WorkspaceFile;

const GREET: &str =
    "def greet(name):\n    text = 'Hello'\n    return text\n\n\ndef bye():\n    return 'Bye'\n";

fn workspace() -> Workspace {
    Workspace::from([
        ("greet.py", GREET),
        (".github/check.yml", "on: push\n"),
        ("src/twice.txt", "a\nb\nc\na\nb\nc\n"),
        ("windows.txt", "one\r\ntwo\r\n"),
        ("open.txt", "first\nlast"),
        ("empty.txt", ""),
    ])
}

fn text<'a>(workspace: &'a Workspace, path: &str) -> &'a str {
    std::str::from_utf8(&workspace.get(path).unwrap().bytes).unwrap()
}

fn apply(reply: &str) -> Result<Applied, String> {
    let answer = Answer::read(reply).map_err(|error| error.to_string())?;
    answer.apply(&workspace()).map_err(|error| error.to_string())
}

/// Returns the text of the only changed file.
fn only(reply: &str) -> String {
    let applied = apply(reply).unwrap();
    assert_eq!(applied.changed.len(), 1, "{:?}", applied.changed);
    text(&applied.workspace, applied.changed.first().unwrap()).to_owned()
}

fn hello(name: &str) -> String {
    GREET.replace("'Hello'", name)
}

#[test]
fn a_diff_is_found_in_any_of_its_wrappings() {
    let body = "--- greet.py\n+++ greet.py\n@@ -1,3 +1,3 @@\n def greet(name):\n-    text = 'Hello'\n+    text = 'Hi'\n     return text\n";
    let git = format!(
        "diff --git a/greet.py b/greet.py\nindex 1..2 100644\n{}",
        body.replace("--- ", "--- a/").replace("+++ ", "+++ b/")
    );
    for reply in [
        format!("Here it is:\n```diff\n{body}```\nDone."),
        format!("```patch\n{body}```"),
        format!("~~~~diff\n{body}~~~~"),
        format!("```\n{git}```\n"),
        format!("I change one line.\n\n{git}\nThat is all.\n"),
        body.to_owned(),
        format!(
            "```diff\n{}```",
            body.replace("greet.py\n", "./workspace/greet.py\t2026-01-01\n")
                .replace("./workspace", "workspace")
        ),
        format!("<think>\n```diff\n{}```\n</think>\n```diff\n{body}```", body.replace("'Hi'", "'Draft'")),
        // Counts and starts are often wrong.
        format!("```diff\n{}```", body.replace("@@ -1,3 +1,3 @@", "@@ -40,7 +40,9 @@ def greet")),
        format!("```diff\n{}\n\n```", body.replace("@@ -1,3 +1,3 @@", "@@")),
        // No context after the change.
        format!("```diff\n{}```", body.replace("     return text\n", "")),
    ] {
        assert_eq!(only(&reply), hello("'Hi'"), "{reply}");
    }
}

#[test]
fn no_part_of_a_change_is_left_out() {
    let greet = "--- a/greet.py\n+++ b/greet.py\n@@ -1,3 +1,3 @@\n def greet(name):\n-    text = 'Hello'\n+    text = 'Hi </think>'\n     return text\n";
    let open = "--- a/open.txt\n+++ b/open.txt\n@@ -1,2 +1,2 @@\n-first\n+1\n last\n";
    for reply in [
        format!("```diff\n{greet}```\nAnd:\n```diff\n{open}```"),
        format!("```\n{greet}```\nAnd:\n```\n{open}```"),
        format!("```diff\n{greet}```\nAnd:\n```\n{open}```\n```text\n{open}```"),
        format!("Change this:\n{greet}\nThen that:\n{open}\nDone."),
        format!("{greet}\n```diff\n{open}```"),
        format!("<think>\n{open}</think>\n```diff\n{greet}{open}```"),
        format!("A draft:\n```diff\n{open}\n</think>\n```diff\n{greet}{open}```"),
        format!("File: greet.py\n```python\n{greet}```\nFile: `open.txt`\n```diff\n{open}```"),
        format!(
            "File: greet.py\n```\n{greet}```\n**File: `open.txt`**\n```text\ndiff --git a/open.txt b/open.txt\n{open}```"
        ),
        format!("<think>a</think>\n```diff\n{greet}```\n<think>\n{open}{open}</think>\n```diff\n{open}```"),
        // The whole change once more.
        format!("```diff\n{greet}{open}```\nAll in one:\n```diff\n{greet}{open}```"),
        format!("{greet}\nThen:\n{open}\nAll in one:\n```\n{greet}{open}```"),
        format!("File: greet.py\n```diff\n{greet}{open}```"),
    ] {
        let applied = apply(&reply).unwrap_or_else(|error| panic!("{error}: {reply}"));
        assert_eq!(text(&applied.workspace, "greet.py"), hello("'Hi </think>'"), "{reply}");
        assert_eq!(text(&applied.workspace, "open.txt"), "1\nlast", "{reply}");
    }
    // A patch outside of blocks has lines that look like one.
    let workspace = Workspace::from([("README.md", "# A\n```sh\nls\n```\nend\n")]);
    let reply = "--- a/README.md\n+++ b/README.md\n@@ -1,5 +1,5 @@\n-# A\n+# B\n ```sh\n ls\n ```\n end\n\nThat is all.\n";
    let applied = Answer::read(reply).unwrap().apply(&workspace).unwrap();
    assert_eq!(text(&applied.workspace, "README.md"), "# B\n```sh\nls\n```\nend\n");
    // A file whose content is a patch.
    let patch = only(&format!("File: `fix.patch`\n```diff\n{open}```\n"));
    assert_eq!(patch, open);
    assert_eq!(only(&format!("File: new.txt\n```\n{open}```\n")), open);
}

#[test]
fn hunks_that_moved_are_counted() {
    let at = |line: usize| {
        format!(
            "```diff\n--- a/greet.py\n+++ b/greet.py\n@@ -{line},2 +{line},2 @@\n def bye():\n-    return 'Bye'\n+    return 'Ciao'\n```"
        )
    };
    for (line, moved) in [(6, 0), (5, 1), (60, 1)] {
        let applied = apply(&at(line)).unwrap();
        assert_eq!(
            (applied.moved_hunks, text(&applied.workspace, "greet.py").contains("Ciao")),
            (moved, true),
            "{line}"
        );
    }
}

#[test]
fn of_equal_places_the_nearest_is_meant() {
    let at = |header: &str| {
        format!("```diff\n--- a/src/twice.txt\n+++ b/src/twice.txt\n{header}\n a\n-b\n+B\n c\n```")
    };
    assert_eq!(only(&at("@@ -4,3 +4,3 @@")), "a\nb\nc\na\nB\nc\n");
    assert_eq!(only(&at("@@ -2,3 +2,3 @@")), "a\nB\nc\na\nb\nc\n");
    let error = apply(&at("@@")).unwrap_err();
    assert!(error.contains("hunk 1 at 2 places"), "{error}");
    // Both hunks of a patch have the same lines, in their order.
    let both = "```diff\n--- a/src/twice.txt\n+++ b/src/twice.txt\n@@ -1,3 +1,4 @@\n a\n b\n+x\n c\n@@ -4,3 +5,4 @@\n a\n b\n+y\n c\n```";
    assert_eq!(only(both), "a\nb\nx\nc\na\nb\ny\nc\n");
}

#[test]
fn files_are_made_removed_and_renamed() {
    let new = "```diff\n--- /dev/null\n+++ b/lib/new.py\n@@ -0,0 +1,2 @@\n+a = 1\n+b = 2\n```";
    assert_eq!(only(new), "a = 1\nb = 2\n");
    let empty = "```diff\ndiff --git a/lib/__init__.py b/lib/__init__.py\nnew file mode 100644\nindex 0000000..e69de29\n```";
    assert_eq!(only(empty), "");
    let gone = "```diff\n--- a/open.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-first\n-last\n\\ No newline at end of file\n```";
    let applied = apply(gone).unwrap();
    assert!(applied.workspace.get("open.txt").is_none() && applied.changed.len() == 1);
    let renamed = "```diff\ndiff --git a/greet.py b/hello.py\nsimilarity index 90%\nrename from greet.py\nrename to hello.py\n--- a/greet.py\n+++ b/hello.py\n@@ -2,1 +2,1 @@\n-    text = 'Hello'\n+    text = 'Hi'\n```";
    let applied = apply(renamed).unwrap();
    assert_eq!(text(&applied.workspace, "hello.py"), hello("'Hi'"));
    assert!(applied.workspace.get("greet.py").is_none() && applied.changed.len() == 2);
    assert_eq!(only("```diff\n--- a/empty.txt\n+++ b/empty.txt\n@@ -0,0 +1 @@\n+x\n```"), "x\n");
    let hidden =
        "```diff\n--- a/.github/check.yml\n+++ b/.github/check.yml\n@@ -1 +1,2 @@\n on: push\n+x: y\n```";
    assert_eq!(only(hidden), "on: push\nx: y\n");
}

#[test]
fn line_breaks_stay_as_they_are() {
    let windows = "```diff\n--- a/windows.txt\n+++ b/windows.txt\n@@ -1,2 +1,3 @@\n one\n+middle\n two\n```";
    assert_eq!(only(windows), "one\r\nmiddle\r\ntwo\r\n");
    assert_eq!(only(&windows.replace('\n', "\r\n")), "one\r\nmiddle\r\ntwo\r\n");
    let open = "```diff\n--- a/open.txt\n+++ b/open.txt\n@@ -1,2 +1,2 @@\n-first\n+FIRST\n last\n```";
    assert_eq!(only(open), "FIRST\nlast");
    let closed = "```diff\n--- a/open.txt\n+++ b/open.txt\n@@ -1,2 +1,2 @@\n first\n-last\n\\ No newline at end of file\n+last\n```";
    assert_eq!(only(closed), "first\nlast\n");
    let opened = "```diff\n--- a/greet.py\n+++ b/greet.py\n@@ -6,2 +6,2 @@\n def bye():\n-    return 'Bye'\n+    return 'Bye'\n\\ No newline at end of file\n```";
    assert_eq!(only(opened), GREET.trim_end());
}

#[test]
fn nothing_is_guessed() {
    for (reply, part) in [
        (
            "```diff\n--- a/greet.py\n+++ b/greet.py\n@@ -1,2 +1,3 @@\n def other(name):\n+    x = 1\n     text = 'Hello'\n```",
            "doesn't have the lines of hunk 1",
        ),
        ("```diff\n--- a/nope.py\n+++ b/nope.py\n@@ -1 +1 @@\n-a\n+b\n```", "no file `nope.py`"),
        (
            "```diff\n--- a/open.txt\n+++ b/greet.py\n@@ -1 +1 @@\n-def greet(name):\n+b\n```",
            "doesn't have the lines",
        ),
        ("```diff\n--- /dev/null\n+++ b/greet.py\n@@ -0,0 +1 @@\n+b\n```", "exists already"),
        ("```diff\n--- a/greet.py\n+++ b/greet.py\n@@\n+b\n```", "doesn't say where it belongs"),
        ("```diff\n--- a/greet.py\n+++ b/greet.py\n@@ -90,0 +91 @@\n+b\n```", "doesn't say where it belongs"),
        ("```diff\n--- a/greet.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-def greet(name):\n```", "leaves lines"),
        ("```diff\n--- /dev/null\n+++ b/src\n@@ -0,0 +1 @@\n+b\n```", "it is a folder"),
        ("```diff\n--- /dev/null\n+++ b/greet.py/x\n@@ -0,0 +1 @@\n+b\n```", "a part of its path is a file"),
        (
            "```diff\n--- a/greet.py\n+++ b/greet.py\n@@ -1 +1 @@\n-def greet(name):\n+def greet(name):\n```",
            "leaves every file as it is",
        ),
        // The second patch is about the file as the first one left it.
        (
            "```diff\n--- a/open.txt\n+++ b/open.txt\n@@ -1 +1 @@\n-first\n+1\n```\n```diff\n--- a/open.txt\n+++ b/open.txt\n@@ -1 +1 @@\n-first\n+2\n```",
            "doesn't have the lines",
        ),
    ] {
        let error = apply(reply).unwrap_err();
        assert!(error.contains(part), "{reply}\n{error}");
    }
}

#[test]
fn replies_that_cannot_be_read_say_why() {
    for (reply, part) in [
        ("", "is empty"),
        ("<think>```diff\n--- a\n+++ a\n```</think> \n", "is empty"),
        ("I don't know.", "no unified diff"),
        ("```python\nprint(1)\n```", "no unified diff"),
        ("```diff\n--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n```", "`../x` is no path"),
        ("```diff\n--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n```", "absolute"),
        (
            "```diff\ndiff --git a/x.png b/x.png\nBinary files a/x.png and b/x.png differ\n```",
            "line 3 of the reply: a patch can't change a binary file",
        ),
        (
            "```diff\ndiff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n```",
            "line 3 of the reply: a patch can't make a link or a submodule",
        ),
        (
            "```diff\ndiff --git a/s b/s\nindex 1..2 160000\n--- a/s\n+++ b/s\n@@ -1 +1 @@\n-a\n+b\n```",
            "a patch can't make a link or a submodule",
        ),
        ("```diff\nwhatever\n```", "line 2 of the reply: expected `--- PATH`"),
        ("```diff\n--- a/x\n+++ b/x\nchanged\n```", "line 4 of the reply: expected `@@`"),
        (
            "```diff\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nc d\n```",
            "line 7 of the reply: expected `--- PATH`",
        ),
        ("x.py\n<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", "line 2 of the reply: the block has no `=======`"),
        ("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "must have the path"),
        (
            "x.py\n<<<<<<< SEARCH\na\n<<<<<<< SEARCH\n=======\nb\n>>>>>>> REPLACE\n",
            "line 4 of the reply: expected `=======`",
        ),
        ("File: a.py\n```\nx\n```\nFile: a.py\n```\ny\n```", "`a.py` is there twice"),
        ("File: a.py\n```\nx\n", "has no end"),
        (
            "File: a.md\n```\n# Title\n```sh\nls\n```\nmore\n```\n",
            "line 4 of the reply: a block begins within the content",
        ),
        ("File: a.md\n```\nx\n```\nmore\n```\n", "line 6 of the reply: the block has no end"),
        (
            "x.py\n<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE\n",
            "line 6 of the reply: a second `=======`",
        ),
        (
            "x.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n  <<<<<<< SEARCH\nc\n=======\nd\n  >>>>>>> REPLACE\n",
            "line 7 of the reply: expected `<<<<<<< SEARCH`",
        ),
        (
            "```diff\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
            "line 1 of the reply: the block with the patch has no end",
        ),
        ("```\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b", "the block with the patch has no end"),
        (
            "--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\n a\n-b\n+c\n",
            "line 6 of the reply: the last hunk has fewer lines",
        ),
        (
            "File: a.py\n```\nx\n```\n```diff\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-a\n+b\n```",
            "both unified diff and whole files",
        ),
    ] {
        let error = Answer::read(reply).unwrap_err().to_string();
        assert!(error.contains(part), "{reply}\n{error}");
    }
    let error = Answer::read(&"x".repeat(REPLY_BYTES_MAX + 1)).unwrap_err();
    assert!(matches!(error, ReadError::TooLong { .. }));
    let many: String = (0..=FILES_MAX).map(|n| format!("File: {n}.py\n```\nx\n```\n")).collect();
    assert_eq!(Answer::read(&many), Err(ReadError::TooManyFiles));
}

#[test]
fn large_answers_take_no_time() {
    let hunks = "@@\n-a\n+b\n".repeat(PARTS_MAX + 1);
    let many = format!("```diff\n--- a/x\n+++ b/x\n{hunks}```");
    assert_eq!(Answer::read(&many), Err(ReadError::TooManyParts));
    // The block at the end is looked for once, and so is the end of one that a context line seems to open.
    for part in [
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\ntext\n",
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n ```a\n-a\n+b\ntext\n",
    ] {
        let many = format!("{}{}```\nx\n```\n", part.repeat(PARTS_MAX + 1), "text\n".repeat(100_000));
        assert_eq!(Answer::read(&many), Err(ReadError::TooManyParts));
    }
    // Equal lines are where a naive search takes quadratic time.
    let lines = "x\n".repeat(90_000);
    let workspace = Workspace::from([("x", lines.as_str()), ("long", "\n".repeat(100_001).as_str())]);
    let reply = format!("x\n<<<<<<< SEARCH\n{}y\n=======\n>>>>>>> REPLACE\n", "x\n".repeat(45_000));
    let error = Answer::read(&reply).unwrap().apply(&workspace).unwrap_err();
    assert!(matches!(error, ApplyError::Missing { .. }), "{error}");
    let long = Answer::read("long\n<<<<<<< SEARCH\na\n=======\n>>>>>>> REPLACE\n").unwrap();
    assert!(matches!(long.apply(&workspace), Err(ApplyError::TooLong { .. })));
}

#[test]
fn blocks_replace_what_is_there_once() {
    let reply = "**greet.py**\n```python\n<<<<<<< SEARCH\n    text = 'Hello'\n=======\n    text = 'Hi'\n>>>>>>> REPLACE\n<<<<<<< SEARCH\n    return 'Bye'\n=======\n    return 'Ciao'\n>>>>>>> REPLACE\n```\n";
    assert_eq!(only(reply), hello("'Hi'").replace("'Bye'", "'Ciao'"));
    let new = "File: `lib/new.py`\n```\n<<<<<<< SEARCH\n=======\na = 1\n>>>>>>> REPLACE\n```";
    assert_eq!(Answer::read(new).unwrap().form(), Form::Blocks);
    assert_eq!(only(new), "a = 1\n");
    let windows = "windows.txt\n<<<<<<< SEARCH\none\n=======\n1\n>>>>>>> REPLACE\n";
    assert_eq!(only(windows), "1\r\ntwo\r\n");
    for (reply, part) in [
        (
            "src/twice.txt\n<<<<<<< SEARCH\nb\n=======\nB\n>>>>>>> REPLACE",
            "the block in line 2 of the reply at 2 places",
        ),
        ("greet.py\n<<<<<<< SEARCH\nTEXT\n=======\nB\n>>>>>>> REPLACE", "the first of them is `TEXT`"),
        ("greet.py\n<<<<<<< SEARCH\n=======\nB\n>>>>>>> REPLACE", "exists already"),
        ("nope.py\n<<<<<<< SEARCH\na\n=======\nB\n>>>>>>> REPLACE", "no file `nope.py`"),
    ] {
        let error = apply(reply).unwrap_err();
        assert!(error.contains(part), "{reply}\n{error}");
    }
}

#[test]
fn whole_files_have_their_path_before_them() {
    let reply = "File: greet.py\n\n```python\ndef greet():\n    pass\n```\n\n**File: `lib/new.md`**\n````\n```\ncode\n```\n````\nAnd an example:\n```\nignored\n```\n";
    let applied = apply(reply).unwrap();
    assert_eq!(text(&applied.workspace, "greet.py"), "def greet():\n    pass\n");
    assert_eq!(text(&applied.workspace, "lib/new.md"), "```\ncode\n```\n");
    assert_eq!(applied.changed.len(), 2);
    assert_eq!(only("File: windows.txt\n```\none\nthree\n```"), "one\r\nthree\r\n");
}

#[test]
fn whole_files_may_have_blocks_that_end_within_them() {
    let content = "# Use\n\n1. Run:\n   ```sh\n   make\n   ```\n2. Wait.\n";
    for reply in [
        format!("File: README.md\n```markdown\n{content}```\n"),
        format!("a.</think>File: README.md\n~~~\n{content}~~~\n"),
        format!(
            "<think>a</think>\n<think>File: greet.py\n```\nx\n```\n</think>\nFile: README.md\n```\n{content}```\n"
        ),
    ] {
        assert_eq!(only(&reply), content, "{reply}");
    }
}

#[test]
fn only_texts_are_changed() {
    let file = |bytes: &[u8]| WorkspaceFile { bytes: bytes.to_vec(), is_executable: true };
    let files = [
        ("image.png".to_owned(), file(b"\x89PNG\0")),
        ("latin.txt".to_owned(), file(b"\xe9t\xe9\n")),
        ("run.sh".to_owned(), file(b"a\n")),
    ];
    let workspace = Workspace::new(files.into());
    let change = |path: &str| {
        let reply = format!("```diff\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n```");
        Answer::read(&reply).unwrap().apply(&workspace)
    };
    for path in ["image.png", "latin.txt"] {
        assert_eq!(change(path), Err(ApplyError::NotText { path: path.to_owned() }));
    }
    let applied = change("run.sh").unwrap();
    assert_eq!(applied.workspace.get("run.sh"), Some(&file(b"b\n")), "the mode is kept");
}

/// Lines of a file, without line breaks.
fn lines() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[ab +@\\-`\\\\]{0,3}", 1..12)
}

proptest! {
    #[test]
    fn a_patch_makes_the_new_file_of_the_old_one(old in lines(), new in lines(), start in 0_usize..20, closed in any::<bool>()) {
        let body = |lines: &[String], mark: char| lines.iter().map(|line| format!("{mark}{line}\n")).collect::<String>();
        let (removed, added) = (body(&old, '-'), body(&new, '+'));
        let reply = format!("`````diff\n--- a/f\n+++ b/f\n@@ -{start},{} +{start},{} @@\n{removed}{added}`````", old.len(), new.len());
        // An empty last line without a line break is no line.
        let is_closed = closed || old.last().is_some_and(String::is_empty) || new.last().is_some_and(String::is_empty);
        let end = if is_closed { "\n" } else { "" };
        let workspace = Workspace::from([("f", format!("{}{end}", old.join("\n")).as_str())]);
        let applied = Answer::read(&reply).unwrap().apply(&workspace);
        let expected = format!("{}{end}", new.join("\n"));
        match applied {
            Ok(applied) => prop_assert_eq!(text(&applied.workspace, "f"), expected),
            Err(error) => prop_assert!(error == ApplyError::Nothing && old == new, "{}", error),
        }
    }

    #[test]
    fn no_reply_makes_trouble(reply in "(?s)[-+@` \\\\\na/b<>=SEARCHREPLACEFile:diff0-9,]{0,200}") {
        if let Ok(answer) = Answer::read(&reply) {
            let _ = answer.apply(&workspace());
        }
    }
}
