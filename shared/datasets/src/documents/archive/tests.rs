use std::io::Write;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;

fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in members {
        if name.ends_with('/') {
            writer.add_directory(*name, SimpleFileOptions::default()).unwrap();
            continue;
        }
        let method = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        writer.start_file(*name, method).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn documents(bytes: &[u8]) -> Result<Vec<Document>, String> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let mut found = Vec::new();
    let all = members("a.zip", file, "lcr/", &mut |document| {
        found.push(document);
        true
    });
    all.map(|()| found).map_err(|error| error.to_string())
}

fn document(name: &str, text: &str) -> Document {
    Document { names: vec![name.to_owned()], text: Ok(text.to_owned()) }
}

/// The archive with every `from` replaced by as many other bytes.
fn patch(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let found: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    assert!(!found.is_empty());
    for at in found {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

#[test]
fn members_under_the_prefix_are_documents() {
    let archive = zip(&[
        ("lcr/", b""),
        ("lcr/Legal/", b""),
        ("lcr/Legal/set 1/A b.txt", b"\xef\xbb\xbf one\r\n"),
        ("lcr/Legal/set 1/a b.txt", "z\u{fc}\n".as_bytes()),
        ("lcr/\u{2018}x\u{2019}.txt", b""),
        ("LCR/x.txt", b"no"),
        ("__MACOSX/lcr/._a.txt", b"no"),
        ("readme.txt", b"no"),
    ]);
    let expected = [
        document("Legal/set 1/A b.txt", "\u{feff} one\r\n"),
        document("Legal/set 1/a b.txt", "z\u{fc}\n"),
        document("\u{2018}x\u{2019}.txt", ""),
    ];
    assert_eq!(documents(&archive).unwrap(), expected);
}

#[test]
fn names_that_are_not_marked_are_read_both_ways() {
    assert_eq!(CODE_PAGE_437.chars().count(), 128);
    let plain = zip(&[("lcr/caf##.txt", b"x")]);
    let old = documents(&patch(&plain, b"caf##", b"caf\x82!")).unwrap();
    assert_eq!(old, [document("caf\u{e9}!.txt", "x")]);
    let both = documents(&patch(&plain, b"caf##", "caf\u{e9}".as_bytes())).unwrap();
    assert_eq!(both[0].names, ["caf\u{e9}.txt", "caf\u{251c}\u{2310}.txt"]);
}

#[test]
fn bytes_that_are_not_text_are_reported() {
    let found = documents(&zip(&[("lcr/a", b"ok\xff"), ("lcr/b", b"fine")])).unwrap();
    assert_eq!(found[0].text, Err("byte 2 of it is not UTF-8".to_owned()));
    assert_eq!(found[1], document("b", "fine"));
}

#[test]
fn invalid_archives_are_errors() {
    let good = zip(&[("lcr/a.txt", &b"hello ".repeat(200)), ("lcr/b.txt", b"two")]);
    assert!(documents(b"").unwrap_err().contains("ZIP archive"));
    assert!(documents(b"PK\x03\x04 and nothing").unwrap_err().contains("ZIP archive"));
    assert!(documents(&good[..good.len() / 2]).unwrap_err().contains("ZIP archive"));
    // A bit of the content.
    let mut altered = good.clone();
    altered[45] ^= 0x10;
    assert!(documents(&altered).unwrap_err().starts_with("a.zip: member `a.txt`: "));
    assert!(documents(&patch(&good, b"lcr/b.txt", b"lcr/a.txt")).unwrap_err().contains("same name"));
    // Random bytes at random positions: reading must end.
    let mut state = 1_u64;
    for _ in 0..2_000 {
        let mut broken = good.clone();
        for _ in 0..3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (state >> 33) as usize % broken.len();
            broken[at] = (state >> 25) as u8;
        }
        documents(&broken).ok();
    }
}

#[test]
fn archives_that_unpack_to_too_much_are_errors() {
    let zeros = vec![0; usize::try_from(DOCUMENT_BYTES_MAX).unwrap() + 1];
    let bomb = zip(&[("lcr/a.txt", &zeros)]);
    assert!(bomb.len() < 100_000);
    let error = documents(&bomb).unwrap_err();
    assert!(error.starts_with("a.zip: member `a.txt`: it has more than"), "{error}");
    // A size that is claimed does not matter.
    let size = u32::try_from(zeros.len()).unwrap().to_le_bytes();
    let error = documents(&patch(&bomb, &size, &7_u32.to_le_bytes())).unwrap_err();
    assert!(error.starts_with("a.zip: member `a.txt`: "), "{error}");

    let names: Vec<String> = (0..=MEMBERS_MAX).map(|n| format!("lcr/{n}/")).collect();
    let folders: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
    assert!(documents(&zip(&folders)).unwrap_err().contains("members"));
}

#[tokio::test]
async fn a_thread_sends_the_members_one_by_one() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&zip(&[("lcr/a", b"1"), ("lcr/b", b"2"), ("lcr/c", b"3")])).unwrap();
    let mut members = read("a.zip".into(), file, "lcr/");
    let mut names = Vec::new();
    while let Some(document) = members.recv().await {
        names.push(document.unwrap().names[0].clone());
    }
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn symbolic_links_are_rejected() {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    writer.start_file("lcr/a.txt", SimpleFileOptions::default()).unwrap();
    writer.write_all(b"a").unwrap();
    writer.add_symlink("lcr/b.txt", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    let error = documents(&writer.finish().unwrap().into_inner()).unwrap_err();
    assert!(error.contains("member `b.txt`: it is not a regular file"), "{error}");
}
