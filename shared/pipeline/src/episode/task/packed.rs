//! Tasks that datasets hold as archives, which are admitted like uploaded ones.

use std::io::{self, Read};

use bench_benchmarks::PackedTask;
use bench_episodes::TaskFiles;
use bench_terminal_tasks::{AdmissionLimits, TreeLimits};
use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};

/// Maximum size of a task's files in bytes: environments bundle this much.
const FILES_BYTES_MAX: u64 = 60 << 20;
/// Maximum size of the tar archive of these files, in bytes. Headers and padding have some of it.
const TAR_BYTES_MAX: u64 = 2 * FILES_BYTES_MAX;

/// Reads and admits a packed task.
pub(super) fn read(archive: &[u8], task: &PackedTask) -> Result<TaskFiles, String> {
    let stored = (archive.len() as u64, hex::encode(Sha256::digest(archive)));
    if stored != (task.file.bytes, task.file.sha256.clone()) {
        return Err("the task's archive changed after it was stored".to_owned());
    }
    task.check(&[stored, tar_form(archive)?])?;
    let trees = TreeLimits {
        file_bytes_max: FILES_BYTES_MAX,
        task_bytes_max: FILES_BYTES_MAX,
        ..TreeLimits::default()
    };
    let limits = AdmissionLimits::any_demand();
    TaskFiles::read_terminal_bench(archive, task.instruction.as_deref(), trees, &limits)
        .map_err(|error| error.to_string())
}

/// Returns size and SHA-256 of the tar archive in a gzipped one, without holding it.
fn tar_form(archive: &[u8]) -> Result<(u64, String), String> {
    let mut digest = Sha256::new();
    let mut tar = GzDecoder::new(archive).take(TAR_BYTES_MAX + 1);
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        let count = match tar.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(format!("the task's archive can't be decompressed: {error}")),
        };
        bytes += count as u64;
        digest.update(buffer.get(..count).unwrap_or_default());
    }
    match bytes > TAR_BYTES_MAX {
        true => Err(format!("the task's archive has more than {TAR_BYTES_MAX} bytes when decompressed")),
        false => Ok((bytes, hex::encode(digest.finalize()))),
    }
}
