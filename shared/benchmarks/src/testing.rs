//! Runs jobs in tests, without a sandbox host.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use bench_domain::{FileContent, HarvestedFile, JobEnd, JobFile, JobReport, JobSpec};

/// Runs a job as plain processes in a folder, in place of a sandbox host.
pub(crate) fn run(job: &JobSpec, folder: &Path) -> JobReport {
    for JobFile { path, content } in &job.files {
        let FileContent::Bytes(bytes) = content else { panic!("{path} is stored") };
        std::fs::write(folder.join(path), bytes).unwrap();
    }
    let output = Command::new("bash")
        .args(["-c", &job.script])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut files = BTreeMap::new();
    for result in &job.results {
        if let Ok(bytes) = std::fs::read(folder.join(&result.path)) {
            assert!(bytes.len() as u64 <= result.bytes_max);
            files.insert(result.path.clone(), HarvestedFile::Text(String::from_utf8(bytes).unwrap()));
        }
    }
    JobReport {
        end: output.status.code().map_or(JobEnd::Vanished, JobEnd::Exited),
        files,
        stdout_tail: String::from_utf8_lossy(&output.stdout).into(),
        stderr_tail: String::from_utf8_lossy(&output.stderr).into(),
        elapsed_ms: None,
        isolation: Some("none".into()),
    }
}
