//! Stored files: had by the host, sent, downloaded, or refused.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bench_domain::{FileContent, JobEnd, JobFile, JobSpec, StoredFile};
use bench_sandy::Timing;
use bench_sandy::job::{self, FileSource, JobError, JobErrorKind, NoFiles, SourceError, Uploaded};
use bench_sandy::testing::{Call, Endpoint, Fault, Options, SandyServer};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::support::{World, result, spec, timing};

/// Beyond this, files are not sent.
const SENT_MAX: usize = 64 << 20;

fn bytes(length: usize) -> Vec<u8> {
    // Different in every piece.
    (0..length).map(|n| (n.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0]).collect()
}

fn sha256(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}

fn stored(content: &[u8], url: Option<String>) -> StoredFile {
    StoredFile { key: "files/a".to_owned(), sha256: sha256(content), bytes: content.len() as u64, url }
}

/// A file that is not sent, and its checksum: made once, as that takes a while.
fn large() -> &'static (Vec<u8>, String) {
    static LARGE: OnceLock<(Vec<u8>, String)> = OnceLock::new();
    LARGE.get_or_init(|| {
        let content = bytes(SENT_MAX + 5);
        let sha256 = sha256(&content);
        (content, sha256)
    })
}

/// The large file at an address.
fn large_at(url: String) -> StoredFile {
    let (content, sha256) = large();
    let bytes = content.len() as u64;
    StoredFile { key: "files/a".to_owned(), sha256: sha256.clone(), bytes, url: Some(url) }
}

/// A job that tells what a stored file is.
fn over(file: StoredFile) -> JobSpec {
    let file = JobFile { path: "data/file".to_owned(), content: FileContent::Stored(file) };
    let results = vec![result("sum", 100)];
    JobSpec { files: vec![file], results, ..spec("sha256sum < data/file | cut -c1-64 > sum") }
}

/// Gives a file from memory, and counts.
struct Held {
    content: Vec<u8>,
    reads: AtomicU64,
    /// After so many reads there is nothing more.
    reads_max: u64,
}

impl Held {
    fn new(content: &[u8]) -> Self {
        Self { content: content.to_vec(), reads: AtomicU64::new(0), reads_max: u64::MAX }
    }
}

#[async_trait]
impl FileSource for Held {
    async fn read(&self, _: &StoredFile, offset: u64, length: u64) -> Result<Bytes, SourceError> {
        if self.reads.fetch_add(1, Ordering::Relaxed) >= self.reads_max {
            return Err(SourceError { reason: "not now".to_owned(), is_passing: true });
        }
        let from = usize::try_from(offset).unwrap();
        Ok(Bytes::copy_from_slice(&self.content[from..from + usize::try_from(length).unwrap()]))
    }
}

async fn upload(world: &World, spec: &JobSpec, source: &dyn FileSource) -> Result<Uploaded, JobError> {
    job::upload(&world.sandy, &world.id, &world.job, spec, source).await
}

/// Uploads until all is there.
async fn until_ready(world: &World, spec: &JobSpec, source: &dyn FileSource) -> Result<(), JobError> {
    for _ in 0..500 {
        if upload(world, spec, source).await? == Uploaded::Ready {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the upload does not end");
}

async fn assert_sum(world: &World, spec: &JobSpec, content: &[u8]) {
    assert_sha(world, spec, &sha256(content)).await;
}

async fn assert_sha(world: &World, spec: &JobSpec, sha256: &str) {
    world.start(spec).await;
    let end = world.end().await;
    let report = world.harvest(spec, end).await;
    assert_eq!(end, JobEnd::Exited(0), "{report:?}");
    assert_eq!(report.text("sum").map(str::trim), Some(sha256));
}

#[tokio::test]
async fn a_file_that_the_host_has_is_linked_to() {
    let content = bytes(100_000);
    let file = stored(&content, None);
    let shared = TempDir::new().unwrap();
    fs::write(shared.path().join(&file.sha256), &content).unwrap();
    let options = Options { shared: Some(shared.path().to_owned()), ..Options::default() };
    let world = World::with(options).await;
    let spec = over(file);
    assert_eq!(upload(&world, &spec, &NoFiles).await, Ok(Uploaded::Ready));
    assert!(world.file("data/file").is_symlink());
    assert_eq!(upload(&world, &spec, &NoFiles).await, Ok(Uploaded::Ready));
    assert_sum(&world, &spec, &content).await;
}

#[tokio::test]
async fn a_file_of_another_length_at_the_host_is_not_taken() {
    let content = bytes(1_000);
    let file = stored(&content, None);
    let shared = TempDir::new().unwrap();
    fs::write(shared.path().join(&file.sha256), "half").unwrap();
    let options = Options { shared: Some(shared.path().to_owned()), ..Options::default() };
    let world = World::with(options).await;
    let spec = over(file);
    until_ready(&world, &spec, &Held::new(&content)).await.unwrap();
    assert_sum(&world, &spec, &content).await;
}

#[tokio::test]
async fn a_file_is_sent_in_pieces_and_gone_on_from_where_it_was() {
    let content = bytes((3 << 20) + 17);
    let world = World::new().await;
    let spec = over(stored(&content, None));
    let half = Held { reads_max: 2, ..Held::new(&content) };
    let error = upload(&world, &spec, &half).await.unwrap_err();
    assert_eq!(error.kind(), JobErrorKind::Transient);
    assert_eq!(error.to_string(), "the job's file `data/file` could not be read: not now");
    // A piece that arrived damaged is sent again.
    let pieces = fs::read_dir(world.server.folder(&world.id).unwrap()).unwrap().flatten();
    let mut pieces: Vec<_> = pieces.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    pieces.sort();
    assert_eq!(pieces.len(), 2);
    fs::write(&pieces[1], "damaged").unwrap();
    let rest = Held::new(&content);
    until_ready(&world, &spec, &rest).await.unwrap();
    assert_eq!(rest.reads.load(Ordering::Relaxed), 3);
    assert_sum(&world, &spec, &content).await;
    // The job is over: nothing is sent or changed any more.
    assert_eq!(upload(&world, &spec, &NoFiles).await, Ok(Uploaded::Ready));
}

#[tokio::test]
async fn an_upload_takes_as_many_steps_as_it_needs() {
    let content = bytes(4 << 20);
    let mut world = World::new().await;
    world.sandy = world.server.sandy(Timing { upload_step: Duration::ZERO, ..timing() }).unwrap();
    let (spec, source) = (over(stored(&content, None)), Held::new(&content));
    let mut steps = 1;
    while upload(&world, &spec, &source).await != Ok(Uploaded::Ready) {
        steps += 1;
    }
    assert_eq!((steps, source.reads.load(Ordering::Relaxed)), (5, 4));
    assert_sum(&world, &spec, &content).await;
}

#[tokio::test]
async fn a_file_that_is_empty_is_put_there() {
    let world = World::new().await;
    let spec = over(stored(b"", None));
    until_ready(&world, &spec, &NoFiles).await.unwrap();
    assert_sum(&world, &spec, b"").await;
}

#[tokio::test]
async fn a_file_that_changed_in_the_store_is_refused() {
    let content = bytes(2_000);
    let world = World::new().await;
    let mut other = content.clone();
    other[7] ^= 1;
    let error = upload(&world, &over(stored(&content, None)), &Held::new(&other)).await.unwrap_err();
    assert_eq!(error, JobError::Checksum { path: "data/file".to_owned() });
    assert_eq!(error.kind(), JobErrorKind::Fatal);
}

#[tokio::test]
async fn a_large_file_that_nobody_can_download_is_refused_with_the_limit() {
    let world = World::new().await;
    let file = StoredFile { bytes: SENT_MAX as u64 + 1, ..stored(b"x", None) };
    let error = upload(&world, &over(file), &NoFiles).await.unwrap_err();
    assert_eq!(error.kind(), JobErrorKind::Fatal);
    let text = error.to_string();
    assert!(text.contains("67108865 bytes: at most 67108864 are sent"), "{text}");
}

/// A world whose large file is at an address, with `PATH` in the sandbox beginning with this folder.
async fn downloading(
    content: Vec<u8>,
    path: Option<&Path>,
    fault: impl Fn(u64) -> Fault + Send + Sync + 'static,
) -> World {
    let rule = move |call: &Call| match call.endpoint {
        Endpoint::File => fault(call.before),
        _ => Fault::None,
    };
    World::with(Options {
        rule: Some(std::sync::Arc::new(rule)),
        files: HashMap::from([("large".to_owned(), content)]),
        path: path.map(Path::to_owned),
        ..Options::default()
    })
    .await
}

/// A folder with a `curl` that does not run, so that the sandbox seems to have none.
fn without_curl() -> TempDir {
    let folder = TempDir::new().unwrap();
    let curl = folder.path().join("curl");
    fs::write(&curl, "#!/bin/sh\nexit 127\n").unwrap();
    fs::set_permissions(&curl, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[tokio::test]
async fn a_large_file_is_downloaded_by_the_sandbox_and_gone_on_from_where_it_broke_off() {
    let without = without_curl();
    for path in [None, Some(without.path())] {
        let world = downloading(large().0.clone(), path, |before| match before {
            0 => Fault::DropAfter,
            _ => Fault::None,
        })
        .await;
        let spec = over(large_at(world.server.file_url("large")));
        assert_eq!(upload(&world, &spec, &NoFiles).await, Ok(Uploaded::Underway { is_downloading: true }));
        until_ready(&world, &spec, &NoFiles).await.unwrap();
        assert_eq!(world.server.calls(Endpoint::File), 2, "{path:?}");
        assert_sha(&world, &spec, &large().1).await;
    }
}

#[tokio::test]
async fn a_download_that_fails_says_why_and_may_be_tried_again() {
    let world = downloading(large().0.clone(), None, |before| match before {
        0..5 => Fault::Status(404, String::new(), Vec::new()),
        _ => Fault::None,
    })
    .await;
    let spec = over(large_at(world.server.file_url("large")));
    let error = until_ready(&world, &spec, &NoFiles).await.unwrap_err();
    assert_eq!(error.kind(), JobErrorKind::Transient);
    let text = error.to_string();
    assert!(
        text.starts_with("the sandbox could not download the job's file `data/file`: curl ended"),
        "{text}"
    );
    until_ready(&world, &spec, &NoFiles).await.unwrap();
    assert_sha(&world, &spec, &large().1).await;
}

#[tokio::test]
async fn a_download_of_other_bytes_is_not_taken() {
    let mut other = large().0.clone();
    other[SENT_MAX] ^= 1;
    // Longer than it should be: no more is taken than there should be.
    let mut longer = large().0.clone();
    longer.extend(bytes(1 << 20));
    for (served, why) in [(other, "its bytes are others"), (longer, "")] {
        let world = downloading(served, None, |_| Fault::None).await;
        let spec = over(large_at(world.server.file_url("large")));
        let error = until_ready(&world, &spec, &NoFiles).await.unwrap_err();
        assert!(matches!(&error, JobError::Download { reason, .. } if reason.starts_with(why)), "{error}");
        assert!(!world.file("data/file").exists());
    }
}

#[tokio::test]
async fn a_download_is_begun_once_and_again_when_it_was_killed() {
    let world = downloading(large().0.clone(), None, |before| match before {
        0 => Fault::Hang(Duration::from_secs(600)),
        _ => Fault::None,
    })
    .await;
    let spec = over(large_at(world.server.file_url("large")));
    let both = tokio::join!(upload(&world, &spec, &NoFiles), upload(&world, &spec, &NoFiles));
    assert_eq!(
        both,
        (Ok(Uploaded::Underway { is_downloading: true }), Ok(Uploaded::Underway { is_downloading: true }))
    );
    while world.server.calls(Endpoint::File) == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(upload(&world, &spec, &NoFiles).await, Ok(Uploaded::Underway { is_downloading: true }));
    kill_all_of(&world.server, &world.id);
    let error = until_ready(&world, &spec, &NoFiles).await.unwrap_err();
    assert!(error.to_string().ends_with("it was ended"), "{error}");
    until_ready(&world, &spec, &NoFiles).await.unwrap();
    assert_eq!(world.server.calls(Endpoint::File), 2);
    assert_sha(&world, &spec, &large().1).await;
}

/// Kills what runs in a sandbox's folder.
fn kill_all_of(server: &SandyServer, id: &str) {
    let folder = server.folder(id).unwrap();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let is_there = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder));
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        if let Some(pid) = pid.filter(|_| is_there).and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}
