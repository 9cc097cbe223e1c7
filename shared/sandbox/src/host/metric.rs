//! Metrics of the machine.

use bench_domain::Timestamp;
use serde::Serialize;

/// Usage of the machine at one time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metric {
    /// Time of the measurement.
    pub timestamp: Timestamp,
    /// Usage of all processors, 0 to 1.
    pub cpu_ratio: Option<f64>,
    /// Usage of the memory, 0 to 1.
    pub memory_ratio: Option<f64>,
    /// Usage of the disk, 0 to 1.
    pub disk_ratio: Option<f64>,
}
