use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

/// Size of a block of an archive, in bytes.
const BLOCK: usize = 512;

/// Returns an entry of a type with its content.
fn entry(name: &[u8], kind: u8, mode: u32, content: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; BLOCK];
    let mut write = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    write(0, name);
    write(100, format!("{mode:07o}\0").as_bytes());
    write(124, format!("{:011o}\0", content.len()).as_bytes());
    write(148, b"        ");
    write(156, &[kind]);
    write(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut entry = header.to_vec();
    entry.extend_from_slice(content);
    entry.resize(entry.len().next_multiple_of(BLOCK), 0);
    entry
}

fn packed(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&entries.concat()).unwrap();
    encoder.write_all(&[0; 2 * BLOCK]).unwrap();
    encoder.finish().unwrap()
}

fn record(key: &str, value: &str) -> String {
    let bare = key.len() + value.len() + 3;
    let length = (bare..).find(|length| length.to_string().len() + bare == *length).unwrap();
    format!("{length} {key}={value}\n")
}

fn read(entries: &[Vec<u8>]) -> Result<Vec<(String, u32, u64)>, Refusal> {
    let tree = read_tar_gz_tree(&packed(entries), TreeLimits::default())?;
    Ok(tree.files().map(|(path, file)| (path.to_string(), file.mode.bits(), file.bytes)).collect())
}

#[test]
fn files_have_their_names_modes_and_contents() {
    let long = format!("task/{}/x.txt", "d".repeat(120));
    let found = read(&[
        entry(b"./", b'5', 0o755, b""),
        entry(b"./task/", b'5', 0o755, b""),
        entry(b"pax_global_header", b'g', 0, record("comment", "x").as_bytes()),
        entry(b"./task/a.txt", b'0', 0o644, b"a"),
        entry(b"task/tool", b'0', 0o755, &[7; 513]),
        entry(b"task/run.sh", 0, 0o600, b""),
        entry(b"././@LongLink", b'L', 0, format!("{long}\0").as_bytes()),
        entry(b"task/cut", b'0', 0o644, b"xy"),
        entry(b"h", b'x', 0, (record("mtime", "1.5") + &record("path", "task/ü")).as_bytes()),
        entry(b"task/u", b'0', 0o644, b"xyz"),
        entry(b"task/.DS_Store", b'0', 0o644, b"junk"),
    ])
    .unwrap();
    let expected = [
        ("task/a.txt", 0o644, 1),
        (long.as_str(), 0o644, 2),
        ("task/run.sh", 0o755, 0),
        ("task/tool", 0o755, 513),
        ("task/ü", 0o644, 3),
    ];
    let expected: Vec<_> =
        expected.iter().map(|(path, mode, bytes)| ((*path).to_owned(), *mode, *bytes)).collect();
    assert_eq!(found, expected);
}

#[test]
fn unsafe_archives_are_refused() {
    let file = |name: &str| entry(name.as_bytes(), b'0', 0o644, b"x");
    for (entries, code) in [
        (vec![file("../x")], "unsafe_path"),
        (vec![file("/etc/passwd")], "unsafe_path"),
        (vec![file("a/../../x")], "unsafe_path"),
        (vec![entry(b"\xff", b'0', 0, b"")], "name_not_utf8"),
        (vec![entry(b"l", b'2', 0, b"")], "not_a_regular_file"),
        (vec![entry(b"l", b'1', 0, b"")], "not_a_regular_file"),
        (vec![entry(b"l", b'3', 0, b"")], "not_a_regular_file"),
        (vec![file("a"), file("a")], "duplicate_path"),
        (vec![file("a"), file("A")], "path_collision"),
        (vec![file("a"), file("a/b")], "file_is_folder"),
        (vec![entry(b"h", b'x', 0, b"9 path")], "archive_damaged"),
        (
            vec![entry(b"h", b'x', 0, record("GNU.sparse.major", "1").as_bytes())],
            "unsupported_archive_feature",
        ),
        (
            vec![entry(b"h", b'x', 0, record("size", "9").as_bytes()), file("y")],
            "unsupported_archive_feature",
        ),
        (vec![entry(b"h", b'x', 0, record("path", "../x").as_bytes()), file("y")], "unsafe_path"),
        (vec![entry(b"h", b'L', 0, &vec![b'x'; 70_000]), file("y")], "archive_damaged"),
        (vec![vec![7; BLOCK]], "archive_damaged"),
    ] {
        assert_eq!(read(&entries).unwrap_err().code(), code, "{entries:?}");
    }
    let gzip = packed(&[file("a")]);
    for (bytes, code) in
        [(&b"PK\x03\x04"[..], "archive_damaged"), (&gzip[..gzip.len() / 2], "archive_damaged")]
    {
        assert_eq!(read_tar_gz_tree(bytes, TreeLimits::default()).unwrap_err().code(), code);
    }
}

#[test]
fn sizes_and_entries_are_limited() {
    let limits = TreeLimits { entries_max: 3, file_bytes_max: 10, task_bytes_max: 15 };
    let file = |name: &str, bytes: usize| entry(name.as_bytes(), b'0', 0o644, &vec![0; bytes]);
    for (entries, code) in [
        (vec![file("a", 11)], "file_too_large"),
        (vec![file("a", 10), file("b", 6)], "task_too_large"),
        (vec![file(".DS_Store", 1 << 20)], "task_too_large"),
        (vec![file("a", 0), file("b", 0), file("c", 0), file("d", 0)], "too_many_entries"),
    ] {
        assert_eq!(read_tar_gz_tree(&packed(&entries), limits).unwrap_err().code(), code);
    }
    assert!(read_tar_gz_tree(&packed(&[file("a", 10), file("b", 5)]), limits).is_ok());
}

proptest! {
    #[test]
    fn damaged_archives_are_never_a_panic(at in 0_usize..2048, byte in any::<u8>(), cut in 0_usize..2048) {
        let mut bytes = [
            entry(b"h", b'x', 0, record("path", "task/x").as_bytes()),
            entry(b"y", b'0', 0o644, b"content"),
        ]
        .concat();
        bytes[at] = byte;
        bytes.truncate(bytes.len() - cut);
        read(&[bytes]).ok();
    }
}
