//! Adds the commit to the version of the command: `0.1.0 (abc1234 2026-11-22)`.
//!
//! Sources that differ from the commit are marked `-dirty`. A build without the repository, such as from a tarball or in
//! a container without git, has the version alone, or the commit in `BENCH_GIT_SHA`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Variable with the commit for builds without git. Archives contain it, too.
const COMMIT_VARIABLE: &str = "BENCH_GIT_SHA";
/// Number of digits of a commit to show.
const COMMIT_DIGITS: usize = 7;

fn main() {
    println!("cargo:rerun-if-env-changed={COMMIT_VARIABLE}");
    println!("cargo:rerun-if-changed=build.rs");
    let package = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let given =
        env::var(COMMIT_VARIABLE).ok().map(|sha| sha.trim().chars().take(COMMIT_DIGITS).collect::<String>());
    let commit = match given.filter(|sha| !sha.is_empty()) {
        Some(sha) => Some(sha),
        None => commit_of_repository(),
    };
    let version = commit.map_or_else(|| package.clone(), |commit| format!("{package} ({commit})"));
    println!("cargo:rustc-env=BENCH_VERSION={version}");
}

/// Returns the commit of the repository with its date, or `None` outside of a checkout.
fn commit_of_repository() -> Option<String> {
    // A tarball may be unpacked inside another repository, whose commit says nothing.
    if git(&["rev-parse", "--show-prefix"])? != "cli/" {
        return None;
    }
    let root = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    let sources = sources(&root);
    let watched = sources.iter().cloned().chain(files_of_head());
    for path in watched {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    let digits = format!("--short={COMMIT_DIGITS}");
    let sha = git(&["rev-parse", &digits, "HEAD"])?;
    let date = git(&["log", "-1", "--no-show-signature", "--format=%cs"])?;
    let mut status = vec!["status", "--porcelain", "--untracked-files=no", "--"];
    status.extend(sources.iter().filter_map(|path| path.to_str()));
    let mark = if git(&status)?.is_empty() { "" } else { "-dirty" };
    Some(format!("{sha}{mark} {date}"))
}

/// Returns the files and folders that the command is built from, without tests and documents. Changes there rebuild the
/// command anyway.
fn sources(root: &Path) -> Vec<PathBuf> {
    let mut crates = vec![root.join("cli")];
    for group in ["shared", "functions"] {
        let entries = fs::read_dir(root.join(group)).into_iter().flatten().flatten();
        crates.extend(entries.map(|entry| entry.path()));
    }
    let parts = ["Cargo.toml", "build.rs", "src", "data", "openapi.json", "python-requirements.txt"];
    let files = crates.iter().flat_map(|folder| parts.map(|part| folder.join(part)));
    let mut sources: Vec<PathBuf> = files.filter(|path| path.exists()).collect();
    sources.extend(["Cargo.toml", "Cargo.lock"].map(|file| root.join(file)));
    // The order of folder entries differs between file systems.
    sources.sort();
    sources
}

/// Returns the files that change with the current commit, also in a worktree: `HEAD`, and its branch, which is a file or a
/// line of `packed-refs`. Cargo would run this script at every build for a missing file, so the folder where that file
/// would appear is watched instead.
fn files_of_head() -> Vec<PathBuf> {
    let path = |name: &str| git(&["rev-parse", "--git-path", name]).map(PathBuf::from);
    let mut files: Vec<PathBuf> = path("HEAD").into_iter().collect();
    if let Some(branch) = git(&["symbolic-ref", "--quiet", "HEAD"]).and_then(|name| path(&name)) {
        if !branch.exists() {
            files.extend(path("packed-refs"));
        }
        files.extend(branch.ancestors().find(|path| path.exists()).map(Path::to_owned));
    }
    files.retain(|file| file.exists());
    files
}

/// Runs git in the folder of this crate and returns its trimmed output, or `None` if git is missing or fails.
fn git(args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // Other git processes may be running in the repository, so its index is not refreshed.
    command.arg("--no-optional-locks").args(args);
    // Git hooks set these variables for another folder.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(variable);
    }
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
