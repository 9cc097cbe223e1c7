use super::*;

fn add(builder: &mut TreeBuilder, path: &str, mode: u32, content: &str) -> Result<(), &'static str> {
    let path = TaskPath::new(path).unwrap();
    builder.add(&path, Some(mode), &mut content.as_bytes()).map_err(|refusal| refusal.code())
}

fn tree(files: &[(&str, u32, &str)]) -> Tree {
    let mut builder = TreeBuilder::default();
    for (path, mode, content) in files {
        add(&mut builder, path, *mode, content).unwrap();
    }
    builder.finish()
}

#[test]
fn the_hash_covers_paths_modes_and_bytes() {
    let files = [("b/run.sh", 0o644, "echo"), ("a", 0o600, "x")];
    let hash = tree(&files).content_hash();
    // printf 'bench-task-v1\n644 %s a\n755 %s b/run.sh\n' "$(printf x | sha256sum | cut -c-64)" … | sha256sum
    let lines = format!(
        "bench-task-v1\n644 {} a\n755 {} b/run.sh\n",
        hex::encode(Sha256::digest("x")),
        hex::encode(Sha256::digest("echo"))
    );
    assert_eq!(hash.to_string(), hex::encode(Sha256::digest(lines)));
    let reversed: Vec<_> = files.iter().rev().copied().collect();
    assert_eq!(tree(&reversed).content_hash(), hash);
    for other in [
        [("b/run.sh", 0o644, "echo"), ("a", 0o600, "y")],
        [("b/run.sh", 0o644, "echo"), ("a", 0o700, "x")],
        [("b/run.sh", 0o644, "echo"), ("c", 0o600, "x")],
    ] {
        assert_ne!(tree(&other).content_hash(), hash);
    }
}

#[test]
fn paths_that_collide_are_refused() {
    for (first, second, code) in [
        ("a", "a", "duplicate_path"),
        ("a", "A", "path_collision"),
        ("Tests/a", "tests/b", "path_collision"),
        ("\u{e4}", "a\u{308}", "path_collision"),
        ("a", "a/b", "file_is_folder"),
        ("a/b", "a", "file_is_folder"),
    ] {
        let mut builder = TreeBuilder::default();
        add(&mut builder, first, 0o644, "").unwrap();
        assert_eq!(add(&mut builder, second, 0o644, ""), Err(code), "{first} {second}");
    }
}

#[test]
fn sizes_are_counted_while_reading() {
    let limits = TreeLimits { entries_max: 3, file_bytes_max: 10, task_bytes_max: 15 };
    let mut builder = TreeBuilder::new(limits);
    assert_eq!(add(&mut builder, "a", 0o644, "01234567890"), Err("file_too_large"));
    let mut builder = TreeBuilder::new(limits);
    add(&mut builder, "a", 0o644, "0123456789").unwrap();
    assert_eq!(add(&mut builder, "b", 0o644, "012345"), Err("task_too_large"));
    let mut builder = TreeBuilder::new(limits);
    add(&mut builder, "x/y/a", 0o644, "").unwrap();
    assert_eq!(add(&mut builder, "x/y/b", 0o644, ""), Err("too_many_entries"));
    let mut endless = std::io::repeat(0);
    let path = TaskPath::new("a").unwrap();
    let refusal = TreeBuilder::new(limits).add(&path, None, &mut endless).unwrap_err();
    assert_eq!(refusal.code(), "file_too_large");
}

#[test]
fn junk_is_left_out_and_large_texts_are_not_kept() {
    let large = "x".repeat(KEPT_BYTES_MAX as usize + 1);
    let tree = tree(&[
        ("__MACOSX/._task.toml", 0o644, "x"),
        ("tests/.DS_Store", 0o644, "x"),
        ("instruction.md", 0o644, &large),
        ("task.toml", 0o644, "a = 1"),
        ("data.csv", 0o644, "1"),
    ]);
    let paths: Vec<&str> = tree.files().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["data.csv", "instruction.md", "task.toml"]);
    assert_eq!(tree.config("instruction.md").unwrap_err().code(), "config_too_large");
    assert_eq!(tree.config("task.toml").unwrap(), Some(&b"a = 1"[..]));
    assert_eq!(tree.config("missing.yaml").unwrap(), None);
    assert_eq!(tree.bytes(), large.len() as u64 + 6);
}
