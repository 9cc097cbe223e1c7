//! Reports on the host: its resources, its metrics, and the usage of each sandbox.

use std::collections::BTreeMap;
use std::sync::Arc;

use bench_domain::Timestamp;
use futures_util::{StreamExt, stream};
use serde::Serialize;
use tokio::time::Instant;

use super::entry::Entry;
use super::lifecycle::CONCURRENT_MEASUREMENTS;
use super::machine::{Space, ratio};
use super::metric::Metric;
use super::metric_history::HOURS_MAX;
use super::{EngineView, HostError, SandboxHost};
use crate::isolation::Limits;

const GIB: f64 = 1_073_741_824.0;
/// Minimum time between two readings of a sandbox's CPU time, in seconds; closer ones are too imprecise.
const CPU_WINDOW_MIN_S: f64 = 0.25;

/// Resources of the host, and whether it can create another sandbox. Values that the machine doesn't report are `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResourcesView {
    /// True if another sandbox can be created now.
    #[serde(rename = "canCreateSandbox")]
    pub can_create_sandbox: bool,
    /// Reason for which no sandbox can be created, in one sentence.
    #[serde(rename = "rejectReason")]
    pub reject_reason: Option<String>,
    /// Limits of the host, by name; each name contains its unit.
    pub limits: BTreeMap<&'static str, Option<u64>>,
    /// Number of sandboxes by priority: `critical`, `high`, `normal`, `low`.
    #[serde(rename = "priorityBreakdown")]
    pub priority_breakdown: BTreeMap<&'static str, usize>,
    /// Number of slots in use.
    #[serde(rename = "slotsUsed")]
    pub slots_used: usize,
    /// Number of creations and commands that wait for a slot.
    pub waiting: usize,
    /// Form of isolation.
    pub isolation: IsolationView,
    /// Container engine that sandboxes can have.
    pub engine: EngineView,
    /// Usage of all processors, in percent.
    pub cpu_percent: Option<f64>,
    /// Usage of the memory, in percent.
    pub memory_percent: Option<f64>,
    /// Total memory, in GiB.
    pub memory_total_gb: Option<f64>,
    /// Available memory, in GiB.
    pub memory_available_gb: Option<f64>,
    /// Usage of the disk, 0 to 1.
    pub disk_used_ratio: Option<f64>,
    /// Number of processors.
    #[serde(rename = "cpuCount")]
    pub cpu_count: Option<usize>,
    /// Load average over 1 minute.
    pub load1: Option<f64>,
    /// Load average over 5 minutes.
    pub load5: Option<f64>,
    /// Load average over 15 minutes.
    pub load15: Option<f64>,
    /// Total memory, in bytes.
    #[serde(rename = "memoryTotalBytes")]
    pub memory_total_bytes: Option<u64>,
    /// Memory in use, in bytes.
    #[serde(rename = "memoryUsedBytes")]
    pub memory_used_bytes: Option<u64>,
    /// Available memory, in bytes.
    #[serde(rename = "memoryAvailableBytes")]
    pub memory_available_bytes: Option<u64>,
    /// Size of the disk, in bytes.
    #[serde(rename = "diskTotalBytes")]
    pub disk_total_bytes: Option<u64>,
    /// Used space of the disk, in bytes.
    #[serde(rename = "diskUsedBytes")]
    pub disk_used_bytes: Option<u64>,
    /// Free space of the disk, in bytes.
    #[serde(rename = "diskFreeBytes")]
    pub disk_free_bytes: Option<u64>,
    /// The same as `disk_used_ratio`, under the name that other hosts use.
    #[serde(rename = "diskUsedRatio")]
    pub disk_used_ratio_camel_case: Option<f64>,
}

/// Form of isolation, for callers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IsolationView {
    /// Name of the form; `none` if the machine allows none.
    pub form: &'static str,
    /// Protections that this form has.
    pub holds: Vec<String>,
    /// Protections that a stronger form would have and this one lacks, one sentence each.
    pub lacks: Vec<String>,
}

/// Usage of one sandbox.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatsView {
    /// Id of the sandbox.
    pub sandbox_id: String,
    /// Always `null`, since this host has no containers.
    pub container_id: Option<String>,
    /// CPU usage since the last request for statistics, 0 to 1.
    pub cpu_ratio: Option<f64>,
    /// CPU usage since the last request for statistics, in processors.
    pub cpu_cores_used: Option<f64>,
    /// Number of processors that the sandbox may use: all of the machine.
    pub cpu_cores_total: Option<usize>,
    /// Memory in use, in bytes.
    pub memory_usage_bytes: Option<u64>,
    /// Memory limit, in bytes.
    pub memory_limit_bytes: Option<u64>,
    /// Usage of its memory limit, 0 to 1.
    pub memory_ratio: Option<f64>,
    /// Size of the files in its working folder, in bytes.
    pub disk_bytes: Option<u64>,
    /// Time of the measurement.
    pub updated_at: Option<Timestamp>,
}

impl SandboxHost {
    /// Returns the resources of the host, and whether it can create another sandbox.
    #[allow(clippy::cast_precision_loss)] // bytes of one machine are far below 2^53
    pub fn resources(&self) -> ResourcesView {
        let reject_reason = self.reject_reason();
        let (by_priority, slots_used, waiting) = {
            let slot_pool = self.slot_pool();
            (slot_pool.by_priority(), slot_pool.slots_used(), slot_pool.waiting())
        };
        let form = self.isolation.form();
        let (memory, disk) = (self.machine.memory(), self.machine.disk());
        let load = self.machine.load();
        let gib = |bytes: u64| bytes as f64 / GIB;
        let disk_used_ratio = disk.and_then(Space::used_ratio);
        ResourcesView {
            can_create_sandbox: reject_reason.is_none(),
            reject_reason,
            limits: self.limits(),
            priority_breakdown: by_priority.iter().map(|(priority, n)| (priority.as_str(), *n)).collect(),
            slots_used,
            waiting,
            isolation: IsolationView {
                form: form.name,
                holds: form.holds.clone(),
                lacks: form.lacks.clone(),
            },
            engine: self.engine(),
            cpu_percent: self.machine.cpu_ratio().map(|ratio| ratio * 100.0),
            memory_percent: memory.and_then(Space::used_ratio).map(|ratio| ratio * 100.0),
            memory_total_gb: memory.map(|memory| gib(memory.total)),
            memory_available_gb: memory.map(|memory| gib(memory.free)),
            disk_used_ratio,
            cpu_count: self.machine.processors(),
            load1: load.map(|load| load[0]),
            load5: load.map(|load| load[1]),
            load15: load.map(|load| load[2]),
            memory_total_bytes: memory.map(|memory| memory.total),
            memory_used_bytes: memory.map(Space::used),
            memory_available_bytes: memory.map(|memory| memory.free),
            disk_total_bytes: disk.map(|disk| disk.total),
            disk_used_bytes: disk.map(Space::used),
            disk_free_bytes: disk.map(|disk| disk.free),
            disk_used_ratio_camel_case: disk_used_ratio,
        }
    }

    /// Returns the usage of the machine over the last hours, one entry per minute.
    ///
    /// # Errors
    /// [`HostError::Invalid`] if `hours` isn't between 1 and 48.
    pub fn metrics(&self, hours: u64) -> Result<Vec<Metric>, HostError> {
        if !(1..=HOURS_MAX).contains(&hours) {
            return Err(HostError::Invalid(format!("hours must be a whole number from 1 to {HOURS_MAX}.")));
        }
        Ok(self.metric_history.since(bench_clock::now(), hours))
    }

    /// Returns the usage of the sandboxes with these ids, or of all; oldest first. Ids that don't exist are left out.
    pub async fn stats(&self, ids: Option<&[&str]>) -> Vec<StatsView> {
        let mut entries = self.all_entries();
        if let Some(ids) = ids {
            entries.retain(|entry| ids.contains(&entry.id.as_str()));
        }
        let measured = stream::iter(entries).map(|entry| self.sandbox_stats(entry));
        measured.buffered(CONCURRENT_MEASUREMENTS).collect().await
    }

    async fn sandbox_stats(&self, entry: Arc<Entry>) -> StatsView {
        let usage = entry.sandbox.usage().await;
        let now = Instant::now();
        let processors = self.machine.processors();
        let memory_limit = self.config.limits.memory_bytes;
        let cpu_cores_used = usage.cpu_seconds.and_then(|cpu| {
            let mut activity = entry.activity();
            let (then, before) = activity.last_stats?;
            let elapsed_s = (now - then).as_secs_f64();
            if elapsed_s < CPU_WINDOW_MIN_S {
                return None;
            }
            activity.last_stats = Some((now, cpu));
            Some(((cpu - before) / elapsed_s).max(0.0))
        });
        #[allow(clippy::cast_precision_loss)] // few processors
        let cpu_ratio =
            cpu_cores_used.zip(processors).map(|(used, total)| (used / total as f64).clamp(0.0, 1.0));
        StatsView {
            sandbox_id: entry.id.clone(),
            container_id: None,
            cpu_ratio,
            cpu_cores_used,
            cpu_cores_total: processors,
            memory_usage_bytes: usage.memory_bytes,
            memory_limit_bytes: Some(memory_limit),
            memory_ratio: usage.memory_bytes.and_then(|used| ratio(used, memory_limit)),
            disk_bytes: usage.disk_bytes,
            updated_at: Some(bench_clock::now()),
        }
    }

    fn reject_reason(&self) -> Option<String> {
        if self.closed.is_cancelled() {
            return Some("The sandbox host is being shut down.".to_owned());
        }
        let form = self.isolation.form();
        if form.name == super::unavailable::NO_FORM {
            return form.lacks.first().cloned();
        }
        self.slot_pool().full_reason().or_else(|| self.check_memory().err().map(|error| error.to_string()))
    }

    fn limits(&self) -> BTreeMap<&'static str, Option<u64>> {
        let config = &self.config;
        let Limits { memory_bytes, processes, disk_bytes, open_files } = config.limits;
        let count = |n: usize| u64::try_from(n).ok();
        BTreeMap::from([
            ("slots", count(config.slots)),
            ("sandboxes", count(config.sandboxes_max)),
            ("waiting", count(config.waiting_max)),
            ("sandboxMemoryBytes", Some(memory_bytes)),
            ("sandboxDiskBytes", Some(disk_bytes)),
            ("sandboxProcesses", Some(processes)),
            ("sandboxCommands", count(config.execs_max)),
            ("processOpenFiles", Some(open_files)),
            ("outputBytes", count(config.output_bytes_max)),
            ("bodyBytes", count(config.body_bytes_max)),
            ("createWaitSeconds", Some(config.create_wait.as_secs())),
            ("idleSeconds", Some(config.idle_timeout.as_secs())),
            ("leaseSeconds", Some(config.lease_max.as_secs())),
        ])
    }
}
