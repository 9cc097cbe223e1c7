use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{DateTime, ZipWriter};

use super::*;

fn options() -> SimpleFileOptions {
    SimpleFileOptions::default().last_modified_time(DateTime::default())
}

/// Archive with these files.
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        match name.strip_suffix('/') {
            Some(folder) => writer.add_directory(folder, options()).unwrap(),
            None => {
                writer.start_file(*name, options()).unwrap();
                writer.write_all(content).unwrap();
            }
        }
    }
    writer.finish().unwrap().into_inner()
}

fn read(bytes: &[u8]) -> Result<Tree, Refusal> {
    read_tree(Cursor::new(bytes), TreeLimits::default())
}

fn code(bytes: &[u8]) -> &'static str {
    read(bytes).unwrap_err().code()
}

/// Replaces all occurrences of a name by another one of the same length, in both headers.
fn rename(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let places: Vec<usize> = bytes
        .windows(from.len())
        .enumerate()
        .filter(|(_, window)| *window == from)
        .map(|(at, _)| at)
        .collect();
    assert!(places.len() >= 2);
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

/// Offset of the first entry of the directory.
fn directory(bytes: &[u8]) -> usize {
    bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap()
}

#[test]
fn files_are_read_with_their_modes() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, mode) in [("t/task.toml", 0o644), ("t/solve.sh", 0o644), ("t/tool", 0o755)] {
        writer.start_file(name, options().unix_permissions(mode)).unwrap();
        writer.write_all(name.as_bytes()).unwrap();
    }
    writer.add_directory("t/empty", options()).unwrap();
    let tree = read(&writer.finish().unwrap().into_inner()).unwrap();
    let modes: Vec<_> = tree.files().map(|(path, file)| (path.as_str(), file.mode.bits())).collect();
    assert_eq!(modes, [("t/solve.sh", 0o755), ("t/task.toml", 0o644), ("t/tool", 0o755)]);
    assert_eq!(tree.config("t/task.toml").unwrap(), Some(&b"t/task.toml"[..]));
}

#[test]
fn what_is_no_plain_archive_is_refused() {
    let good = zip(&[("task.toml", b"a = 1")]);
    assert_eq!(code(b""), "not_zip");
    assert_eq!(code(b"hello, this is a text file and not an archive"), "not_zip");
    assert_eq!(code(&good[..good.len() - 30]), "not_zip");
    let mut commented = good.clone();
    *commented.last_mut().unwrap() = 0;
    let length = commented.len();
    commented[length - 2] = 7;
    commented.extend(b"comment");
    assert!(read(&commented).unwrap().has("task.toml"));
    let mut zip64 = good.clone();
    let end = zip64.len() - 22;
    zip64.splice(end..end, [b"PK\x06\x07".as_slice(), &[0; 16]].concat());
    assert_eq!(code(&zip64), "unsupported_archive_feature");
    let mut many = good.clone();
    many[end + 8..end + 12].copy_from_slice(&[0xff, 0x7f, 0xff, 0x7f]);
    assert_eq!(code(&many), "too_many_entries");
}

#[test]
fn unsafe_names_are_refused() {
    let good = zip(&[("aaaaaaa", b"x"), ("bbbbbbb", b"y")]);
    let names: [(&[u8], &str); 10] = [
        (b"../evil", "unsafe_path"),
        (b"/etc/pw", "unsafe_path"),
        (b"x/../..", "unsafe_path"),
        (b"c:\\evil", "unsafe_path"),
        (b"c:/evil", "unsafe_path"),
        (b"a\0.toml", "unsafe_path"),
        (b"a//b//c", "unsafe_path"),
        (b"AAAAAAA", "path_collision"),
        (b"aaaaaaa", "duplicate_path"),
        (b"\xff\xfe\xfdabcd", "name_not_utf8"),
    ];
    for (name, expected) in names {
        let refusal = read(&rename(&good, b"bbbbbbb", name)).unwrap_err();
        assert_eq!(refusal.code(), expected, "{refusal}");
        assert!(refusal.place.is_some(), "{refusal}");
    }
    assert_eq!(code(&zip(&[("a", b""), ("a/b", b"")])), "file_is_folder");
}

#[test]
fn links_devices_and_encrypted_entries_are_refused() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink("link", "/etc/passwd", options()).unwrap();
    assert_eq!(code(&writer.finish().unwrap().into_inner()), "not_a_regular_file");

    let good = zip(&[("task.toml", b"a = 1")]);
    let at = directory(&good);
    for file_type in [0o060_000u32, 0o020_000, 0o010_000, 0o140_000, 0o040_000, 0o120_000] {
        let mut bytes = good.clone();
        bytes[at + 5] = 3;
        bytes[at + 38..at + 42].copy_from_slice(&((file_type | 0o644) << 16).to_le_bytes());
        assert_eq!(code(&bytes), "not_a_regular_file", "{file_type:o}");
    }
    let mut encrypted = good.clone();
    encrypted[at + 8] |= 1;
    encrypted[6] |= 1;
    assert_eq!(code(&encrypted), "archive_encrypted");
    let mut method = good.clone();
    method[at + 10] = 12;
    method[8] = 12;
    assert_eq!(code(&method), "unsupported_compression");
}

#[test]
fn bombs_are_refused_while_they_are_inflated() {
    let zeros = vec![0; 8 << 20];
    let bomb = zip(&[("zeros", &zeros)]);
    assert_eq!(code(&bomb), "ratio_too_high");
    // Headers that claim small sizes don't help.
    let mut lying = bomb.clone();
    let at = directory(&lying);
    lying[at + 24..at + 28].copy_from_slice(&10u32.to_le_bytes());
    assert!(read(&lying).is_err());
    let limits = TreeLimits { file_bytes_max: 1000, ..TreeLimits::default() };
    let small = read_tree(Cursor::new(&zip(&[("zeros", &zeros[..2000])])), limits).unwrap_err();
    assert_eq!(small.code(), "file_too_large");
    let limits = TreeLimits { entries_max: 2, ..TreeLimits::default() };
    let many = zip(&[("a", b""), ("b", b""), ("c", b"")]);
    assert_eq!(read_tree(Cursor::new(&many), limits).unwrap_err().code(), "too_many_entries");
}

#[test]
fn damaged_content_is_refused() {
    let good = zip(&[("task.toml", b"some text that is stored or deflated, whatever")]);
    let at = directory(&good);
    let mut damaged = good.clone();
    damaged[at + 16] ^= 1;
    damaged[14] ^= 1;
    assert_eq!(code(&damaged), "archive_damaged");
}

#[test]
fn any_damage_ends_in_a_tree_or_a_refusal() {
    let good = zip(&[("task.toml", b"a = 1"), ("tests/", b""), ("tests/test.sh", &[b'x'; 300])]);
    let length = good.len();
    proptest::proptest!(|(changes in proptest::collection::vec((0..length, 0u8..), 1..4))| {
        let mut bytes = good.clone();
        for (at, value) in changes {
            bytes[at] = value;
        }
        let _ = read(&bytes);
    });
    for end in 0..length {
        assert!(read(&good[..end]).is_err());
    }
}
