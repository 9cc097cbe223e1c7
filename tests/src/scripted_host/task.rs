//! Small tasks in Harbor's format.
//!
//! Their instructions have a marker by which the model server counts questions.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::Path;

use anyhow::Context;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// With a health check, an episode of the oracle has 13 operations.
const CONFIG: &str = "\
schema_version = \"1.4\"

[agent]
timeout_sec = 600

[verifier]
timeout_sec = 60

[environment]
memory_mb = 256
network_mode = \"no-network\"

[environment.healthcheck]
command = \"true\"
interval_sec = 1
timeout_sec = 5
retries = 3
";
/// Makes an image of one static program, which needs no registry.
pub const DOCKERFILE: &str = "\
FROM scratch
COPY busybox /bin/busybox
RUN [\"/bin/busybox\", \"--install\", \"-s\", \"/bin\"]
RUN mkdir -p /tmp /root /etc /app && chmod 1777 /tmp
ENV PATH=/bin
WORKDIR /app
";
const SOLUTION: &str = "#!/bin/sh\ntouch done\n";
const TEST: &str = "#!/bin/sh\nif [ -f done ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n";

/// Has a second step with files of its own, and a health check.
const STEPS: &str = "
[[steps]]
name = \"first\"

[[steps]]
name = \"second\"

[steps.healthcheck]
command = \"true\"
interval_sec = 1
timeout_sec = 5
retries = 3
";
/// Verifies in an environment of its own, which gets the files of `/logs/artifacts`.
const SEPARATE: (&str, &str) = ("[verifier]\n", "[verifier]\nenvironment_mode = \"separate\"\n");

/// Time limit of the agent of [`TaskKind::ShortAgent`], in seconds.
pub const SHORT_SECONDS: u64 = 10;

/// Kinds of tasks, by the course of their episodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskKind {
    /// One step, whose tests run in the agent's environment.
    #[default]
    OneStep,
    /// Two steps.
    TwoSteps,
    /// One step, whose tests run in another environment.
    SeparateVerifier,
    /// Two steps, whose tests run in other environments.
    SeparateVerifiers,
    /// One step, whose agent has [`SHORT_SECONDS`].
    ShortAgent,
}

impl TaskKind {
    /// Returns the number of steps.
    pub const fn steps(self) -> u64 {
        match self {
            Self::OneStep | Self::SeparateVerifier | Self::ShortAgent => 1,
            Self::TwoSteps | Self::SeparateVerifiers => 2,
        }
    }

    fn config(self) -> String {
        let config = match self {
            Self::OneStep | Self::TwoSteps => CONFIG.to_owned(),
            Self::SeparateVerifier | Self::SeparateVerifiers => CONFIG.replace(SEPARATE.0, SEPARATE.1),
            Self::ShortAgent => {
                CONFIG.replace("timeout_sec = 600", &format!("timeout_sec = {SHORT_SECONDS}"))
            }
        };
        if self.steps() > 1 { config + STEPS } else { config }
    }
}

fn instruction(number: usize) -> String {
    format!("Create the file `done`. This is task [item {number}].\n")
}

/// Returns the files of a task besides the program of its image.
fn files(kind: TaskKind, number: usize) -> Vec<(&'static str, String)> {
    let mut files = vec![
        ("task.toml", kind.config()),
        ("environment/Dockerfile", DOCKERFILE.to_owned()),
        ("solution/solve.sh", SOLUTION.to_owned()),
        ("tests/test.sh", TEST.to_owned()),
    ];
    match kind.steps() {
        1 => files.push(("instruction.md", instruction(number))),
        _ => files.extend([
            ("steps/first/instruction.md", instruction(number)),
            ("steps/second/instruction.md", instruction(number)),
            ("steps/second/workdir/setup.sh", "rm -f done\n".to_owned()),
        ]),
    }
    files
}

/// Returns the archive of a task of one step for the scripted host, which builds no image.
pub fn archive(number: usize) -> anyhow::Result<Vec<u8>> {
    archive_of(TaskKind::OneStep, number)
}

/// Returns the archive of a task of this kind.
pub fn archive_of(kind: TaskKind, number: usize) -> anyhow::Result<Vec<u8>> {
    pack(&files(kind, number))
}

/// Returns the archive of a task of one step with another content of one of its files, or with another file.
pub fn changed_archive(number: usize, path: &'static str, content: &str) -> anyhow::Result<Vec<u8>> {
    let mut files = files(TaskKind::OneStep, number);
    files.retain(|(known, _)| *known != path);
    files.push((path, content.to_owned()));
    pack(&files)
}

/// Packs files as a ZIP archive.
///
/// # Errors
/// If the archive can't be written.
pub fn pack(files: &[(&str, String)]) -> anyhow::Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().unix_permissions(0o755);
    for (path, text) in files {
        archive.start_file(*path, options)?;
        archive.write_all(text.as_bytes())?;
    }
    Ok(archive.finish()?.into_inner())
}

/// Writes a task for a container engine into a new folder.
pub fn write(folder: &Path, busybox: &Path) -> anyhow::Result<()> {
    for (path, text) in files(TaskKind::OneStep, 0) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().context("a file has no folder")?)?;
        fs::write(path, text)?;
    }
    fs::copy(busybox, folder.join("environment/busybox"))?;
    Ok(())
}
