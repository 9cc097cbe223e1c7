//! Memory and disk use while a large dataset is downloaded: `cargo bench -p bench-datasets --bench memory [MIB]...`
//!
//! For each size (64, 256 and 512 MiB by default), a separate process prepares a dataset of four files from a hub on
//! loopback, with rows of 1 MiB and one of 48 MiB. It prints its peak memory (VmHWM), the peak of bytes on disk, and
//! the duration. Peak memory and disk must not grow with the size.

#![allow(missing_docs, clippy::unwrap_used, reason = "a measurement that cannot go on ends")]

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path as PathOf, State};
use axum::response::{IntoResponse, Response};
use bench_blobs::Blobs;
use bench_datasets::{Library, LibraryConfig, NoProgress};
use bench_domain::run::DatasetChoice;
use bench_embedded::{Durability, Embedded, EmbeddedOptions};
use bench_items::{DatasetSpec, DemoData, HubSource, Item, Layout, Part, Row, RowError};
use serde_json::json;
use tokio::io::AsyncReadExt;

const MIB: u64 = 1024 * 1024;
const FILES: u64 = 4;
const ROW_BYTES: usize = 1024 * 1024;
const LARGE_ROW_BYTES: usize = 48 * 1024 * 1024;
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// Address of the hub; a process in which it is set is the one to measure.
const HUB_VARIABLE: &str = "BENCH_MEMORY_HUB";

static SPEC: DatasetSpec = DatasetSpec {
    repository: None,
    sources: &[HubSource {
        id: "org/large",
        revision: None,
        items: &[Part { config: "default", split: "test" }],
        support: &[],
    }],
    gate: None,
    license: "MIT",
    items: 0,
    demo: DemoData { items: "", support: &[] },
};

struct Large;

impl Layout for Large {
    fn name(&self) -> &'static str {
        "large"
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        Ok(Some(Item::new(index.to_string(), None, row)))
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match std::env::var(HUB_VARIABLE) {
        Ok(hub) => runtime.block_on(prepare(hub)),
        Err(_) => {
            let arguments: Vec<String> = std::env::args().skip(1).collect();
            let sizes: Vec<u64> = arguments.iter().filter_map(|text| text.parse().ok()).collect();
            let sizes = match (sizes.is_empty(), arguments.iter().any(|text| text == "--bench")) {
                (false, _) => sizes,
                (true, true) => vec![64, 256, 512],
                // `cargo test` runs this too, only to check that it works.
                (true, false) => vec![8],
            };
            println!(
                "{:>10} {:>14} {:>14} {:>14} {:>10}",
                "files MiB", "peak RSS MiB", "disk peak MiB", "stored MiB", "seconds"
            );
            for mib in sizes {
                let folder = tempfile::tempdir().unwrap();
                write_files(folder.path(), mib);
                runtime.block_on(measure(folder.path(), mib));
            }
        }
    }
}

/// Writes rows that compress about as badly as the Base64 form of compressed data.
fn write_files(folder: &Path, mib: u64) {
    let mut state = 1_u64;
    let mut noise = vec![0_u8; LARGE_ROW_BYTES];
    for byte in &mut noise {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"[(state >> 58) as usize];
    }
    for number in 0..FILES {
        let file = std::fs::File::create(folder.join(format!("test-{number}.jsonl"))).unwrap();
        let mut file = BufWriter::new(file);
        let mut left = mib * MIB / FILES;
        let mut row = |bytes: usize, at: usize| {
            file.write_all(b"{\"tests\":\"").unwrap();
            file.write_all(&noise[at..at + bytes]).unwrap();
            file.write_all(b"\"}\n").unwrap();
            bytes as u64
        };
        if number == 1 {
            left = left.saturating_sub(row(LARGE_ROW_BYTES, 0));
        }
        let mut at = 0;
        while left >= ROW_BYTES as u64 {
            left -= row(ROW_BYTES, at % (LARGE_ROW_BYTES - ROW_BYTES));
            at += 4_096;
        }
    }
}

/// Starts a hub, and a process that is measured while it downloads the whole dataset.
async fn measure(folder: &Path, mib: u64) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hub = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new()
        .route("/api/datasets/org/large/revision/main", axum::routing::get(revision))
        .route("/datasets/org/large/resolve/{commit}/{file}", axum::routing::get(file))
        .with_state(folder.to_owned());
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let own = std::env::current_exe().unwrap();
    let output = tokio::task::spawn_blocking(move || Command::new(own).env(HUB_VARIABLE, hub).output());
    let output = output.await.unwrap().unwrap();
    server.abort();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    println!("{mib:>10} {}", printed.trim_end());
}

async fn revision() -> Response {
    let files: Vec<_> = (0..FILES).map(|n| json!({ "rfilename": format!("test-{n}.jsonl") })).collect();
    axum::Json(json!({ "sha": COMMIT, "siblings": files })).into_response()
}

async fn file(State(folder): State<PathBuf>, PathOf((_, name)): PathOf<(String, String)>) -> Response {
    let file = tokio::fs::File::open(folder.join(name)).await.unwrap();
    let pieces = futures_util::stream::unfold(file, |mut file| async move {
        let mut piece = vec![0; 256 * 1024];
        let read = file.read(&mut piece).await.unwrap();
        piece.truncate(read);
        (read > 0).then_some((Ok::<_, std::io::Error>(piece), file))
    });
    Body::from_stream(pieces).into_response()
}

async fn prepare(hub: String) {
    let folder = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions::new(folder.path().join("data")).durability(Durability::Normal);
    let embedded = Embedded::open(options).unwrap();
    let blobs = Blobs::new(&embedded.sdk_config(), "bench");
    blobs.ensure_bucket().await.unwrap();
    let cache = folder.path().join("cache");
    let config = LibraryConfig { hub_url: hub, kept_bytes_max: 1, ..LibraryConfig::new(&cache) };
    let library = Library::new(blobs, config);
    let (finished, peak_disk_bytes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let watch = std::thread::spawn({
        let (finished, peak_disk_bytes) = (Arc::clone(&finished), Arc::clone(&peak_disk_bytes));
        move || {
            while !finished.load(Ordering::Relaxed) {
                peak_disk_bytes.fetch_max(bytes_in(&cache), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
    let began = Instant::now();
    let prepared = library.prepare(&Large, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    let seconds = began.elapsed().as_secs_f64();
    finished.store(true, Ordering::Relaxed);
    watch.join().unwrap();
    let (disk, stored) = (peak_disk_bytes.load(Ordering::Relaxed) / MIB, prepared.index.data_bytes / MIB);
    println!("{:>14} {disk:>14} {stored:>14} {seconds:>10.1}", peak_bytes() / MIB);
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Returns the peak memory of this process.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
