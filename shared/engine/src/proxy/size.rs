//! Size of what a container has written.
//!
//! Engines hold the lock of their storage while they count a container's files, which makes all other sandboxes wait; and
//! podman takes a container for empty that has a path longer than the system allows. Where this process sees the
//! container's folder, it counts itself, within limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, Response, StatusCode};
use serde_json::Value;

use super::Shared;
use super::container::json_of;
use super::count::{Uncounted, count};
use super::dispatch::Call;
use super::forward::json_response;
use crate::client::AnyBody;
use crate::emptying::folder_of;
use crate::refusal::Refusal;

/// Maximum time to count the files of a container. Shorter than clients wait.
const COUNT_TIME_MAX: Duration = Duration::from_secs(25);
/// Fields with the paths of files that the engine mounts into the container from a folder of its own.
const MOUNTED_FILES: [&str; 3] = ["HostsPath", "HostnamePath", "ResolvConfPath"];
/// Places of another such file of podman, relative to the folder of those.
const PODMAN_FILES: [&str; 2] = [".containerenv", "run/.containerenv"];

impl Shared {
    /// Describes a container with `SizeRw`: the space that it takes on the disk, with the files that the engine mounts
    /// into it. `SizeRootFs` is absent if this process has counted.
    pub(super) async fn inspect_with_size(
        &self,
        mut call: Call,
        id: &str,
    ) -> Result<Response<AnyBody>, Refusal> {
        let size = call.query.get("size").unwrap_or_default().to_owned();
        call.query.remove("size");
        let (mut status, mut found) = json_of(self.short(&call, &call.address(id), None).await?).await?;
        if status == StatusCode::OK {
            let written = match folder_of(&found) {
                Some(folder) => self.count(folder).await?,
                None => None,
            };
            match written {
                Some(bytes) => found["SizeRw"] = bytes.into(),
                None => {
                    call.query.set("size", size);
                    (status, found) = json_of(self.short(&call, &call.address(id), None).await?).await?;
                }
            }
            if let Some(bytes) = found["SizeRw"].as_u64() {
                found["SizeRw"] = bytes.saturating_add(mounted_bytes(&found)).into();
            }
        }
        let mut response = json_response(&found);
        *response.status_mut() = status;
        Ok(response)
    }

    /// Counts what is in a container's folder; `None` if this process can't read all of it.
    async fn count(&self, folder: PathBuf) -> Result<Option<u64>, Refusal> {
        let files_max = self.rules.limits.files_max;
        let Ok(permit) = Arc::clone(&self.measuring).acquire_owned().await else { return Ok(None) };
        let counting = tokio::task::spawn_blocking(move || {
            // Also if the client has gone, the next count waits for this one.
            let _permit = permit;
            count(&folder, files_max, Instant::now() + COUNT_TIME_MAX)
        });
        let limit = |what: &str, limit: String| Err(Refusal::Limit { what: what.to_owned(), limit });
        match counting.await {
            Ok(Ok(bytes)) => Ok(Some(bytes)),
            Ok(Err(Uncounted::Files)) => limit("number of files of the container", files_max.to_string()),
            Ok(Err(Uncounted::Depth(bytes))) => {
                limit("depth of the container's folders", format!("{bytes} characters"))
            }
            Ok(Err(Uncounted::Time)) => Err(Refusal::Uncounted { seconds: COUNT_TIME_MAX.as_secs() }),
            Ok(Err(Uncounted::Io(error))) => {
                tracing::debug!(%error, "The engine counts the files of a container");
                Ok(None)
            }
            Err(error) => Err(Refusal::Malformed(format!("the container's files were not counted: {error}"))),
        }
    }
}

/// Returns true for a request that asks for a container's size.
pub(super) fn asks_for_size(call: &Call) -> bool {
    call.method == Method::GET && call.path.ends_with("/json") && call.query.is_set("size")
}

/// Returns the size of the files that the engine mounts into a container, as far as this process sees them. Links aren't
/// followed.
fn mounted_bytes(container: &Value) -> u64 {
    let mounted = MOUNTED_FILES.iter().filter_map(|field| container[*field].as_str().map(PathBuf::from));
    let mut files: Vec<PathBuf> = mounted.filter(|path| path.is_absolute()).collect();
    let folders: Vec<PathBuf> = files.iter().filter_map(|path| path.parent().map(Path::to_owned)).collect();
    files.extend(folders.iter().flat_map(|folder| PODMAN_FILES.map(|file| folder.join(file))));
    files.sort();
    files.dedup();
    let sizes = files.iter().filter_map(|path| path.symlink_metadata().ok().filter(|found| found.is_file()));
    sizes.map(|found| found.len()).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mounted_files_are_counted_once_and_links_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("run")).unwrap();
        std::fs::write(at("hosts"), [0; 1]).unwrap();
        std::fs::write(at("resolv.conf"), [0; 10]).unwrap();
        std::fs::write(at(".containerenv"), [0; 100]).unwrap();
        std::fs::write(at("run/.containerenv"), [0; 1000]).unwrap();
        std::fs::write(at("other"), [0; 5]).unwrap();
        std::os::unix::fs::symlink(at("other"), at("hostname")).unwrap();
        let container = json!({
            "HostsPath": at("hosts"), "ResolvConfPath": at("resolv.conf"), "HostnamePath": at("hostname"),
        });
        assert_eq!(mounted_bytes(&container), 1111);
        assert_eq!(mounted_bytes(&json!({ "HostsPath": "", "HostnamePath": "etc/hostname" })), 0);
    }
}
