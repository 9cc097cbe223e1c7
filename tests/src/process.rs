//! Resources of other processes, from /proc.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

/// Kernel clock ticks per second, the unit of processor time in /proc on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// Sampling interval of a command.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Time limit of a command.
const COMMAND_MAX: Duration = Duration::from_secs(900);

/// Processes whose processor time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuOf {
    /// The process itself.
    Process,
    /// Its children that have ended, and theirs.
    EndedChildren,
}

/// Resources that a command used until its end.
#[derive(Debug, Clone, Copy)]
pub struct ResourceUsage {
    /// Processor time of the command and its children, in milliseconds.
    pub cpu_ms: f64,
    /// Peak resident memory of the command without its children, in MiB.
    pub peak_mib: f64,
    /// Time from its start to its end.
    pub seconds: f64,
}

/// Returns the user and system time of a process in milliseconds. `process` is its id, or `self`.
///
/// # Errors
/// Fails if the process has ended.
pub fn cpu_ms(process: &str, of: CpuOf) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in parentheses may contain anything.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let places = match of {
        CpuOf::Process => [11, 12],
        CpuOf::EndedChildren => [13, 14],
    };
    let mut ticks = 0.0;
    for place in places {
        ticks += fields.get(place).context("the process has no processor time")?.parse::<f64>()?;
    }
    Ok(ticks / TICKS_PER_SECOND * 1_000.0)
}

/// Returns the resident memory of a process in KiB.
///
/// # Errors
/// Fails if the process has ended.
pub fn resident_kib(process: u32) -> anyhow::Result<u64> {
    status_kib(process, "VmRSS:")
}

/// Returns the largest resident memory that a process had, in KiB.
///
/// # Errors
/// Fails if the process has ended.
pub fn peak_kib(process: u32) -> anyhow::Result<u64> {
    status_kib(process, "VmHWM:")
}

fn status_kib(process: u32, name: &'static str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).context(name)?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

/// Runs a command to its end. Calls `watch` at short intervals meanwhile. Other children must not end at the same time.
///
/// # Errors
/// Fails if the command can't be started, fails, or takes longer than 15 minutes.
pub async fn run_to_end(command: &mut Command, mut watch: impl FnMut()) -> anyhow::Result<ResourceUsage> {
    let cpu_before = cpu_ms("self", CpuOf::EndedChildren)?;
    let started = Instant::now();
    let mut child = command.spawn()?;
    let mut peak = 0;
    loop {
        // A command that has just ended has no memory.
        peak = peak.max(peak_kib(child.id()).unwrap_or_default());
        watch();
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "{:?} ended with {status}", command.get_program());
            return Ok(ResourceUsage {
                cpu_ms: cpu_ms("self", CpuOf::EndedChildren)? - cpu_before,
                peak_mib: peak as f64 / 1_024.0,
                seconds: started.elapsed().as_secs_f64(),
            });
        }
        if started.elapsed() > COMMAND_MAX {
            child.kill()?;
            bail!("the command took longer than {} s", COMMAND_MAX.as_secs());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
