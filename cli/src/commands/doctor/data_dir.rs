//! The data directory: access, use by other processes, and free disk space.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bench_embedded::{DataDirState, inspect_data_dir};
use rustix::fs::statvfs;

use super::finding::{Check, Finding, within};
use crate::exit::{IN_USE_HINT, sentence};
use crate::format;

/// Maximum time for the disk to answer. A network mount may never answer.
const LIMIT: Duration = Duration::from_secs(10);
/// Free space below which the large datasets may not fit: LiveCodeBench takes several gigabytes, and the values of
/// SciCode and the packages of `bench sandy setup` take 1.5.
const FREE_BYTES_RECOMMENDED: u64 = 5_000_000_000;
/// Free space below which a run, which stores each prompt and each answer, may fill the disk.
const FREE_BYTES_MIN: u64 = 200_000_000;

pub(super) async fn check(data_dir: &anyhow::Result<PathBuf>) -> Vec<Finding> {
    let check = Check::new("data-directory", "data directory");
    let data_dir = match data_dir {
        Ok(data_dir) => data_dir,
        Err(error) => {
            let fix = "give a folder with --data-dir, or set BENCH_HOME";
            return vec![check.problem(sentence(error), fix)];
        }
    };
    let (looked_at, in_thread) = (data_dir.clone(), check.clone());
    let look =
        tokio::task::spawn_blocking(move || (directory(&in_thread, &looked_at), free_bytes(&looked_at)));
    match within(LIMIT, look).await {
        Some(Ok((directory, free))) => {
            let disk = free.map(|free| space(&Check::new("disk", "disk"), free));
            [Some(directory), disk].into_iter().flatten().collect()
        }
        _ => {
            let fact = format!("{}: the disk doesn't answer", data_dir.display());
            vec![check.problem(fact, "check the disk or mount, or use another folder with --data-dir")]
        }
    }
}

fn directory(check: &Check, data_dir: &Path) -> Finding {
    let shown = data_dir.display();
    match inspect_data_dir(data_dir) {
        Ok(DataDirState::Free) => check.ok(shown.to_string()),
        Ok(DataDirState::Missing) => check.ok(format!("{shown}, which the first run creates")),
        Ok(DataDirState::InUse { pid }) => {
            let by = pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
            check.warning(format!("{shown}, in use by {by}"), IN_USE_HINT)
        }
        Err(error) => {
            let fix = "correct its owner or permissions, or name a folder of your own with --data-dir or BENCH_HOME";
            check.problem(error.to_string(), fix)
        }
    }
}

fn space(check: &Check, free: u64) -> Finding {
    let fact = format!("{} free", format::bytes(free));
    let fix =
        "free some space, or use another disk with --data-dir: LiveCodeBench and SciCode take about 5 GB";
    match free {
        0..FREE_BYTES_MIN => check.problem(fact, fix),
        FREE_BYTES_MIN..FREE_BYTES_RECOMMENDED => check.warning(fact, fix),
        _ => check.ok(fact),
    }
}

/// Returns the bytes that this user may still write to the disk of a folder. The folder may be missing.
fn free_bytes(folder: &Path) -> Option<u64> {
    let nearest = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let stats = statvfs(nearest).ok()?;
    Some(stats.f_bavail.saturating_mul(stats.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Status;

    #[test]
    fn a_full_disk_is_a_problem_and_a_small_one_a_warning() {
        let check = Check::new("disk", "disk");
        for (free, status) in [
            (0, Status::Problem),
            (199_999_999, Status::Problem),
            (200_000_000, Status::Warning),
            (4_999_999_999, Status::Warning),
            (5_000_000_000, Status::Ok),
        ] {
            assert_eq!(space(&check, free).status, status, "{free}");
        }
        assert!(free_bytes(Path::new("/no/such/folder")).is_some());
    }

    #[tokio::test]
    async fn a_machine_without_a_home_is_told_what_to_set() {
        let findings = check(&Err(anyhow::anyhow!("there is no home directory"))).await;
        assert_eq!(findings[0].status, Status::Problem);
        assert!(findings[0].fix.as_ref().unwrap().contains("BENCH_HOME"));
    }
}
