//! Packages of npm.

use std::fs;

use anyhow::Context;
use tokio::process::Command;

use super::Work;

/// Installs the packages of a lock file by its digests, without their scripts.
pub(super) async fn install(work: &Work<'_>) -> anyhow::Result<()> {
    // npm installs beside its lock file, which therefore is on the disk of the target.
    let project = work.scratch.join("project");
    fs::create_dir(&project).with_context(|| format!("could not create {}", project.display()))?;
    for (path, bytes) in &work.dependencies.files {
        super::write(&project.join(path), bytes)?;
    }
    let mut npm = Command::new("npm");
    npm.args([
        "ci",
        "--ignore-scripts",
        // A setting such as NODE_ENV=production would leave packages out that tests need.
        "--include=dev",
        "--include=optional",
        "--include=peer",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--loglevel=error",
    ]);
    npm.current_dir(&project).env_remove("NODE_ENV");
    work.run(npm, "could not install the packages").await?;
    fs::rename(project.join("node_modules"), &work.target).context("npm installed nothing")
}
