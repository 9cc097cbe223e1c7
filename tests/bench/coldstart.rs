//! Measures the start of each function, compared with a function that does nothing.
//!
//! The benchmark starts every function's real binary repeatedly under our own Runtime API, with the embedded services
//! on loopback. All functions and the empty one take turns, so that they run under the same conditions. It prints the
//! time from the start of the process until it asks for its first event and until its first response, the time of
//! later responses, memory, and the size of the archive to upload. The first event makes each function read its
//! table, which must not open new connections after init; the benchmark counts them. Then it measures the worker with
//! full batches of samples ([`worker_batch`]).
//!
//! `bench-coldstart [PROFILE] [ROUNDS]`; `make bench-lambda` uses the deployed profile and 20 rounds. With 0 rounds, only the
//! worker is measured.

mod worker_batch;

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bench_domain::{Position, RunId, SampleRef};
use bench_queue::Message;
use bench_tests::endpoint::AwsEndpoint;
use bench_tests::events;
use bench_tests::functions::{FUNCTIONS, Function, HELLO, build};
use bench_tests::runtime_api::RuntimeApi;
use serde_json::Value;
use zip::write::SimpleFileOptions;

/// Default number of starts of each function.
const ROUNDS: usize = 20;
/// Number of events after the first one, per start.
const WARM_EVENTS: usize = 10;
/// Time limit for a function.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time of a function's first response, as a multiple of the empty function's.
const RATIO_AIM: f64 = 1.3;
/// Maximum size of the archive to upload, in MB.
const ZIP_AIM_MB: f64 = 6.0;
const MIB: f64 = 1024.0 * 1024.0;
const MB: f64 = 1_000_000.0;

#[derive(Default)]
struct Measurements {
    next_ms: Vec<f64>,
    first_ms: Vec<f64>,
    warm_ms: Vec<f64>,
    resident_mib: Vec<f64>,
    /// Connections opened by the first event, over all rounds.
    opened: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let profile = args.next().unwrap_or_else(|| "lambda".to_owned());
    let rounds: usize = args.next().map_or(Ok(ROUNDS), |text| text.parse()).context("ROUNDS is a number")?;
    let building = profile.clone();
    let binaries = tokio::task::spawn_blocking(move || build(&building)).await??;
    let dir = tempfile::tempdir()?;
    let opened = if rounds > 0 { measure_starts(&profile, rounds, &binaries, dir.path()).await? } else { 0 };
    worker_batch::measure_and_print(&binaries, dir.path()).await?;
    ensure!(opened == 0, "{opened} connections were opened by first events: init has to open them");
    Ok(())
}

/// Starts all functions in turn, prints the table, and returns the number of connections that first events opened.
async fn measure_starts(
    profile: &str,
    rounds: usize,
    binaries: &BTreeMap<String, PathBuf>,
    dir: &Path,
) -> anyhow::Result<u64> {
    let aws = AwsEndpoint::start(&dir.join("data"), None).await?;
    let names: Vec<&str> = [HELLO].into_iter().chain(FUNCTIONS).collect();
    let mut measured: BTreeMap<&str, Measurements> = BTreeMap::new();
    // Round 0 loads the binaries into memory and isn't counted.
    for round in 0..=rounds {
        for name in &names {
            let binary = binaries.get(*name).with_context(|| format!("{name} was not built"))?;
            let start = start(name, binary, &aws);
            let one = tokio::time::timeout(TIMEOUT, start).await;
            let one = one.with_context(|| format!("{name} does not answer"))?;
            let one = one.with_context(|| format!("starting {name}"))?;
            if round > 0 {
                let all = measured.entry(name).or_default();
                all.next_ms.extend(one.next_ms);
                all.first_ms.extend(one.first_ms);
                all.warm_ms.extend(one.warm_ms);
                all.resident_mib.extend(one.resident_mib);
                all.opened += one.opened;
            }
        }
    }
    let sizes = names.iter().map(|name| Ok((*name, binary_and_zip_bytes(binaries, name)?)));
    let sizes: BTreeMap<&str, (usize, usize)> = sizes.collect::<anyhow::Result<_>>()?;
    print(profile, rounds, &names, &mut measured, &sizes);
    Ok(measured.values().map(|measured| measured.opened).sum())
}

/// Measures one start: until the first event is requested, until it is answered, and later events.
async fn start(name: &str, binary: &Path, aws: &AwsEndpoint) -> anyhow::Result<Measurements> {
    let runtime = RuntimeApi::start().await?;
    let event = idle_event(name)?;
    let mut function = Function::start(binary, &runtime, &aws.vars(name)?)?;
    let first_request = tokio::select! {
        first_request = runtime.wait_for_request(1) => first_request?,
        ended = function.end(TIMEOUT) => {
            anyhow::bail!("it ended with {}: {}", ended?, function.output()?);
        }
    };
    let before = aws.connections.count();
    let answer = runtime.invoke(&event).await.with_context(|| function.output().unwrap_or_default())?;
    let opened = aws.connections.count() - before;
    check(name, &answer.body)?;
    let ms = |at: Instant| (at - function.started).as_secs_f64() * 1_000.0;
    let mut measured = Measurements {
        next_ms: vec![ms(first_request)],
        first_ms: vec![ms(answer.at)],
        opened,
        ..Measurements::default()
    };
    for nth in 0..WARM_EVENTS {
        // The function is idle again once it asks for the next event, so each event is measured alone.
        runtime.wait_for_request(nth + 2).await?;
        let offered = Instant::now();
        let answer = runtime.invoke(&event).await?;
        measured.warm_ms.push((answer.at - offered).as_secs_f64() * 1_000.0);
    }
    measured.resident_mib = vec![function.resident_kib()? as f64 / 1024.0];
    Ok(measured)
}

/// Returns an event that makes the function read its table and find no work there.
fn idle_event(name: &str) -> anyhow::Result<Value> {
    let run = RunId::random();
    let sample = SampleRef {
        run,
        benchmark: "mmlu_pro".parse()?,
        plan: 1,
        shards: 1,
        position: Position { item: 0, sample: 0 },
    };
    Ok(match name {
        "bench-exports" => events::http("GET", &format!("/api/runs/{run}/export"), &[], None),
        "bench-planner" => events::sqs("bench-plans", &[&Message::Plan { run, generation: 1 }.to_body()]),
        "bench-worker" => events::sqs("bench-items", &[&Message::Sample { sample, generation: 1 }.to_body()]),
        "bench-turns" => events::sqs("bench-turns", &[&Message::Turn { sample, generation: 1 }.to_body()]),
        "bench-finisher" => {
            events::sqs("bench-finishes", &[&Message::Finish { run, generation: 1 }.to_body()])
        }
        // Waits one second for messages.
        "bench-dead-letters" => events::schedule("drain"),
        "bench-scheduler" => events::schedule("reconcile"),
        _ => events::http("GET", &format!("/api/runs/{run}"), &[], None),
    })
}

/// Fails for an unexpected response, since its time would measure something else.
fn check(name: &str, answer: &Value) -> anyhow::Result<()> {
    let is_right = match name {
        HELLO => answer["statusCode"] == 200,
        "bench-api" | "bench-exports" => answer["statusCode"] == 404,
        "bench-dead-letters" | "bench-scheduler" => true,
        _ => answer["batchItemFailures"].as_array().is_some_and(Vec::is_empty),
    };
    ensure!(is_right, "{name} answered {answer}");
    Ok(())
}

/// Returns the bytes of the binary and of the archive to upload.
fn binary_and_zip_bytes(binaries: &BTreeMap<String, PathBuf>, name: &str) -> anyhow::Result<(usize, usize)> {
    let binary = std::fs::read(binaries.get(name).context("not built")?)?;
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file(
        "bootstrap",
        SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated),
    )?;
    archive.write_all(&binary)?;
    Ok((binary.len(), archive.finish()?.into_inner().len()))
}

fn print<'a>(
    profile: &str,
    rounds: usize,
    names: &[&'a str],
    measured: &mut BTreeMap<&'a str, Measurements>,
    sizes: &BTreeMap<&str, (usize, usize)>,
) {
    let hello = measured.get_mut(HELLO).map_or(f64::NAN, |hello| median(&mut hello.first_ms));
    println!("profile {profile}, median of {rounds} starts each, taking turns\n");
    println!(
        "{:<19} {:>9} {:>9} {:>7} {:>9} {:>9} {:>8} {:>10} {:>8}",
        "function", "next ms", "first ms", "ratio", "warm ms", "RSS MiB", "opened", "binary MiB", "zip MB"
    );
    let mut missed = Vec::new();
    for name in names {
        let Some(of) = measured.get_mut(name) else { continue };
        let (binary, zip) = sizes.get(name).copied().unwrap_or_default();
        let first = median(&mut of.first_ms);
        let (ratio, zip_mb) = (first / hello, zip as f64 / MB);
        println!(
            "{name:<19} {:>9.1} {first:>9.1} {ratio:>7.2} {:>9.2} {:>9.1} {:>8} {:>10.1} {zip_mb:>8.2}",
            median(&mut of.next_ms),
            median(&mut of.warm_ms),
            median(&mut of.resident_mib),
            of.opened,
            binary as f64 / MIB,
        );
        if ratio > RATIO_AIM {
            missed
                .push(format!("{name} starts {ratio:.2} times as slowly as {HELLO}; the aim is {RATIO_AIM}"));
        }
        if zip_mb > ZIP_AIM_MB {
            missed.push(format!("{name} is {zip_mb:.1} MB zipped; the aim is {ZIP_AIM_MB}"));
        }
    }
    println!(
        "\nnext: process start until the first event is asked for; first: until it is answered, with one"
    );
    println!(
        "question to the table in it; ratio: first, beside {HELLO}; opened: connections that first events"
    );
    println!("opened; RSS: after {} events.", WARM_EVENTS + 1);
    for line in missed {
        println!("{line}");
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    if values.len() % 2 == 1 { at(middle) } else { f64::midpoint(at(middle.saturating_sub(1)), at(middle)) }
}
