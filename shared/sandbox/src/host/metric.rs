//! How busy the machine is.

use bench_domain::Timestamp;
use serde::Serialize;

/// How busy the machine was at one time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metric {
    /// When.
    pub timestamp: Timestamp,
    /// Use of all processors, 0 to 1.
    pub cpu_ratio: Option<f64>,
    /// Use of the memory, 0 to 1.
    pub memory_ratio: Option<f64>,
    /// Use of the disk, 0 to 1.
    pub disk_ratio: Option<f64>,
}
