//! Answers of the service. Unknown fields are dropped, and every known field is always present.

use std::collections::BTreeMap;

use bench_domain::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::read::{FieldError, Fields, integer, read_list};

/// Maximum number of entries kept of `limits` and `priorityBreakdown`.
const ENTRIES_MAX: usize = 64;
const GIB: f64 = 1_073_741_824.0;

/// Resources of the sandbox host.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Resources {
    /// True if another sandbox can be created.
    #[serde(rename = "canCreateSandbox")]
    pub can_create_sandbox: bool,
    /// Reason for which no sandbox can be created.
    #[serde(rename = "rejectReason")]
    pub reject_reason: Option<String>,
    /// Limits of the service, by name.
    pub limits: BTreeMap<String, Option<f64>>,
    /// Number of sandboxes by priority.
    #[serde(rename = "priorityBreakdown")]
    pub priority_breakdown: BTreeMap<String, i64>,
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
    pub cpu_count: Option<i64>,
    /// Load average over 1 minute.
    pub load1: Option<f64>,
    /// Load average over 5 minutes.
    pub load5: Option<f64>,
    /// Load average over 15 minutes.
    pub load15: Option<f64>,
    /// Total memory, in bytes.
    #[serde(rename = "memoryTotalBytes")]
    pub memory_total_bytes: Option<i64>,
    /// Memory in use, in bytes.
    #[serde(rename = "memoryUsedBytes")]
    pub memory_used_bytes: Option<i64>,
    /// Available memory, in bytes.
    #[serde(rename = "memoryAvailableBytes")]
    pub memory_available_bytes: Option<i64>,
    /// Size of the disk, in bytes.
    #[serde(rename = "diskTotalBytes")]
    pub disk_total_bytes: Option<i64>,
    /// Used space of the disk, in bytes.
    #[serde(rename = "diskUsedBytes")]
    pub disk_used_bytes: Option<i64>,
    /// Free space of the disk, in bytes.
    #[serde(rename = "diskFreeBytes")]
    pub disk_free_bytes: Option<i64>,
    /// Usage of the disk, 0 to 1, under the name that some hosts use.
    #[serde(rename = "diskUsedRatio")]
    pub disk_used_ratio_camel_case: Option<f64>,
}

#[allow(clippy::cast_precision_loss)] // bytes of one machine are far below 2^53
impl Resources {
    pub(crate) fn read(value: &Value) -> Result<Self, FieldError> {
        let fields = Fields::new(value, "it")?;
        let (total, used) = (fields.integer("memoryTotalBytes")?, fields.integer("memoryUsedBytes")?);
        let available = fields.integer("memoryAvailableBytes")?;
        let gib = |bytes: Option<i64>| bytes.map(|bytes| bytes as f64 / GIB);
        let percent = match (used, total) {
            (Some(used), Some(total)) if total > 0 => Some(used as f64 / total as f64 * 100.0),
            _ => None,
        };
        let either = |name: &str, other: &str| match fields.number(name)? {
            Some(number) => Ok(Some(number)),
            None => fields.number(other),
        };
        let camel_case = fields.number("diskUsedRatio")?;
        Ok(Self {
            can_create_sandbox: fields
                .flag("canCreateSandbox")?
                .ok_or_else(|| FieldError::new("canCreateSandbox", "present"))?,
            reject_reason: fields.text("rejectReason")?,
            limits: entries(fields.object("limits")?, "limits", |value| match value {
                Value::Null => Some(None),
                value => value.as_f64().map(Some),
            })?,
            priority_breakdown: entries(fields.object("priorityBreakdown")?, "priorityBreakdown", integer)?,
            cpu_percent: fields.number("cpu_percent")?,
            memory_percent: fields.number("memory_percent")?.or(percent),
            memory_total_gb: fields.number("memory_total_gb")?.or(gib(total)),
            memory_available_gb: fields.number("memory_available_gb")?.or(gib(available)),
            disk_used_ratio: fields.number("disk_used_ratio")?.or(camel_case),
            cpu_count: fields.integer("cpuCount")?,
            load1: either("load1", "load_avg_1m")?,
            load5: either("load5", "load_avg_5m")?,
            load15: either("load15", "load_avg_15m")?,
            memory_total_bytes: total,
            memory_used_bytes: used,
            memory_available_bytes: available,
            disk_total_bytes: fields.integer("diskTotalBytes")?,
            disk_used_bytes: fields.integer("diskUsedBytes")?,
            disk_free_bytes: fields.integer("diskFreeBytes")?,
            disk_used_ratio_camel_case: camel_case,
        })
    }
}

fn entries<T>(
    object: Option<&Map<String, Value>>,
    name: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<BTreeMap<String, T>, FieldError> {
    let all = object.into_iter().flatten().take(ENTRIES_MAX);
    all.map(|(key, value)| {
        let value = read(value).ok_or_else(|| FieldError::new(format!("an entry of {name}"), "a number"))?;
        Ok((key.chars().take(100).collect(), value))
    })
    .collect()
}

/// Usage of the host at one time.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct HostMetric {
    /// Time of the measurement.
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Timestamp,
    /// Usage of all processors, 0 to 1.
    pub cpu_ratio: Option<f64>,
    /// Usage of the memory, 0 to 1.
    pub memory_ratio: Option<f64>,
    /// Usage of the disk, 0 to 1.
    pub disk_ratio: Option<f64>,
}

pub(crate) fn read_metrics(value: &Value) -> Result<Vec<HostMetric>, FieldError> {
    read_list(value, |fields| {
        Ok(HostMetric {
            timestamp: fields.time("timestamp")?.ok_or_else(|| FieldError::new("timestamp", "present"))?,
            cpu_ratio: fields.number("cpu_ratio")?,
            memory_ratio: fields.number("memory_ratio")?,
            disk_ratio: fields.number("disk_ratio")?,
        })
    })
}

/// Usage of one sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SandboxStats {
    /// Id of the sandbox.
    pub sandbox_id: String,
    /// Id of its container.
    pub container_id: Option<String>,
    /// CPU usage, 0 to 1.
    pub cpu_ratio: Option<f64>,
    /// CPU usage, in processors.
    pub cpu_cores_used: Option<f64>,
    /// Number of processors that it may use.
    pub cpu_cores_total: Option<i64>,
    /// Memory in use, in bytes.
    pub memory_usage_bytes: Option<i64>,
    /// Memory limit, in bytes.
    pub memory_limit_bytes: Option<i64>,
    /// Usage of its memory limit, 0 to 1.
    pub memory_ratio: Option<f64>,
    /// Used disk space, in bytes.
    pub disk_bytes: Option<i64>,
    /// Time of the measurement.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub updated_at: Option<Timestamp>,
}

pub(crate) fn read_stats(value: &Value) -> Result<Vec<SandboxStats>, FieldError> {
    read_list(value, |fields| {
        Ok(SandboxStats {
            sandbox_id: fields.text("sandbox_id")?.ok_or_else(|| FieldError::new("sandbox_id", "present"))?,
            container_id: fields.text("container_id")?,
            cpu_ratio: fields.number("cpu_ratio")?,
            cpu_cores_used: fields.number("cpu_cores_used")?,
            cpu_cores_total: fields.integer("cpu_cores_total")?,
            memory_usage_bytes: fields.integer("memory_usage_bytes")?,
            memory_limit_bytes: fields.integer("memory_limit_bytes")?,
            memory_ratio: fields.number("memory_ratio")?,
            disk_bytes: fields.integer("disk_bytes")?,
            updated_at: fields.time("updated_at")?,
        })
    })
}
