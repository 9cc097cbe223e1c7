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

/// Returns the files of a task besides the program of its image.
fn files(number: usize) -> [(&'static str, String); 5] {
    [
        ("task.toml", CONFIG.to_owned()),
        ("instruction.md", format!("Create the file `done`. This is task [item {number}].\n")),
        ("environment/Dockerfile", DOCKERFILE.to_owned()),
        ("solution/solve.sh", SOLUTION.to_owned()),
        ("tests/test.sh", TEST.to_owned()),
    ]
}

/// Returns the archive of a task for the scripted host, which builds no image.
pub fn archive(number: usize) -> anyhow::Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().unix_permissions(0o755);
    for (path, text) in files(number) {
        archive.start_file(path, options)?;
        archive.write_all(text.as_bytes())?;
    }
    Ok(archive.finish()?.into_inner())
}

/// Writes a task for a container engine into a new folder.
pub fn write(folder: &Path, busybox: &Path) -> anyhow::Result<()> {
    for (path, text) in files(0) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().context("a file has no folder")?)?;
        fs::write(path, text)?;
    }
    fs::copy(busybox, folder.join("environment/busybox"))?;
    Ok(())
}
