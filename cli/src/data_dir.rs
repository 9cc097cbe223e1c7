//! The data directory of this machine.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bench_datasets::Progress;
use bench_embedded::{Durability, secure_data_dir};
use bench_signing::KeyRing;
use bench_state::Scope;
use clap::{Args, ValueEnum};

use crate::exit::Problem;
use crate::judge_name::{MODEL_VARIABLE, check_variable};
use crate::output;
use bench_stack::{HoldEvent, Owner, Stack, StackOptions, key_ring_from_vars, keys_dir};

/// The data directory to use.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server and data directory")]
pub(crate) struct DataArgs {
    /// Folder for runs, datasets and keys [default: $XDG_DATA_HOME/bench-runner, else ~/.local/share/bench-runner]
    #[arg(long, env = "BENCH_HOME", value_name = "DIR", global = true)]
    pub(crate) data_dir: Option<PathBuf>,
}

/// Durability of acknowledged writes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DurabilityArg {
    /// Stored answers survive a power failure
    Full,
    /// Stored answers survive a crash of the process, but not a power failure; faster
    Normal,
}

impl From<DurabilityArg> for Durability {
    fn from(durability: DurabilityArg) -> Self {
        match durability {
            DurabilityArg::Full => Self::Full,
            DurabilityArg::Normal => Self::Normal,
        }
    }
}

impl DataArgs {
    /// Returns the directory, which may be missing.
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        let given = self.data_dir.clone().filter(|path| !path.as_os_str().is_empty());
        given.map_or_else(|| default_data_dir(|name| env::var_os(name).map(PathBuf::from)), Ok)
    }

    /// Returns true if the command line names the directory, and not only the variable.
    pub(crate) fn is_named(&self) -> bool {
        let variable = env::var_os("BENCH_HOME").map(PathBuf::from);
        self.data_dir.as_ref().is_some_and(|path| !path.as_os_str().is_empty()) && self.data_dir != variable
    }

    /// Reports that the directory doesn't exist, to a command that doesn't create it.
    pub(crate) fn missing(&self) -> anyhow::Result<Problem> {
        Ok(Problem::failure(format!("the data directory `{}` does not exist", self.path()?.display()))
            .hint("check --data-dir; `bench run --model oracle --demo` creates the folder"))
    }

    /// Returns options for a stack that works on runs ordered or resumed by this process, or uses the services of the
    /// process that owns the directory. Leaves out a variable that
    /// can't name a judge: commands that need a judge check it themselves, and others must not fail because of it.
    pub(crate) fn options(&self) -> anyhow::Result<StackOptions> {
        let mut options = StackOptions {
            scope: Scope::Foreground,
            command: command_line(env::args()),
            shares: true,
            on_wait: Some(Arc::new(|pid| {
                let by = pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
                output::note(&format!(
                    "Waiting for {by}, which is starting or ending in the data directory…"
                ));
            })),
            ..StackOptions::new(self.path()?)
        };
        if check_variable(options.vars.get(MODEL_VARIABLE).map(String::as_str)).is_err() {
            options.vars.remove(MODEL_VARIABLE);
        }
        Ok(options)
    }

    /// Opens the stack in the directory without working on runs.
    pub(crate) async fn open(&self) -> anyhow::Result<Stack> {
        Stack::open(self.options()?).await
    }

    /// Opens the stack like [`DataArgs::open`], and reports the progress of downloads.
    pub(crate) async fn open_with_progress(&self, progress: Arc<dyn Progress>) -> anyhow::Result<Stack> {
        Stack::open(StackOptions { progress, ..self.options()? }).await
    }
}

/// Opens a stack, and waits while a process owns the data directory that `accepts` refuses, because it won't do the work.
pub(crate) async fn open_when_free(
    options: impl Fn() -> anyhow::Result<StackOptions>,
    accepts: impl Fn(&Owner) -> bool,
) -> anyhow::Result<Stack> {
    let mut is_noted = false;
    loop {
        let stack = Stack::open(options()?).await?;
        let Some(owner) = stack.owner().filter(|owner| !accepts(owner)) else { return Ok(stack) };
        if !is_noted {
            let Owner { pid, command, .. } = owner;
            output::note(&format!("Waiting for process {pid} (`{command}`), which uses the data directory…"));
            is_noted = true;
        }
        if let Some(mut hold) = stack.hold(&[], 0).await {
            while hold.event().await != HoldEvent::Ended {}
        }
        stack.stop(Duration::ZERO).await;
    }
}

/// Returns the program's name and command, without options, which may contain secrets.
fn command_line(mut args: impl Iterator<Item = String>) -> String {
    args.nth(1)
        .filter(|word| !word.starts_with('-'))
        .map_or_else(|| "bench".to_owned(), |word| format!("bench {word}"))
}

fn default_data_dir(var: impl Fn(&str) -> Option<PathBuf>) -> anyhow::Result<PathBuf> {
    // The XDG specification requires relative paths to be ignored.
    let absolute = |name| var(name).filter(|path| path.is_absolute());
    let base = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
    base.map(|base| base.join("bench-runner")).ok_or_else(|| {
        Problem::usage("there is no home directory")
            .hint("give a folder with --data-dir or BENCH_HOME")
            .into()
    })
}

/// Returns the keys of this installation, from `BENCH_SIGNING_…` variables if set, else from the data directory.
///
/// If `create` is true, makes a key if there is none.
pub(crate) fn key_ring(
    data_dir: impl FnOnce() -> anyhow::Result<PathBuf>,
    create: bool,
) -> anyhow::Result<KeyRing> {
    let var = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
    if let Some(ring) = key_ring_from_vars(var)? {
        return Ok(ring);
    }
    let data_dir = data_dir()?;
    if create {
        secure_data_dir(&data_dir)?;
    }
    let dir = keys_dir(&data_dir);
    let ring = if create { KeyRing::open(&dir, jiff::Timestamp::now()) } else { KeyRing::read(&dir) };
    ring.context("could not use the signing keys")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_default_follows_xdg() {
        let dir = |xdg: Option<&str>, home: Option<&str>| {
            default_data_dir(|name| match name {
                "XDG_DATA_HOME" => xdg.map(PathBuf::from),
                "HOME" => home.map(PathBuf::from),
                _ => None,
            })
        };
        assert_eq!(dir(Some("/x"), Some("/home/a")).unwrap(), Path::new("/x/bench-runner"));
        assert_eq!(dir(Some("x"), Some("/home/a")).unwrap(), Path::new("/home/a/.local/share/bench-runner"));
        assert_eq!(dir(None, Some("/home/a")).unwrap(), Path::new("/home/a/.local/share/bench-runner"));
        assert!(dir(None, None).is_err());
    }
}
