//! Stored files: linked from the host, sent, downloaded, or rejected.

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
use bench_sandy::job::{self, FileSource, JobError, JobErrorKind, NoFiles, SourceError, UploadProgress};
use bench_sandy::testing::{Call, Endpoint, Fault, Options, SandyServer};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::support::{World, result, spec, timing};

/// Maximum size of files that are sent, in bytes.
const SENT_MAX: usize = 64 << 20;

fn bytes(length: usize) -> Vec<u8> {
    // The content differs in every piece.
    (0..length).map(|n| (n.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0]).collect()
}

fn sha256(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}

fn stored(content: &[u8], url: Option<String>) -> StoredFile {
    StoredFile { key: "files/a".to_owned(), sha256: sha256(content), bytes: content.len() as u64, url }
}

/// Returns a file that is too large to be sent, and its checksum. Computed once, since that takes a while.
fn large() -> &'static (Vec<u8>, String) {
    static LARGE: OnceLock<(Vec<u8>, String)> = OnceLock::new();
    LARGE.get_or_init(|| {
        let content = bytes(SENT_MAX + 5);
        let sha256 = sha256(&content);
        (content, sha256)
    })
}

/// Returns the large file with a download address.
fn large_at(url: String) -> StoredFile {
    let (content, sha256) = large();
    let bytes = content.len() as u64;
    StoredFile { key: "files/a".to_owned(), sha256: sha256.clone(), bytes, url: Some(url) }
}

/// Returns a job that computes the checksum of a stored file.
fn checksum_job(file: StoredFile) -> JobSpec {
    let file = JobFile { path: "data/file".to_owned(), content: FileContent::Stored(file) };
    let results = vec![result("sum", 100)];
    JobSpec { files: vec![file], results, ..spec("sha256sum < data/file | cut -c1-64 > sum") }
}

/// Reads a file from memory, and counts the reads.
struct MemorySource {
    content: Vec<u8>,
    reads: AtomicU64,
    /// Number of reads after which reading fails.
    reads_max: u64,
}

impl MemorySource {
    fn new(content: &[u8]) -> Self {
        Self { content: content.to_vec(), reads: AtomicU64::new(0), reads_max: u64::MAX }
    }
}

#[async_trait]
impl FileSource for MemorySource {
    async fn read(&self, _: &StoredFile, offset: u64, length: u64) -> Result<Bytes, SourceError> {
        if self.reads.fetch_add(1, Ordering::Relaxed) >= self.reads_max {
            return Err(SourceError { reason: "not now".to_owned(), is_transient: true });
        }
        let from = usize::try_from(offset).unwrap();
        Ok(Bytes::copy_from_slice(&self.content[from..from + usize::try_from(length).unwrap()]))
    }
}

async fn upload(world: &World, spec: &JobSpec, source: &dyn FileSource) -> Result<UploadProgress, JobError> {
    job::upload(&world.sandy, &world.id, &world.job, spec, source).await
}

/// Uploads until everything is in place.
async fn until_ready(world: &World, spec: &JobSpec, source: &dyn FileSource) -> Result<(), JobError> {
    for _ in 0..6_000 {
        if upload(world, spec, source).await? == UploadProgress::Ready {
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
async fn a_file_that_the_host_has_is_linked() {
    let content = bytes(100_000);
    let file = stored(&content, None);
    let shared = TempDir::new().unwrap();
    fs::write(shared.path().join(&file.sha256), &content).unwrap();
    let options = Options { shared: Some(shared.path().to_owned()), ..Options::default() };
    let world = World::with(options).await;
    let spec = checksum_job(file);
    assert_eq!(upload(&world, &spec, &NoFiles).await, Ok(UploadProgress::Ready));
    assert!(world.file("data/file").is_symlink());
    assert_eq!(upload(&world, &spec, &NoFiles).await, Ok(UploadProgress::Ready));
    assert_sum(&world, &spec, &content).await;
}

#[tokio::test]
async fn a_file_of_another_length_at_the_host_is_not_used() {
    let content = bytes(1_000);
    let file = stored(&content, None);
    let shared = TempDir::new().unwrap();
    fs::write(shared.path().join(&file.sha256), "half").unwrap();
    let options = Options { shared: Some(shared.path().to_owned()), ..Options::default() };
    let world = World::with(options).await;
    let spec = checksum_job(file);
    until_ready(&world, &spec, &MemorySource::new(&content)).await.unwrap();
    assert_sum(&world, &spec, &content).await;
}

#[tokio::test]
async fn an_interrupted_upload_in_pieces_is_continued() {
    let content = bytes((3 << 20) + 17);
    let world = World::new().await;
    let spec = checksum_job(stored(&content, None));
    let half = MemorySource { reads_max: 2, ..MemorySource::new(&content) };
    let error = upload(&world, &spec, &half).await.unwrap_err();
    assert_eq!(error.kind(), JobErrorKind::Transient);
    assert_eq!(error.to_string(), "the job's file `data/file` could not be read: not now");
    // A damaged piece is sent again.
    let pieces = fs::read_dir(world.server.folder(&world.id).unwrap()).unwrap().flatten();
    let mut pieces: Vec<_> = pieces.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    pieces.sort();
    assert_eq!(pieces.len(), 2);
    fs::write(&pieces[1], "damaged").unwrap();
    let rest = MemorySource::new(&content);
    until_ready(&world, &spec, &rest).await.unwrap();
    assert_eq!(rest.reads.load(Ordering::Relaxed), 3);
    assert_sum(&world, &spec, &content).await;
    // The job has ended: nothing is sent or changed any more.
    assert_eq!(upload(&world, &spec, &NoFiles).await, Ok(UploadProgress::Ready));
}

#[tokio::test]
async fn an_upload_takes_as_many_steps_as_it_needs() {
    let content = bytes(4 << 20);
    let mut world = World::new().await;
    world.sandy = world.server.sandy(Timing { upload_step: Duration::ZERO, ..timing() }).unwrap();
    let (spec, source) = (checksum_job(stored(&content, None)), MemorySource::new(&content));
    let mut steps = 1;
    while upload(&world, &spec, &source).await != Ok(UploadProgress::Ready) {
        steps += 1;
    }
    assert_eq!((steps, source.reads.load(Ordering::Relaxed)), (5, 4));
    assert_sum(&world, &spec, &content).await;
}

#[tokio::test]
async fn an_empty_file_is_created() {
    let world = World::new().await;
    let spec = checksum_job(stored(b"", None));
    until_ready(&world, &spec, &NoFiles).await.unwrap();
    assert_sum(&world, &spec, b"").await;
}

#[tokio::test]
async fn a_file_that_changed_in_the_store_is_rejected() {
    let content = bytes(2_000);
    let world = World::new().await;
    let mut other = content.clone();
    other[7] ^= 1;
    let error =
        upload(&world, &checksum_job(stored(&content, None)), &MemorySource::new(&other)).await.unwrap_err();
    assert_eq!(error, JobError::Checksum { path: "data/file".to_owned() });
    assert_eq!(error.kind(), JobErrorKind::Fatal);
}

#[tokio::test]
async fn a_large_file_without_address_is_rejected_with_the_limit() {
    let world = World::new().await;
    let file = StoredFile { bytes: SENT_MAX as u64 + 1, ..stored(b"x", None) };
    let error = upload(&world, &checksum_job(file), &NoFiles).await.unwrap_err();
    assert_eq!(error.kind(), JobErrorKind::Fatal);
    let text = error.to_string();
    assert!(text.contains("67108865 bytes: at most 67108864 are sent"), "{text}");
}

/// Returns a world with a server for the large file; `PATH` in the sandbox begins with `path`.
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

/// Returns a folder with a `curl` that doesn't run, so that the sandbox seems to have none.
fn without_curl() -> TempDir {
    let folder = TempDir::new().unwrap();
    let curl = folder.path().join("curl");
    fs::write(&curl, "#!/bin/sh\nexit 127\n").unwrap();
    fs::set_permissions(&curl, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[tokio::test]
async fn the_sandbox_downloads_a_large_file_and_continues_after_an_interruption() {
    let without = without_curl();
    for path in [None, Some(without.path())] {
        let world = downloading(large().0.clone(), path, |before| match before {
            0 => Fault::DropAfter,
            _ => Fault::None,
        })
        .await;
        let spec = checksum_job(large_at(world.server.file_url("large")));
        assert_eq!(
            upload(&world, &spec, &NoFiles).await,
            Ok(UploadProgress::Underway { is_downloading: true })
        );
        until_ready(&world, &spec, &NoFiles).await.unwrap();
        assert_eq!(world.server.calls(Endpoint::File), 2, "{path:?}");
        assert_sha(&world, &spec, &large().1).await;
    }
}

#[tokio::test]
async fn a_failed_download_reports_the_reason_and_can_be_retried() {
    let world = downloading(large().0.clone(), None, |before| match before {
        0..5 => Fault::Status(404, String::new(), Vec::new()),
        _ => Fault::None,
    })
    .await;
    let spec = checksum_job(large_at(world.server.file_url("large")));
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
async fn a_download_with_wrong_bytes_is_rejected() {
    let mut other = large().0.clone();
    other[SENT_MAX] ^= 1;
    // Too long: the sandbox stops at the expected length.
    let mut longer = large().0.clone();
    longer.extend(bytes(1 << 20));
    for (served, why) in [(other, "its bytes do not match"), (longer, "")] {
        let world = downloading(served, None, |_| Fault::None).await;
        let spec = checksum_job(large_at(world.server.file_url("large")));
        let error = until_ready(&world, &spec, &NoFiles).await.unwrap_err();
        assert!(matches!(&error, JobError::Download { reason, .. } if reason.starts_with(why)), "{error}");
        assert!(!world.file("data/file").exists());
    }
}

#[tokio::test]
async fn a_download_is_started_once_and_again_after_it_was_killed() {
    let world = downloading(large().0.clone(), None, |before| match before {
        0 => Fault::Hang(Duration::from_secs(600)),
        _ => Fault::None,
    })
    .await;
    let spec = checksum_job(large_at(world.server.file_url("large")));
    let both = tokio::join!(upload(&world, &spec, &NoFiles), upload(&world, &spec, &NoFiles));
    assert_eq!(
        both,
        (
            Ok(UploadProgress::Underway { is_downloading: true }),
            Ok(UploadProgress::Underway { is_downloading: true })
        )
    );
    while world.server.calls(Endpoint::File) == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(upload(&world, &spec, &NoFiles).await, Ok(UploadProgress::Underway { is_downloading: true }));
    kill_processes_in(&world.server, &world.id);
    let error = until_ready(&world, &spec, &NoFiles).await.unwrap_err();
    assert!(error.to_string().ends_with("it was ended"), "{error}");
    until_ready(&world, &spec, &NoFiles).await.unwrap();
    assert_eq!(world.server.calls(Endpoint::File), 2);
    assert_sha(&world, &spec, &large().1).await;
}

/// Kills the processes in a sandbox's folder.
fn kill_processes_in(server: &SandyServer, id: &str) {
    let folder = server.folder(id).unwrap();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let is_there = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder));
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        if let Some(pid) = pid.filter(|_| is_there).and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}
