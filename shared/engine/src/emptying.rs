//! Empties the folder of a container that is about to be removed.
//!
//! Engines hold the lock of their storage while they remove a container's files, which makes all other sandboxes wait: for
//! minutes, if there are very many.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use http::Method;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::client::{Client, ClientError};

/// Maximum time to remove the files of a container, after which the engine removes the rest.
const EMPTYING_TIMEOUT: Duration = Duration::from_secs(600);
/// Program that removes folders of any depth.
const REMOVE: &str = "/bin/rm";

/// Returns the folder with what a container has written, if the engine has one and this process may read everything.
pub(crate) fn folder_of(container: &Value) -> Option<PathBuf> {
    let folder = PathBuf::from(container["GraphDriver"]["Data"]["UpperDir"].as_str()?);
    (folder.is_absolute() && rustix::process::geteuid().is_root()).then_some(folder)
}

/// Ends a container and removes its files, if this process may. The engine has to remove the container afterwards.
pub(crate) async fn empty(client: &Client, id: &str) -> Result<(), ClientError> {
    let (_, found) = client.call(Method::GET, &format!("/containers/{id}/json"), None).await?;
    let Some(folder) = folder_of(&found).filter(|folder| folder.ends_with("diff")) else { return Ok(()) };
    if found["State"]["Running"] != false {
        kill(client, id).await?;
    }
    let mut command = Command::new(REMOVE);
    command.args(["-rf", "--one-file-system", "--"]).arg(&folder).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let ended = timeout(EMPTYING_TIMEOUT, command.status()).await;
    if !matches!(ended, Ok(Ok(status)) if status.success()) {
        tracing::warn!(container = id, ?ended, "The engine has to remove the files of a container");
    }
    Ok(())
}

/// Kills a container, since removal by podman waits for its end. Fails for those that don't run, which is fine.
pub(crate) async fn kill(client: &Client, id: &str) -> Result<(), ClientError> {
    client.call(Method::POST, &format!("/containers/{id}/kill"), None).await.map(drop)
}
