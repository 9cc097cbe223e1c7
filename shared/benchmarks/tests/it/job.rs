//! Runs jobs without a sandbox. The tests only run programs of this repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bench_domain::{FileContent, HarvestedFile, JobEnd, JobReport, JobSpec};
use tempfile::TempDir;

/// Folder of a job.
pub(crate) struct JobFolder {
    folder: TempDir,
    script: String,
    results: Vec<(String, u64)>,
}

impl JobFolder {
    /// Writes the files. The key of a stored file is its path on this machine.
    pub(crate) fn create(spec: &JobSpec) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in &spec.files {
            let path = folder.path().join(&file.path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match &file.content {
                FileContent::Bytes(bytes) => fs::write(&path, bytes).unwrap(),
                FileContent::Stored(stored) => drop(fs::copy(&stored.key, &path).unwrap()),
            }
        }
        let results = spec.results.iter().map(|file| (file.path.clone(), file.bytes_max)).collect();
        Self { folder, script: spec.script.clone(), results }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the script with these folders in `PATH`.
    pub(crate) fn run(&self, path: &[&Path]) -> JobReport {
        let output = Command::new("/bin/bash")
            .args(["-c", &self.script])
            .current_dir(&self.folder)
            .env("PATH", std::env::join_paths(path).unwrap())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let mut files = BTreeMap::new();
        for (name, bytes_max) in &self.results {
            let Ok(content) = fs::read(self.path(name)) else { continue };
            files.insert(
                name.clone(),
                match content.len() as u64 {
                    bytes if bytes > *bytes_max => HarvestedFile::TooLong(bytes),
                    _ => HarvestedFile::Text(String::from_utf8_lossy(&content).into_owned()),
                },
            );
        }
        JobReport {
            end: JobEnd::Exited(output.status.code().unwrap_or(137)),
            files,
            stdout_tail: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr_tail: String::from_utf8_lossy(&output.stderr).into_owned(),
            elapsed_ms: Some(1),
            isolation: Some("none".into()),
        }
    }
}
