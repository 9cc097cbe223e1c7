//! Podman services of single builds.
//!
//! Podman unpacks archives, copies files and expands variables of a Dockerfile in the process of its service, where no limit
//! holds, and goes on when the client has gone. So each build gets a service of its own, in the build's cgroup, which is
//! killed at the end. What a killed builder leaves, its working containers, is found by the cgroup that they name.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::Value;
use tokio::time::Instant;

use super::ProbeOptions;
use super::podman::{Launch, LaunchedBuild, Podman, Settings};
use crate::build_group::BuildGroup;
use crate::client::{Client, ClientError};

/// Limits of the service with which the probe checks that builds can have one: memory in bytes, and processes.
const TRIAL_LIMITS: (u64, u64) = (1 << 30, 64);
/// Time that podman has to end a build whose commands were killed.
const GRACE: Duration = Duration::from_secs(1);
const GRACE_POLL: Duration = Duration::from_millis(50);
/// Number of tries to remove working containers, and the pause after each.
const REMOVALS_MAX: u32 = 10;
const REMOVAL_PAUSE: Duration = Duration::from_millis(500);
/// Time after which a working container has a description, if its builder lives.
const DESCRIPTION_WAIT: Duration = Duration::from_secs(3);
/// Maximum size of a builder's description of its working container, in bytes.
const DESCRIPTION_BYTES_MAX: u64 = 16 << 20;
/// Facts about podman in which all services of a storage agree.
const COMMON_FACTS: [&str; 5] = [
    "/host/hostname",
    "/host/networkBackend",
    "/store/graphDriverName",
    "/store/graphRoot",
    "/store/runRoot",
];

/// Starts podman services for builds.
#[derive(Debug)]
pub(crate) struct BuildServices {
    group: BuildGroup,
    settings: Settings,
    options: ProbeOptions,
    /// The service for everything else.
    engine: Client,
    storage: PathBuf,
}

/// A podman service for one build.
#[derive(Debug)]
pub(crate) struct BuildService {
    podman: Podman,
    client: Client,
    group: BuildGroup,
    folder: PathBuf,
    /// Folder for temporary files.
    scratch: PathBuf,
}

impl BuildServices {
    /// Creates the group of all builds, and checks that a service there works on the same storage as the engine.
    pub(super) async fn open(
        settings: Settings,
        options: &ProbeOptions,
        engine: &Client,
        storage: &Path,
    ) -> Result<Self, String> {
        let run_folder = options.run_folder.clone();
        let created = tokio::task::spawn_blocking(move || BuildGroup::create(&run_folder)).await;
        let created = created.map_err(io::Error::other).and_then(|created| created);
        let services = Self {
            group: created.map_err(|error| error.to_string())?,
            settings,
            options: options.clone(),
            engine: engine.clone(),
            storage: storage.to_owned(),
        };
        let checked = services.check().await;
        if checked.is_err() {
            services.close().await;
        }
        checked.map(|()| services)
    }

    async fn check(&self) -> Result<(), String> {
        let (memory_bytes, processes) = TRIAL_LIMITS;
        let failed = |error: &dyn std::fmt::Display| {
            format!("no service of podman can be started for builds: {error}")
        };
        let service = self.start(memory_bytes, processes).await.map_err(|error| failed(&error))?;
        let facts = async |client: &Client| client.expect(Method::GET, "/v4.0.0/libpod/info", None).await;
        let found = tokio::try_join!(facts(&self.engine), facts(&service.client));
        self.end(service).await;
        let (engine, builder) = found.map_err(|error| failed(&error))?;
        let differs =
            |fact: &&&str| engine.pointer(fact).is_none() || engine.pointer(fact) != builder.pointer(fact);
        match COMMON_FACTS.iter().find(differs) {
            None => Ok(()),
            Some(fact) => Err(format!(
                "podman's service and a service started for builds differ in `{}`",
                fact.trim_start_matches('/').replace('/', ".")
            )),
        }
    }

    /// Starts the service of one build, with limits on the memory, in bytes, and the processes of the build's commands.
    pub(crate) async fn start(&self, memory_bytes: u64, processes: u64) -> io::Result<BuildService> {
        let group = self.group.create_build(memory_bytes, processes)?;
        let folder = self.options.run_folder.join(format!("build-{}", uuid::Uuid::new_v4().simple()));
        let scratch = scratch_folder(&self.storage, group.name());
        let made = std::fs::create_dir(&folder)
            .and_then(|()| DirBuilder::new().recursive(true).mode(0o700).create(&scratch));
        let launched = match made {
            Ok(()) => {
                let launch = Launch {
                    folder: &folder,
                    settings: self.settings,
                    options: &self.options,
                    build: Some(LaunchedBuild { group: &group, scratch: &scratch }),
                };
                Podman::launch(launch).await
            }
            Err(error) => Err(error),
        };
        match launched {
            Ok(podman) => {
                let client = Client::new(podman.socket());
                Ok(BuildService { podman, client, group, folder, scratch })
            }
            Err(error) => {
                remove_group(group).await;
                remove_folder(&folder).await;
                remove_folder(&scratch).await;
                Err(error)
            }
        }
    }

    /// Kills everything that still runs in a build, and removes what it left.
    pub(crate) async fn end(&self, service: BuildService) {
        let BuildService { podman, group, folder, scratch, .. } = service;
        let name = group.name().to_owned();
        self.wait_for_end(&group).await;
        remove_group(group).await;
        podman.stop().await;
        if let Err(error) = remove_working_containers(&self.engine, &self.storage, &name).await {
            tracing::warn!(%error, "The files of a build that was ended were not removed");
        }
        remove_folder(&folder).await;
        remove_folder(&scratch).await;
    }

    /// Kills the commands of a build that was left, and gives podman a moment to remove its containers and networks.
    async fn wait_for_end(&self, group: &BuildGroup) {
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            let found = working_containers(&self.engine, &self.storage, group.name()).await;
            if found.is_ok_and(|(known, _)| known.is_empty()) {
                return;
            }
            let group = group.clone();
            if tokio::task::spawn_blocking(move || group.kill_commands()).await.is_err() {
                return;
            }
            tokio::time::sleep(GRACE_POLL).await;
        }
    }

    /// Removes the group of all builds, after they have ended.
    pub(crate) async fn close(&self) {
        remove_group(self.group.clone()).await;
    }
}

impl BuildService {
    /// Returns the client for the build.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the group of the build.
    pub(crate) fn group(&self) -> &BuildGroup {
        &self.group
    }

    /// Returns the parent group of the build's commands.
    pub(crate) fn parent(&self) -> String {
        self.group.parent()
    }
}

/// Returns the folder for a build's temporary files: on the disk of the storage, which has a limit for builds, and where
/// large layers have space.
fn scratch_folder(storage: &Path, group: &str) -> PathBuf {
    storage.join("tmp").join(group.replace('/', "."))
}

/// Removes what the builds of a dead process have left in the storage. `group` was the group of its builds.
pub(super) async fn remove_recorded_files(engine: &Client, group: &str) -> Result<(), ClientError> {
    let info = engine.expect(Method::GET, "/info", None).await?;
    let Some(storage) = info["DockerRootDir"].as_str().map(Path::new).filter(|storage| storage.is_dir())
    else {
        return Ok(());
    };
    let prefix = format!("{group}.");
    for entry in std::fs::read_dir(storage.join("tmp")).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            remove_folder(&entry.path()).await;
        }
    }
    remove_working_containers(engine, storage, group).await
}

/// Lists the working containers of builders that name the cgroup `group` or one below it, and those without a description.
async fn working_containers(
    engine: &Client,
    storage: &Path,
    group: &str,
) -> Result<(Vec<String>, Vec<String>), ClientError> {
    let address = "/v4.0.0/libpod/containers/json?all=true&external=true";
    let listed = engine.expect(Method::GET, address, None).await?;
    let (mut known, mut undescribed) = (Vec::new(), Vec::new());
    for entry in listed.as_array().map(Vec::as_slice).unwrap_or_default() {
        let Some(id) = entry["Id"].as_str().filter(|_| entry["State"] == "storage") else { continue };
        match cgroup_of(storage, id) {
            Some(found) if is_within(&found, group) => known.push(id.to_owned()),
            Some(_) => {}
            None => undescribed.push(id.to_owned()),
        }
    }
    Ok((known, undescribed))
}

/// Removes the working containers of killed builders.
async fn remove_working_containers(engine: &Client, storage: &Path, group: &str) -> Result<(), ClientError> {
    let (mut meant, mut undescribed) = working_containers(engine, storage, group).await?;
    if !undescribed.is_empty() {
        // A builder that lives writes a description meanwhile.
        tokio::time::sleep(DESCRIPTION_WAIT).await;
        undescribed.retain(|id| cgroup_of(storage, id).is_none());
        meant.append(&mut undescribed);
    }
    for round in 1..=REMOVALS_MAX {
        let (mut left, mut reason) = (Vec::new(), String::new());
        for id in meant {
            let address = format!("/v4.0.0/libpod/containers/{id}?force=true");
            let (status, answer) = engine.call(Method::DELETE, &address, None).await?;
            if !status.is_success() && status != StatusCode::NOT_FOUND {
                reason = answer["message"].as_str().unwrap_or("no message").to_owned();
                left.push(id);
            }
        }
        if left.is_empty() {
            break;
        }
        if round == REMOVALS_MAX {
            tracing::warn!(containers = ?left, reason, "Working containers of a build were not removed: {reason}");
        }
        // Podman may still be busy with the layer that the killed builder was writing.
        tokio::time::sleep(REMOVAL_PAUSE).await;
        meant = left;
    }
    Ok(())
}

/// Returns true if `parent`, an absolute path of a cgroup, is in the group `group`.
fn is_within(parent: &str, group: &str) -> bool {
    let below = parent.strip_prefix('/').and_then(|path| path.strip_prefix(group));
    below.is_some_and(|rest| rest.starts_with('/'))
}

/// Reads the cgroup of a builder's working container from its description in podman's storage.
fn cgroup_of(storage: &Path, id: &str) -> Option<String> {
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let folders = std::fs::read_dir(storage).ok()?.flatten();
    let of_driver = folders.filter(|folder| folder.file_name().to_string_lossy().ends_with("-containers"));
    let mut files = of_driver.map(|folder| folder.path().join(id).join("userdata/buildah.json"));
    let file = files.find(|file| file.metadata().is_ok_and(|found| found.len() <= DESCRIPTION_BYTES_MAX))?;
    let description: Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    description["CommonBuildOpts"]["CgroupParent"].as_str().map(str::to_owned)
}

async fn remove_group(group: BuildGroup) {
    if let Err(error) = tokio::task::spawn_blocking(move || group.remove_or_warn()).await {
        tracing::warn!(%error, "Group of builds was not removed");
    }
}

async fn remove_folder(folder: &Path) {
    let owned = folder.to_owned();
    let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(owned)).await;
    match removed.map_err(io::Error::other).and_then(|removed| removed) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(folder = %folder.display(), %error, "Folder of a build was not removed");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn working_containers_are_found_by_their_group() {
        let storage = tempfile::tempdir().unwrap();
        let id = "c31d4b5dea3c";
        let folder = storage.path().join("overlay-containers").join(id).join("userdata");
        assert_eq!(cgroup_of(storage.path(), id), None);
        std::fs::create_dir_all(&folder).unwrap();
        let write = |content: &str| std::fs::write(folder.join("buildah.json"), content).unwrap();
        for content in
            ["", "{", "{}", r#"{"CommonBuildOpts": null}"#, r#"{"CommonBuildOpts": {"CgroupParent": 1}}"#]
        {
            write(content);
            assert_eq!(cgroup_of(storage.path(), id), None, "{content}");
        }
        write(
            &json!({ "CommonBuildOpts": { "CgroupParent": "/bench-builds-1/a/commands/run" } }).to_string(),
        );
        let found = cgroup_of(storage.path(), id).unwrap();
        for id in ["", "..", "../c31d4b5dea3c"] {
            assert_eq!(cgroup_of(storage.path(), id), None, "{id}");
        }
        assert!(is_within(&found, "bench-builds-1") && is_within(&found, "bench-builds-1/a"));
        for other in ["bench-builds", "bench-builds-1/b", "bench-builds-1/a/commands/run", "builds-1"] {
            assert!(!is_within(&found, other), "{other}");
        }
    }
}
