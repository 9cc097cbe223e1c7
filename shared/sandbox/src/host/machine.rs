//! Capacity and usage of this machine, as the kernel reports them. Values that the kernel doesn't report are `None`.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

use super::Metric;

/// Minimum time between two readings of CPU times; closer ones are too imprecise.
const CPU_WINDOW_MIN: Duration = Duration::from_millis(250);

/// The kernel's report on memory.
const MEMINFO: &str = "/proc/meminfo";

/// Reads capacity and usage of this machine.
#[derive(Debug)]
pub(super) struct Machine {
    disk_folder: PathBuf,
    cpu: Mutex<CpuMeter>,
}

/// Measures CPU usage between two readings.
#[derive(Debug, Default)]
struct CpuMeter {
    last: Option<(Instant, CpuTimes)>,
    ratio: Option<f64>,
}

/// CPU time of all processors since boot, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CpuTimes {
    all: u64,
    idle: u64,
}

/// Total and free space of memory or a disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Space {
    pub(super) total: u64,
    pub(super) free: u64,
}

impl Space {
    pub(super) fn used(self) -> u64 {
        self.total.saturating_sub(self.free)
    }

    /// Share in use, 0 to 1.
    pub(super) fn used_ratio(self) -> Option<f64> {
        ratio(self.used(), self.total)
    }
}

/// Returns `part / whole`, or `None` if the whole is 0.
#[allow(clippy::cast_precision_loss)] // bytes and ticks of one machine are far below 2^53
pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (part as f64 / whole as f64).clamp(0.0, 1.0))
}

impl Machine {
    pub(super) fn new(disk_folder: PathBuf) -> Self {
        let machine = Self { disk_folder, cpu: Mutex::default() };
        // The first reading is the baseline for the next.
        machine.cpu_ratio();
        machine
    }

    pub(super) fn processors(&self) -> Option<usize> {
        std::thread::available_parallelism().ok().map(NonZeroUsize::get)
    }

    /// Returns the usage of all processors since the last call, 0 to 1.
    pub(super) fn cpu_ratio(&self) -> Option<f64> {
        let now = (Instant::now(), read("/proc/stat", cpu_times)?);
        let mut meter = self.cpu.lock().unwrap_or_else(PoisonError::into_inner);
        match meter.last {
            Some((then, before)) if now.0 - then >= CPU_WINDOW_MIN => {
                let all = now.1.all.saturating_sub(before.all);
                let idle = now.1.idle.saturating_sub(before.idle);
                meter.ratio = ratio(all.saturating_sub(idle), all).or(meter.ratio);
                meter.last = Some(now);
            }
            Some(_) => {}
            None => {
                // Use the average since boot until there is a second reading.
                meter.ratio = ratio(now.1.all.saturating_sub(now.1.idle), now.1.all);
                meter.last = Some(now);
            }
        }
        meter.ratio
    }

    pub(super) fn memory(&self) -> Option<Space> {
        read(MEMINFO, memory)
    }

    pub(super) fn memory_available_bytes(&self) -> Option<u64> {
        self.memory().map(|memory| memory.free)
    }

    /// Returns the space of the disk with the host's folder; free is what an unprivileged user may use.
    pub(super) fn disk(&self) -> Option<Space> {
        let stat = rustix::fs::statvfs(nearest_existing(&self.disk_folder)).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Some(Space { total: bytes(stat.f_blocks), free: bytes(stat.f_bavail) })
    }

    /// Returns the load averages over 1, 5 and 15 minutes.
    pub(super) fn load(&self) -> Option<[f64; 3]> {
        read("/proc/loadavg", load)
    }

    pub(super) fn metric(&self) -> Metric {
        Metric {
            timestamp: bench_clock::now(),
            cpu_ratio: self.cpu_ratio(),
            memory_ratio: self.memory().and_then(Space::used_ratio),
            disk_ratio: self.disk().and_then(Space::used_ratio),
        }
    }
}

/// Returns the total memory of this machine, in bytes.
pub(super) fn memory_bytes() -> Option<u64> {
    read(MEMINFO, memory).map(|memory| memory.total)
}

/// Returns the folder, or its nearest ancestor that exists.
fn nearest_existing(folder: &Path) -> &Path {
    folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"))
}

fn read<T>(path: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    parse(&fs::read_to_string(path).ok()?)
}

fn cpu_times(text: &str) -> Option<CpuTimes> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let times: Vec<u64> = line.split_whitespace().map_while(|time| time.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest times are already part of user.
    let idle = times.get(3)?.saturating_add(times.get(4).copied().unwrap_or(0));
    Some(CpuTimes { all: times.iter().take(8).sum(), idle })
}

fn memory(text: &str) -> Option<Space> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
    };
    let total = field("MemTotal")?;
    Some(Space { total, free: field("MemAvailable")?.min(total) })
}

fn load(text: &str) -> Option<[f64; 3]> {
    let mut numbers = text.split_whitespace().map(|number| number.parse::<f64>().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_reports_are_parsed() {
        let times = cpu_times("cpu  10 1 5 80 4 0 1 0 7 0\ncpu0 1 1 1 1\n").unwrap();
        assert_eq!(times, CpuTimes { all: 101, idle: 84 });
        let space = memory("MemTotal:  2048 kB\nMemFree: 1 kB\nMemAvailable:    512 kB\n").unwrap();
        assert_eq!(space, Space { total: 2_097_152, free: 524_288 });
        assert_eq!(space.used_ratio(), Some(0.75));
        assert_eq!(load("0.50 1.25 3.00 1/200 77\n"), Some([0.5, 1.25, 3.0]));
        for garbage in ["", "cpu ", "MemTotal: many kB", "0.5 x", "\0"] {
            assert!(cpu_times(garbage).is_none() && memory(garbage).is_none() && load(garbage).is_none());
        }
    }

    #[test]
    fn this_machine_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::new(folder.path().join("not/there/yet"));
        let disk = machine.disk().unwrap();
        assert!(disk.total > 0 && disk.free <= disk.total);
        if cfg!(target_os = "linux") {
            let metric = machine.metric();
            assert!((0.0..=1.0).contains(&metric.cpu_ratio.unwrap()), "{metric:?}");
            assert!(metric.memory_ratio.is_some() && machine.load().is_some());
        }
    }
}
