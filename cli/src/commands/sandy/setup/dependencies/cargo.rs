//! Crates.

use tokio::process::Command;

use super::Work;

/// Copies the crates of a lock file, whose checksums Cargo verifies. Their build scripts don't run.
pub(super) async fn install(work: &Work<'_>) -> anyhow::Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.args(["vendor", "--locked", "--versioned-dirs"]).arg(&work.target);
    cargo.current_dir(&work.project).env("CARGO_TERM_COLOR", "never");
    work.run(cargo, "could not fetch the crates").await
}
