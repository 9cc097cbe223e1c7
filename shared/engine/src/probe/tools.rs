//! Programs of this machine that speak to an engine.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::ProbeOptions;

/// Time limit of a program that prints its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of a version, in characters.
const VERSION_CHARS_MAX: usize = 40;

/// Plugins of the command `docker`.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Version of `docker compose`.
    pub(super) compose: Option<String>,
    /// `docker buildx` works.
    pub(super) has_buildx: bool,
}

/// Finds a program in the folders of `path`.
pub(super) fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Reads the versions of docker's plugins.
pub(super) async fn read(options: &ProbeOptions) -> Tools {
    let Some(docker) = find("docker", &options.path) else { return Tools::default() };
    let version = async |arguments: &[&str]| {
        let mut command = Command::new(&docker);
        command.args(arguments).env_clear().env("PATH", &options.path).kill_on_drop(true);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let folders = [("HOME", &options.home), ("DOCKER_CONFIG", &options.docker_config)];
        for (name, folder) in folders {
            if let Some(folder) = folder {
                command.env(name, folder);
            }
        }
        let output = timeout(VERSION_TIMEOUT, command.output()).await.ok()?.ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().chars().take(VERSION_CHARS_MAX).collect();
        output.status.success().then_some(text)
    };
    let (compose, buildx) =
        tokio::join!(version(&["compose", "version", "--short"]), version(&["buildx", "version"]));
    Tools { compose, has_buildx: buildx.is_some() }
}
