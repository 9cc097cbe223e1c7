//! Each entry of the list of hostile uploads, through HTTP.

use std::io::Write;

use serde_json::Value;
use zip::write::SimpleFileOptions;

use super::support::{form, task_zip, zip_of};
use crate::server::Server;

/// Sends an archive to the check and to the upload, which must refuse it in the same way.
async fn refused(server: &Server, zip: &[u8]) -> (String, Value) {
    let checked = server.send_form("/api/tasks/check", &[], form("file", Some("t.zip"), zip)).await;
    let reply = server.upload("name=x", &[], zip).await;
    assert_eq!(reply.status, 400, "{}", reply.text);
    assert_eq!((checked.status, &checked.text), (reply.status, &reply.text));
    let body = reply.json();
    assert_eq!(body["code"], "task_refused");
    (body["detail"].as_str().unwrap().to_owned(), body["refusal"].clone())
}

/// Changes the stored name of an entry, which writers of archives wouldn't write.
fn renamed(zip: Vec<u8>, from: &str, to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut zip = zip;
    let places: Vec<usize> = zip
        .windows(from.len())
        .enumerate()
        .filter(|(_, part)| *part == from.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(places.len() >= 2, "in the local and in the central header");
    for at in places {
        zip[at..at + to.len()].copy_from_slice(to);
    }
    zip
}

#[tokio::test]
async fn hostile_names_are_refused_with_the_name() {
    let server = Server::local().await;
    let zip = |name: &str| task_zip("x", &[(name, "evil")]);
    let deep = format!("fix-it/{}x", "d/".repeat(100));
    let long = format!("fix-it/{}", "n".repeat(5_000));
    for (archive, code) in [
        (zip("../../evil.sh"), "unsafe_path"),
        (zip("/etc/passwd"), "unsafe_path"),
        (zip("fix-it/./x"), "unsafe_path"),
        (zip("fix-it\\x"), "unsafe_path"),
        (zip("C:/x"), "unsafe_path"),
        (renamed(zip("fix-it/NULL"), "fix-it/NULL", b"fix-it/N\0LL"), "unsafe_path"),
        (renamed(zip("fix-it/BYTE"), "fix-it/BYTE", b"fix-it/B\xffTE"), "name_not_utf8"),
        (zip(&deep), "path_too_long"),
        (zip(&long), "path_too_long"),
        (zip("fix-it/TASK.toml"), "path_collision"),
        (task_zip("x", &[("fix-it/caf\u{e9}", ""), ("fix-it/cafe\u{301}", "")]), "path_collision"),
        (zip("fix-it/task.toml/x"), "file_is_folder"),
        (renamed(zip("fix-it/task.tomx"), "fix-it/task.tomx", b"fix-it/task.toml"), "duplicate_path"),
    ] {
        let (sentence, refusal) = refused(&server, &archive).await;
        assert_eq!(refusal["code"], code, "{sentence}");
        assert!(!sentence.contains('\0') && !sentence.contains('\u{1b}'), "{sentence}");
    }
    assert_eq!(server.get("/api/tasks").await.json().as_array().unwrap().len(), 0);
    assert!(server.api.blobs.list("tasks/", None).await.unwrap().0.is_empty());
}

#[tokio::test]
async fn hostile_archives_are_refused() {
    let server = Server::local().await;
    let plain = task_zip("x", &[]);
    let truncated = plain[..plain.len() / 2].to_vec();
    let mut damaged = task_zip(&"some text that deflates ".repeat(200), &[]);
    let middle = damaged.len() / 4;
    damaged[middle..middle + 20].fill(0xa5);
    let mut link = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    link.add_symlink("fix-it/link", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    let link = link.finish().unwrap().into_inner();
    let mut device = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    device.start_file("fix-it/null", SimpleFileOptions::default().unix_permissions(0o644)).unwrap();
    let mut device = device.finish().unwrap().into_inner();
    // The mode of the entry in the central directory: a character device.
    let central = device.windows(4).position(|part| part == b"PK\x01\x02").unwrap();
    device[central + 38..central + 42].copy_from_slice(&(0o020_644_u32 << 16).to_le_bytes());
    device[central + 5] = 3;
    let mut encrypted = plain.clone();
    for (signature, at) in [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)] {
        let places: Vec<usize> = encrypted
            .windows(4)
            .enumerate()
            .filter(|(_, part)| part == signature)
            .map(|(at, _)| at)
            .collect();
        places.iter().for_each(|place| encrypted[place + at] |= 1);
    }
    let many: Vec<(String, &str)> = (0..10_001).map(|file| (format!("fix-it/{file}"), "")).collect();
    let many = zip_of(&many.iter().map(|(path, content)| (path.as_str(), *content)).collect::<Vec<_>>());
    for (archive, codes) in [
        (b"#!/bin/sh\n".to_vec(), &["not_zip"][..]),
        (Vec::new(), &["not_zip"]),
        (truncated, &["not_zip", "archive_damaged"]),
        (damaged, &["archive_damaged"]),
        (link, &["not_a_regular_file"]),
        (device, &["not_a_regular_file"]),
        (encrypted, &["archive_encrypted"]),
        (many, &["too_many_entries"]),
        (zip_of(&[("README.md", "x")]), &["no_task"]),
        (zip_of(&[("a/task.toml", ""), ("b/task.toml", "")]), &["several_tasks"]),
        (task_zip("", &[]), &["empty_file"]),
        (zip_of(&[("task.toml", ""), ("instruction.md", "x")]), &["no_environment", "missing_file"]),
    ] {
        let (sentence, refusal) = refused(&server, &archive).await;
        assert!(codes.contains(&refusal["code"].as_str().unwrap()), "{sentence} {refusal}");
    }
}

#[tokio::test]
async fn bombs_are_refused_while_inflating() {
    let server = Server::local().await;
    let zeros = vec![0_u8; 8 << 20];
    let mut bomb = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    bomb.start_file("fix-it/zeros", SimpleFileOptions::default()).unwrap();
    for _ in 0..16 {
        bomb.write_all(&zeros).unwrap();
    }
    let bomb = bomb.finish().unwrap().into_inner();
    assert!(bomb.len() < 1 << 20);
    let (sentence, refusal) = refused(&server, &bomb).await;
    assert!(["ratio_too_high", "file_too_large"].contains(&refusal["code"].as_str().unwrap()), "{sentence}");
    assert_eq!(refusal["file"], "fix-it/zeros");
}

#[tokio::test]
async fn configuration_is_refused_with_file_and_line() {
    let server = Server::local().await;
    for (toml, code, line) in [
        ("[agent]\ntimeout_sec = 'x'\n", "wrong_type", Some(2)),
        ("[agent\n", "invalid_syntax", Some(1)),
        ("[environment]\ncpus = 1000\n", "above_limit", None),
        ("[environment]\ngpus = 1\n", "unsupported_demand", None),
        (
            "[environment]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['a.example']\n",
            "unsupported_demand",
            None,
        ),
    ] {
        let (sentence, refusal) = refused(&server, &task_zip("x", &[("fix-it/task.toml", toml)])).await;
        assert_eq!(refusal["code"], code, "{sentence}");
        assert_eq!(refusal["file"], "task.toml", "{sentence}");
        assert!(sentence.contains("`task.toml`"), "{sentence}");
        if let Some(line) = line {
            assert_eq!(refusal["line"], line, "{sentence}");
            assert!(sentence.contains(&format!("line {line}")), "{sentence}");
        }
    }
    let compose = "services:\n  main:\n    image: debian:12\n    privileged: true\n";
    let (sentence, refusal) =
        refused(&server, &task_zip("x", &[("fix-it/environment/docker-compose.yaml", compose)])).await;
    assert_eq!(
        (refusal["code"].as_str(), refusal["line"].as_u64()),
        (Some("compose_value_not_allowed"), Some(4)),
        "{sentence}"
    );
}

#[tokio::test]
async fn the_clients_file_name_is_metadata_only() {
    let server = Server::local().await;
    let zip = task_zip("x", &[]);
    let reply = server.send_form("/api/tasks?name=x", &[], form("file", Some("../../evil.zip"), &zip)).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(reply.json()["original_filename"], "../../evil.zip");
    let hash = reply.json()["content_hash"].as_str().unwrap().to_owned();
    let (objects, _) = server.api.blobs.list("", None).await.unwrap();
    let keys: Vec<String> = objects.into_iter().map(|object| object.key).collect();
    assert_eq!(keys, [format!("tasks/{hash}.json.zst"), format!("tasks/{hash}.zip")]);
    let download = server.ask("GET", "/api/tasks/1/archive", &[], "").await;
    assert_eq!(download.headers["content-disposition"], "attachment; filename=\"task-1.zip\"");
    for (name, status) in [("x.tar", 400), ("x", 400), ("X.ZIP", 200)] {
        let reply = server.send_form("/api/tasks?name=x", &[], form("file", Some(name), &zip)).await;
        assert_eq!(reply.status, status, "{name}: {}", reply.text);
        if status == 400 {
            assert_eq!(reply.detail(), "File must be a zip archive");
        }
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_before_it_is_read() {
    let server = Server::local().await;
    let headers = [("content-type", "multipart/form-data; boundary=x"), ("content-length", "209715200")];
    let reply = server.ask("POST", "/api/tasks?name=x", &headers, "").await;
    assert_eq!(
        (reply.status.as_u16(), reply.detail().as_str()),
        (400, "File too large. Maximum size is 100MB")
    );
    for bad in
        ["--XBOUNDARYX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.zip\"\r\n\r\nPK", "--X"]
    {
        let reply = server.send_form("/api/tasks?name=x", &[], bad).await;
        assert!([400, 422].contains(&reply.status.as_u16()), "{}", reply.text);
    }
}
