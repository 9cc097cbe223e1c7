//! The container engine in the API.

use bench_engine::EngineReport;
use serde::Serialize;

/// The host's container engine, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EngineView {
    /// Name, `docker` or `podman`; `null` if there is none.
    pub name: Option<String>,
    /// Version.
    pub version: Option<String>,
    /// Protections that sandboxes with this engine have.
    pub holds: Vec<String>,
    /// Protections and parts that are missing, one sentence each.
    pub lacks: Vec<String>,
    /// Reason for which there is none, in one sentence.
    pub reason: Option<String>,
}

impl EngineView {
    pub(super) fn missing(reason: &str) -> Self {
        Self {
            name: None,
            version: None,
            holds: Vec::new(),
            lacks: Vec::new(),
            reason: Some(reason.to_owned()),
        }
    }

    pub(super) fn of(report: &EngineReport) -> Self {
        Self {
            name: Some(report.kind.to_string()),
            version: Some(report.version.clone()),
            holds: report.enforces(),
            lacks: report.lacks(),
            reason: None,
        }
    }
}

/// Returns name and version on one line.
pub(super) fn name(report: &EngineReport) -> String {
    format!("{} {}", report.kind, report.version)
}
