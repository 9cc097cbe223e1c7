//! Modules of Go.

use std::fs;

use anyhow::Context;
use bench_stack::sandboxes::toolchains::{GO, current_link};
use tokio::process::Command;

use super::Work;
use crate::exit::Problem;

/// Fetches the modules that `go.mod` names into a module cache, and verifies them by `go.sum`.
pub(super) async fn install(work: &Work<'_>) -> anyhow::Result<()> {
    let go = current_link(&work.settings.data_dir, GO).join("bin/go");
    if !go.exists() {
        return Err(Problem::failure("Go isn't installed")
            .hint("run `bench sandy setup --toolchains` first")
            .into());
    }
    let command = |args: &[&str]| {
        let mut command = Command::new(&go);
        command.args(args).current_dir(&work.project).env("GOMODCACHE", &work.target);
        command.envs([
            ("GOFLAGS", "-modcacherw"),
            ("GOTOOLCHAIN", "local"),
            ("GOTELEMETRY", "off"),
            ("GOWORK", "off"),
        ]);
        command.env("GOCACHE", work.scratch.join("cache")).env("GOPATH", work.scratch.join("go"));
        command
    };
    work.run(command(&["mod", "download"]), "could not fetch the modules").await?;
    let sums = fs::read(work.project.join("go.sum")).context("could not read go.sum")?;
    if work.dependencies.files.get("go.sum") != Some(&sums) {
        return Err(Problem::failure("`go.sum` lacks digests of modules that `go.mod` needs")
            .hint("write it with `go mod tidy`")
            .into());
    }
    work.run(command(&["mod", "verify"]), "the modules don't have the digests of `go.sum`").await
}
