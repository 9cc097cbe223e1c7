//! The data directory: access, use by other processes, and free disk space.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bench_embedded::{DataDirState, inspect_data_dir};
use rustix::fs::statvfs;

use super::finding::{Check, Finding, with_timeout};
use crate::exit::{IN_USE_HINT, sentence};
use crate::format;

/// Maximum time for the disk to answer. A network mount may never answer.
const LIMIT: Duration = Duration::from_secs(10);
/// Free space below which the large datasets may not fit: LiveCodeBench takes several gigabytes, and the values of
/// SciCode and the packages of `bench sandy setup` take 1.5.
const FREE_BYTES_RECOMMENDED: u64 = 5_000_000_000;
/// Advice for a directory that can't be used.
const OWN_FOLDER: &str = "give a folder of your own with --data-dir or BENCH_HOME";
/// Free space below which a run, which stores each prompt and each answer, may fill the disk.
const FREE_BYTES_MIN: u64 = 200_000_000;

pub(super) async fn check(data_dir: &anyhow::Result<PathBuf>) -> Vec<Finding> {
    let check = Check::new("data-directory", "data directory");
    let data_dir = match data_dir {
        Ok(data_dir) => data_dir,
        Err(error) => {
            return vec![check.problem(sentence(error), OWN_FOLDER)];
        }
    };
    let (path, in_thread) = (data_dir.clone(), check.clone());
    let look = tokio::task::spawn_blocking(move || (directory(&in_thread, &path), Disk::for_folder(&path)));
    match with_timeout(LIMIT, look).await {
        Some(Ok((_, Some(disk)))) if disk.total_bytes == 0 => vec![no_disk(&check, data_dir, &disk)],
        Some(Ok((directory, disk))) => {
            let space = disk.map(|disk| space(&Check::new("disk", "disk"), disk.free_bytes));
            [Some(directory), space].into_iter().flatten().collect()
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
        Ok(DataDirState::Missing) => check.ok(format!("{shown} (the first run creates it)")),
        Ok(DataDirState::InUse { pid, shares }) => {
            let by = pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
            if shares {
                return check.ok(format!("{shown} (in use by {by}, which other commands share)"));
            }
            check.warning(format!("{shown} is in use by {by}"), IN_USE_HINT)
        }
        Err(error) => {
            let fix = format!("correct its owner or permissions, or {OWN_FOLDER}");
            check.problem(sentence(&error.into()), fix)
        }
    }
}

/// Reports a directory in a file system that stores nothing, such as `/proc`.
fn no_disk(check: &Check, data_dir: &Path, disk: &Disk) -> Finding {
    let fact = format!(
        "{} cannot be used: the file system of `{}` stores no files",
        data_dir.display(),
        disk.folder.display()
    );
    check.problem(fact, OWN_FOLDER)
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

/// The disk of a folder.
struct Disk {
    /// The folder, or the nearest one above it that exists.
    folder: PathBuf,
    /// Size of the file system; 0 for one that stores no files.
    total_bytes: u64,
    /// Bytes that this user may still write.
    free_bytes: u64,
}

impl Disk {
    /// Looks at the disk of a folder, which may be missing.
    fn for_folder(folder: &Path) -> Option<Self> {
        let nearest = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
        let stats = statvfs(nearest).ok()?;
        Some(Self {
            folder: nearest.to_owned(),
            total_bytes: stats.f_blocks.saturating_mul(stats.f_frsize),
            free_bytes: stats.f_bavail.saturating_mul(stats.f_frsize),
        })
    }
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
        assert!(Disk::for_folder(Path::new("/no/such/folder")).unwrap().total_bytes > 0);
    }

    #[tokio::test]
    async fn a_file_system_that_stores_nothing_is_one_problem() {
        let findings = check(&Ok("/proc/x".into())).await;
        let [finding] = findings.as_slice() else { panic!("{findings:?}") };
        let fact = "/proc/x cannot be used: the file system of `/proc` stores no files";
        assert_eq!((finding.status, finding.fact.as_str()), (Status::Problem, fact));
        assert_eq!(finding.fix.as_deref(), Some(OWN_FOLDER));
    }

    #[tokio::test]
    async fn a_machine_without_a_home_gets_advice() {
        let findings = check(&Err(anyhow::anyhow!("there is no home directory"))).await;
        assert_eq!(findings[0].status, Status::Problem);
        assert!(findings[0].fix.as_ref().unwrap().contains("BENCH_HOME"));
    }
}
