//! Limits of uploaded tasks.

use bench_terminal_tasks::{AdmissionLimits, TreeLimits};

/// Maximum size of a custom agent's archive in bytes.
pub const AGENT_ARCHIVE_BYTES_MAX: u64 = bench_terminal_tasks::AGENT_ARCHIVE_BYTES_MAX;
/// Maximum size of an archive in bytes.
pub const ARCHIVE_BYTES_MAX: u64 = bench_terminal_tasks::ARCHIVE_BYTES_MAX;
/// Maximum size of a task's files in bytes: environments bundle this much.
pub const EXPANDED_BYTES_MAX: u64 = 60 << 20;

/// Limits of uploaded tasks.
///
/// | variable | default | meaning |
/// | --- | --- | --- |
/// | `BENCH_TASK_CPUS_MAX` | 16 | processors that a task may demand for a container |
/// | `BENCH_TASK_MEMORY_MB_MAX` | 65536 | memory that a task may demand for a container, in MiB |
/// | `BENCH_TASK_STORAGE_MB_MAX` | 131072 | disk space that a task may demand for a container, in MiB |
#[derive(Debug, Clone, PartialEq)]
pub struct TaskLimits {
    /// Maximum size of an archive in bytes.
    pub archive_bytes_max: u64,
    /// Limits on the files in it.
    pub tree: TreeLimits,
    /// Demands that the system can meet.
    pub admission: AdmissionLimits,
}

impl Default for TaskLimits {
    fn default() -> Self {
        let tree = TreeLimits {
            file_bytes_max: EXPANDED_BYTES_MAX,
            task_bytes_max: EXPANDED_BYTES_MAX,
            ..TreeLimits::default()
        };
        Self { archive_bytes_max: ARCHIVE_BYTES_MAX, tree, admission: AdmissionLimits::default() }
    }
}

impl TaskLimits {
    /// Reads the limits from environment variables. `var` returns `None` for a variable that isn't set.
    ///
    /// # Errors
    /// One sentence that names the variable and the problem.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let read = |name: &str| {
            let Some(text) = var(name).filter(|text| !text.trim().is_empty()) else { return Ok(None) };
            let number = text.trim().parse::<u32>().ok().filter(|number| *number > 0);
            number.map(Some).ok_or_else(|| format!("{name}: `{}` is not a whole number from 1", text.trim()))
        };
        let mut limits = Self::default();
        let admission = &mut limits.admission;
        if let Some(cpus) = read("BENCH_TASK_CPUS_MAX")? {
            admission.cpus_max = cpus.into();
        }
        if let Some(mebibytes) = read("BENCH_TASK_MEMORY_MB_MAX")? {
            admission.memory_mb_max = mebibytes.into();
        }
        if let Some(mebibytes) = read("BENCH_TASK_STORAGE_MB_MAX")? {
            admission.storage_mb_max = mebibytes.into();
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_change_what_tasks_may_demand() {
        let var = |name: &str| (name == "BENCH_TASK_CPUS_MAX").then(|| " 2 ".to_owned());
        let limits = TaskLimits::from_vars(var).unwrap();
        assert_eq!(limits.admission.cpus_max, 2.0);
        assert_eq!(limits.tree.task_bytes_max, 62_914_560);
        for bad in ["0", "-1", "many", "1.5"] {
            let var = |name: &str| (name == "BENCH_TASK_MEMORY_MB_MAX").then(|| bad.to_owned());
            assert!(TaskLimits::from_vars(var).unwrap_err().starts_with("BENCH_TASK_MEMORY_MB_MAX"));
        }
    }
}
