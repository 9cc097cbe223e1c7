//! Puts the commit that the command is built from into its version: `0.1.0 (abc1234 2026-11-22)`.
//!
//! Sources that differ from the commit are marked `-dirty`. A build outside of the repository, such as one of a
//! tarball or in a container without git, has the version alone, or the commit that `BENCH_GIT_SHA` names.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Variable with the commit for builds without git; archives name it, too.
const COMMIT_VARIABLE: &str = "BENCH_GIT_SHA";
/// Digits of a commit that are shown.
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

/// The repository's commit and its date; `None` where this isn't a checkout of the repository.
fn commit_of_repository() -> Option<String> {
    // A tarball may lie within another repository, whose commit says nothing.
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

/// What the command is built from. A change there rebuilds it anyway; tests and documents don't count.
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
    // In one order everywhere.
    sources.sort();
    sources
}

/// The files that change when another commit is checked out or made, in a worktree as well: `HEAD`, and the branch that
/// it names, which is a file of its own or a line of `packed-refs`. Cargo would run this each time for a file that is
/// missing: instead of it the folder is watched in which it would appear.
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

/// The output of git in the folder of this crate, trimmed; `None` where git is missing or fails.
fn git(args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // Others may be at work in the repository: its index isn't refreshed.
    command.arg("--no-optional-locks").args(args);
    // Hooks set these for another folder.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(variable);
    }
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
