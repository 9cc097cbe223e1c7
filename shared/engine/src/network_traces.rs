//! Traces of podman's networks that are left on the machine when the process that had set them up was killed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use http::Method;
use tokio::process::Command;
use tokio::time::timeout;

use crate::client::{Client, ClientError};

/// Beginning of the names of interfaces that the proxies choose.
pub(crate) const INTERFACE_PREFIX: &str = "bx";
/// Folder in which podman's server of names has a file for each network with containers.
const NAMES: &str = "/run/containers/networks/aardvark-dns";
const IP_TIMEOUT: Duration = Duration::from_secs(5);
/// Folders of the command `ip`.
const FOLDERS: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Interface of a network, and the file of its names.
#[derive(Debug, Default)]
pub(crate) struct NetworkTraces {
    interface: Option<String>,
    names: Option<PathBuf>,
}

impl NetworkTraces {
    /// Reads the traces of a network. Other engines than podman remove their own.
    pub(crate) async fn of(client: &Client, id: &str) -> Result<Self, ClientError> {
        let (status, found) =
            client.call(Method::GET, &format!("/v4.0.0/libpod/networks/{id}/json"), None).await?;
        if !status.is_success() {
            return Ok(Self::default());
        }
        let is_plain = |name: &&str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let text = |field: &str| found[field].as_str().filter(is_plain).map(str::to_owned);
        Ok(Self {
            interface: text("network_interface").filter(|name| name.starts_with(INTERFACE_PREFIX)),
            names: text("name").map(|name| Path::new(NAMES).join(name)),
        })
    }

    /// Removes what is still there of a network that was removed.
    pub(crate) async fn remove(self) {
        if let Some(names) = self.names.filter(|names| names.exists()) {
            let removed = std::fs::remove_file(&names);
            tracing::debug!(file = %names.display(), ?removed, "Names of a removed network were left");
        }
        let left = |name: &String| Path::new("/sys/class/net").join(name).exists();
        if let Some(interface) = self.interface.filter(left) {
            let mut command = Command::new("ip");
            command.args(["link", "delete", &interface]).env_clear().env("PATH", FOLDERS).kill_on_drop(true);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let deleted = timeout(IP_TIMEOUT, command.status()).await;
            tracing::debug!(interface, ?deleted, "The interface of a removed network was left");
        }
    }
}
