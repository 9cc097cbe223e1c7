//! Measures episodes of terminal tasks: `bench-episodes [TASKS]`, default 75, with ten episodes of each. With 0, measures
//! only those on a container engine.
//!
//! `bench serve` works on one order of all episodes twice, with a scripted sandbox host in this process: it decodes each
//! command and answers it from a script, without starting anything. First every operation of an episode has ended when it
//! is asked for, so that an episode takes one turn. Then each of its 13 operations is still running in three turns, which
//! makes 40 turns: a worker claims the sample, loads its task and checkpoint, asks the host, saves the checkpoint and puts
//! the sample off. The number of turns is the number of claims that the server reports for the samples.
//!
//! Prints the CPU time of an additional turn, the time until the order was accepted, and the peak memory of the server.
//! The second run takes about four minutes, since the turns wait as they do for a real host.
//!
//! Then the agent `bash` runs 1, 20 or 39 commands in each of 20 episodes, as a scripted model wants it. Prints the CPU time
//! and the stored bytes of an additional turn (a model call and its command), how many times more bytes the turns of the
//! second half take than those of the first, and for an episode alone the time from a reply of the model to the next request.
//!
//! The same agent then works on the repositories of the demo data, whose changes are verified.
//!
//! Four conversations of the demo domain have 50, 98 and 198 messages of two scripted models, with tools in sandboxes of the server.
//! Prints the CPU time of a turn, and the stored bytes of each length with their growth. Then the step script repeats 200 messages
//! in the demo domain and, if `bench sandy setup tau2` has installed it, in the official package.
//!
//! With a container engine (`docker version` works, and an image of /bin/busybox can be built), also prints the oracle's
//! episodes per minute with one sandbox per processor, and the share that the engine alone takes to run as many containers
//! of the same image. Uses loopback only and ends by itself.

mod agents;
mod conversations;
mod engine;
mod load;
mod replay;
mod server;

use std::path::Path;

use anyhow::{bail, ensure};
use tokio::signal::unix::{SignalKind, signal};

use load::{Load, Measured};

const TASKS_DEFAULT: usize = 75;
const SAMPLES: u32 = 10;
/// Turns in which each operation of a long episode is still running.
const POLLS: u32 = 3;
/// Maximum cost of a turn, in milliseconds of CPU time.
const TURN_AIM_MS: f64 = 5.0;
/// Maximum time until an order is accepted, in seconds.
const ACCEPTED_AIM_S: f64 = 2.0;
/// Maximum peak memory of the server, in MiB.
const PEAK_AIM_MIB: f64 = 300.0;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let tasks = std::env::args().nth(1).map_or(Ok(TASKS_DEFAULT), |text| text.parse())?;
    let bench = std::env::current_exe()?.with_file_name("bench");
    ensure!(
        bench.exists(),
        "`{}` does not exist: build bench-cli with the same profile first",
        bench.display()
    );
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // Dropping the work ends its child processes.
    tokio::select! {
        done = work(&bench, tasks) => done?,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
    Ok(())
}

async fn work(bench: &Path, tasks: usize) -> anyhow::Result<()> {
    if tasks > 0 {
        measure_scripted(bench, tasks).await?;
        agents::measure(bench).await?;
        conversations::measure(bench).await?;
        replay::measure()?;
    }
    engine::measure(bench).await
}

/// Measures episodes on the scripted host.
async fn measure_scripted(bench: &Path, tasks: usize) -> anyhow::Result<()> {
    println!(
        "{:<18} {:>8} {:>6} {:>8} {:>10} {:>7} {:>6} {:>8}",
        "operations", "episodes", "turns", "commands", "accepted s", "wall s", "CPU s", "peak MiB"
    );
    let short = measure(bench, "end at once", Load { tasks, samples: SAMPLES, polls: 0 }).await?;
    let long = measure(bench, "run for 3 turns", Load { tasks, samples: SAMPLES, polls: POLLS }).await?;
    ensure!(long.turns > short.turns, "the long episodes brought no turn more");
    let more = (long.turns - short.turns) as f64;
    let turn_ms = (long.cpu_ms - short.cpu_ms) / more;
    let accepted_s = long.accepted.as_secs_f64();
    println!(
        "\na turn costs {turn_ms:.2} ms of CPU time ({:.2} of the {TURN_AIM_MS} ms aimed at), over {more} turns\n\
         {} episodes of {:.0} turns: accepted in {accepted_s:.2} s ({:.2} of the {ACCEPTED_AIM_S} s aimed at), all \
         correct, peak memory {:.0} MiB ({:.2} of the {PEAK_AIM_MIB} MiB aimed at)",
        turn_ms / TURN_AIM_MS,
        long.episodes,
        long.turns as f64 / long.episodes as f64,
        accepted_s / ACCEPTED_AIM_S,
        long.peak_mib,
        long.peak_mib / PEAK_AIM_MIB,
    );
    Ok(())
}

async fn measure(bench: &Path, name: &str, load: Load) -> anyhow::Result<Measured> {
    let measured = load::measure(bench, &load).await?;
    println!(
        "{name:<18} {:>8} {:>6} {:>8} {:>10.2} {:>7.0} {:>6.1} {:>8.0}",
        measured.episodes,
        measured.turns,
        measured.commands,
        measured.accepted.as_secs_f64(),
        measured.wall.as_secs_f64(),
        measured.cpu_ms / 1_000.0,
        measured.peak_mib,
    );
    Ok(measured)
}
