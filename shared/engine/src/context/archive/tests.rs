use std::io::Cursor;

use super::*;

/// Entry of a test's archive: name, kind, content, and a link's target.
type Entry<'a> = (&'a str, u8, &'a str, &'a str);

/// Returns the bytes of entries, without the end of the archive. Names and targets are written as they are.
fn raw(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, kind, content, target) in entries {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(EntryType::new(*kind));
        header.set_mode(0o755);
        header.set_mtime(7);
        header.set_size(content.len() as u64);
        header.set_cksum();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(content.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes
}

fn copied(archive: &[u8], wanted: &str) -> Result<(Option<String>, Vec<u8>), ContextError> {
    let mut to = tar::Builder::new(Vec::new());
    let dockerfile = copy(Cursor::new(archive), 1 << 20, &mut to, wanted)?;
    let text = dockerfile.map(|bytes| String::from_utf8(bytes).unwrap());
    Ok((text, to.into_inner().unwrap()))
}

fn dockerfile(entries: &[Entry<'_>], wanted: &str) -> Result<Option<String>, ContextError> {
    copied(&raw(entries), wanted).map(|(dockerfile, _)| dockerfile)
}

/// Returns path, kind, target and content of all entries, as programs read them.
fn listed(archive: &[u8]) -> Vec<(String, u8, String, String)> {
    let mut archive = tar::Archive::new(archive);
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let target = entry.link_name_bytes().map(|name| text(&name)).unwrap_or_default();
        (text(&entry.path_bytes()), entry.header().entry_type().as_byte(), target, content)
    });
    entries.collect()
}

#[test]
fn the_dockerfile_is_found_by_its_path() {
    let found = dockerfile(&[("a", b'0', "x", ""), ("./Dockerfile", b'0', "FROM a", "")], "Dockerfile");
    assert_eq!(found.unwrap().unwrap(), "FROM a");
    let long = [("././@LongLink", b'L', "sub/dir/Dockerfile\0", ""), ("sub", b'0', "FROM b", "")];
    assert_eq!(dockerfile(&long, "sub/dir/Dockerfile").unwrap().unwrap(), "FROM b");
    let pax = [("pax", b'x', "23 path=sub/Dockerfile\n", ""), ("x", b'0', "FROM c", "")];
    assert_eq!(dockerfile(&pax, "sub/Dockerfile").unwrap().unwrap(), "FROM c");
    assert_eq!(dockerfile(&[("a", b'0', "x", "")], "Dockerfile").unwrap(), None);
    let two = [("Dockerfile", b'0', "FROM a", ""), ("Dockerfile", b'0', "FROM b", "")];
    assert_eq!(dockerfile(&two, "Dockerfile").unwrap().unwrap(), "FROM b");
}

#[test]
fn links_in_place_of_files_that_the_engine_reads_are_refused() {
    for entry in [("Dockerfile", b'2', "", "x"), ("./s/Dockerfile", b'2', "", "x")] {
        let wanted = entry.0.trim_start_matches("./");
        assert!(matches!(dockerfile(&[entry], wanted), Err(ContextError::Link(_))), "{entry:?}");
    }
    let file = ("x", b'0', "", "");
    for entry in [("s/.dockerignore", b'2', "", "x"), (".containerignore", b'1', "", "x")] {
        assert!(matches!(dockerfile(&[file, entry], "Dockerfile"), Err(ContextError::Link(_))), "{entry:?}");
    }
    for entry in [
        ("null", b'3', "", ""),
        ("disk", b'4', "", ""),
        ("pipe", b'6', "", ""),
        ("p", b'x', "10 size=9\n", ""),
    ] {
        assert!(dockerfile(&[entry, file], "Dockerfile").is_err(), "{entry:?}");
    }
}

#[test]
fn nothing_leads_out_of_the_context_or_through_a_link() {
    let long = format!("{}/../../..", "a/".repeat(60));
    let pax = "20 linkpath=../../x\n";
    let file = |name| (name, b'0', "", "");
    let link = |name, target| (name, b'2', "", target);
    let hard = |name, target| (name, b'1', "", target);
    let folder = |name| (name, b'5', "", "");
    for entries in [
        &[link("x", "/etc"), file("x/written")][..],
        &[link("x", "/etc")],
        &[link("x", "../..")],
        &[link("x", "")],
        &[link("", "a")],
        &[link("./", "a")],
        &[link("d/x", "a/../../..")],
        &[link("x", "d"), file("x/y")],
        &[link("x", "d"), folder("./x//y")],
        &[link("x", "d"), file("x")],
        &[link("x", "d"), folder("x")],
        &[link("x", "d"), hard("s", "x/hostsecret")],
        &[hard("s", "x")],
        &[hard("s", "/etc/shadow")],
        &[link("x", "d"), hard("s", "x")],
        &[file("d"), hard("", "d")],
        &[file("../x")],
        &[file("a/../../x")],
        &[folder("a/..")],
        &[("@", b'K', long.as_str(), ""), link("x", "d")],
        &[("@", b'x', pax, ""), link("x", "d")],
        &[("@", b'L', "../out\0", ""), file("x")],
    ] {
        let found = dockerfile(entries, "Dockerfile");
        assert!(matches!(found, Err(ContextError::LeadsOut(_))), "{entries:?}: {found:?}");
    }
    for entries in [
        &[folder("d"), file("d/a"), link("x", "d/a"), link("d/y", "a"), hard("h", "d/a")][..],
        &[folder("./"), link("./bin", "usr/bin"), file("./usr/bin/a")],
        &[file("a..b"), link("l", "a..b")],
    ] {
        dockerfile(entries, "Dockerfile").unwrap();
    }
}

#[test]
fn entries_are_written_as_they_were_read() {
    let long = "a-long-name/".repeat(30) + "file";
    let long_header = format!("{long}\0and what follows");
    let entries = [
        ("./", b'5', "", ""),
        ("./d//e/", b'5', "", ""),
        ("/d/f", 0, "text", ""),
        ("@", b'L', long_header.as_str(), ""),
        ("cut", b'0', "of a long name", ""),
        ("@", b'K', long_header.as_str(), ""),
        ("l", b'2', "", "cut"),
        ("@", b'g', "13 comment=x\n", ""),
        ("h", b'1', "", "./d/f"),
        ("@", b'x', "20 SCHILY.xattr.a=b\n", ""),
        ("again", b'7', "", ""),
    ];
    let (_, copy) = copied(&raw(&entries), "Dockerfile").unwrap();
    let expected = [
        ("d/e", b'5', "", ""),
        ("d/f", b'0', "", "text"),
        (long.as_str(), b'0', "", "of a long name"),
        ("l", b'2', long.as_str(), ""),
        ("h", b'1', "d/f", ""),
        ("again", b'0', "", ""),
    ];
    let expected = expected
        .map(|(path, kind, target, content)| (path.to_owned(), kind, target.to_owned(), content.to_owned()));
    assert_eq!(listed(&copy), expected);
    let mut archive = tar::Archive::new(copy.as_slice());
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        assert_eq!((entry.header().mode().unwrap(), entry.header().mtime().unwrap()), (0o755, 7));
    }
    assert_eq!(copied(&copy, "Dockerfile").unwrap().1, copy, "a copy of the copy is the same");
}

/// Programs read such archives in different ways. Whatever this reads, the copy has it, and nothing else.
#[test]
fn ambiguous_entries_have_one_reading_in_the_copy() {
    let hidden = String::from_utf8(raw(&[("x", b'2', "", "/etc")])).unwrap();
    let pax = "20 linkpath=../../x\n";
    let file = ("f", b'0', "", "");
    for entries in [
        &[("d", b'5', hidden.as_str(), "")][..],
        &[file, ("l", b'2', hidden.as_str(), "f")],
        &[file, ("l", b'1', hidden.as_str(), "f")],
        &[("@", b'x', pax, ""), ("@", b'K', "f\0", ""), ("l", b'2', "", "")],
        &[("@", b'g', pax, ""), ("l", b'2', "", "f")],
        &[("@", b'x', pax, ""), file, ("l", b'2', "", "f")],
        &[("@", b'L', "a\0", ""), ("@", b'L', "b\0", ""), file],
        &[("@", b'x', "9 path=a\n9 path=b\n", ""), file],
    ] {
        let (_, copy) = copied(&raw(entries), "Dockerfile").unwrap();
        for (path, kind, target, content) in listed(&copy) {
            let is_plain = !path.contains("..") && !target.contains("..") && !target.starts_with('/');
            assert!(
                is_plain && content.is_empty() && b"0125".contains(&kind),
                "{entries:?}: {path} {target}"
            );
        }
    }
    for entries in [
        &[("d/", b'0', hidden.as_str(), "")][..],
        &[("@", b'x', "8 path=\n", ""), ("l", b'0', "", "")],
        &[("@", b'x', "11 path=a\0b\n", ""), ("l", b'0', "", "")],
        &[("@", b'x', "99 path=a\n", ""), ("l", b'0', "", "")],
        &[("@", b'L', "\0x", ""), ("l", b'0', "", "")],
        &[("@", b'x', "19 GNU.sparse.map=1\n", ""), file],
    ] {
        let found = dockerfile(entries, "Dockerfile");
        assert!(matches!(found, Err(ContextError::Archive(_))), "{entries:?}: {found:?}");
    }
}

#[test]
fn the_last_block_need_not_be_full() {
    let bytes = raw(&[("Dockerfile", b'0', "FROM a", "")]);
    assert_eq!(copied(&bytes[..512 + 6], "Dockerfile").unwrap().0.as_deref(), Some("FROM a"));
    for bytes in [&bytes[..512 + 5], &bytes[..512], &bytes[..100]] {
        assert!(copied(bytes, "Dockerfile").is_err(), "{} bytes", bytes.len());
    }
}

#[test]
fn broken_archives_are_errors() {
    let mut checksum = raw(&[("a", b'0', "x", "")]);
    checksum[0] = b'b';
    let mut huge = raw(&[("a", b'0', "x", "")]);
    huge[124..136].copy_from_slice(&[0xff; 12]);
    let deep = "a/".repeat(300);
    let long = "a".repeat(5_000);
    let named = |name: &str| raw(&[("@", b'L', name, ""), ("a", b'0', "", "")]);
    for bytes in [vec![1; 512], vec![0xff; 1024], checksum, huge, named(&deep), named(&long)] {
        let found = copied(&bytes, "Dockerfile");
        assert!(matches!(found, Err(ContextError::Archive(_))), "{found:?}");
    }
    let patterns = "x\n".repeat(10_000);
    for (name, is_allowed) in
        [(".dockerignore", false), ("./.containerignore", false), ("a/.dockerignore", true)]
    {
        let found = copied(&raw(&[(name, b'0', &patterns, "")]), "Dockerfile");
        assert_eq!(found.is_ok(), is_allowed, "{name}: {found:?}");
    }
    let mut to = tar::Builder::new(Vec::new());
    let bytes = raw(&[("a", b'0', &"x".repeat(2_000), "")]);
    let found = copy(Cursor::new(&bytes), 1_000, &mut to, "Dockerfile");
    assert!(matches!(found, Err(ContextError::TooLarge(1_000))), "{found:?}");
}
