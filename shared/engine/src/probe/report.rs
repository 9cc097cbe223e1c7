//! Description of an engine.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::Method;
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use super::{ProbeOptions, tools};
use crate::client::{Client, full, request};

/// Time limit of an engine's first response.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// Program that runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// dockerd.
    Docker,
    /// Podman's service.
    Podman,
}

/// What the probe found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EngineReport {
    /// Program that runs containers.
    pub kind: EngineKind,
    /// Version of the program.
    pub version: String,
    /// Latest version of the API that it supports.
    pub api_version: String,
    /// The engine has no more rights than a user.
    pub rootless: bool,
    /// Driver of images and containers, such as `overlay2`.
    pub storage_driver: String,
    /// Version of control groups, `1` or `2`.
    pub cgroup_version: String,
    /// Version of the command `docker compose`, if it works.
    pub compose: Option<String>,
    /// BuildKit works outside sandboxes. Inside, only the classic builder is available.
    pub buildkit: bool,
    /// Reason why networks can't be filtered; `None` if they can.
    pub unfiltered: Option<String>,
    /// Reason why podman's builds aren't limited and may continue after their end; `None` if they are, or for docker.
    pub ungrouped: Option<String>,
    /// Containers can mount parts of shared folders.
    pub shares_parts: bool,
    /// Path of the engine's socket.
    pub socket: PathBuf,
    /// The probe started the engine's service.
    pub is_started: bool,
}

impl fmt::Display for EngineKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        })
    }
}

impl fmt::Display for EngineReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, version, storage_driver, cgroup_version, .. } = self;
        let rights = if self.rootless { "rootless" } else { "root" };
        write!(formatter, "{kind} {version} ({rights}, {storage_driver}, cgroup {cgroup_version})")
    }
}

impl EngineReport {
    /// Returns what sandboxes with this engine are limited to, in a few words each.
    #[must_use]
    pub fn enforces(&self) -> Vec<String> {
        let mut enforces: Vec<String> = [
            "a filter of the engine's API",
            "memory, processors and processes of each container",
            "one builder at a time",
        ]
        .map(str::to_owned)
        .into();
        let mut add = |holds: bool, what: &str| enforces.extend(holds.then(|| what.to_owned()));
        add(self.unfiltered.is_none(), "networks with public addresses only, or none");
        match (self.kind, &self.ungrouped) {
            (EngineKind::Docker, _) => add(true, "time, disk space and memory of the commands of builds"),
            (EngineKind::Podman, ungrouped) => {
                add(true, "time and disk space of builds");
                add(ungrouped.is_none(), "memory and processes of builds");
            }
        }
        add(self.shares_parts, "mounts of checked files and folders only");
        enforces
    }

    /// Returns what isn't enforced or doesn't work, one sentence each.
    #[must_use]
    pub fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        if let Some(reason) = &self.unfiltered {
            lacks.push(format!("Containers have no network, since networks can't be limited: {reason}."));
        }
        if let Some(reason) = &self.ungrouped {
            lacks.push(format!(
                "Builds may continue after their end, and aren't limited in memory and processes: {reason}."
            ));
        }
        if !self.shares_parts {
            lacks.push(
                "Containers can't mount parts of shared folders, since the host may not mount.".to_owned(),
            );
        }
        if self.kind == EngineKind::Docker {
            lacks.push("The number of processes of a build isn't limited.".to_owned());
            lacks.push("What docker does itself in a build, such as unpacking archives of `ADD`, goes on after the build's end, without a limit.".to_owned());
        }
        if self.kind == EngineKind::Podman {
            lacks.push("Services in closed networks don't find each other by name.".to_owned());
        }
        if self.compose.is_none() {
            lacks.push("The command `docker compose` is missing: install its plugin.".to_owned());
        }
        lacks
    }
}

/// An engine's own description. Sandboxes get it from here: podman asks the package manager for the versions of its
/// programs each time, which takes a second of processor time.
#[derive(Debug)]
pub(crate) struct Description {
    /// Response to `/version`.
    pub(crate) version: Value,
    /// Response to `/info`.
    pub(crate) info: Value,
}

/// Reads the description of an engine.
pub(super) async fn read(
    client: &Client,
    options: &ProbeOptions,
) -> Result<(EngineReport, Description), String> {
    let ping = request(Method::GET, "/_ping", full("")).map_err(|error| error.to_string())?;
    let pong = match timeout(PING_TIMEOUT, client.send(ping)).await {
        Ok(response) => response.map_err(|error| error.to_string())?,
        Err(_) => return Err(format!("no answer within {} s", PING_TIMEOUT.as_secs())),
    };
    let offers_buildkit = pong.headers().get("builder-version").is_some_and(|version| version == "2");
    let get =
        async |path: &str| client.expect(Method::GET, path, None).await.map_err(|error| error.to_string());
    let (version, info) = tokio::try_join!(get("/version"), get("/info"))?;
    let components = version["Components"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_podman = components.iter().any(|component| component["Name"] == "Podman Engine");
    let kind = if is_podman { EngineKind::Podman } else { EngineKind::Docker };
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    if info["OSType"].as_str().is_some_and(|system| system != "linux") {
        return Err(format!("it runs containers of {}, not of Linux", text(&info["OSType"])));
    }
    for (field, what) in [("MemoryLimit", "memory"), ("PidsLimit", "processes")] {
        if info[field] == false {
            return Err(format!(
                "it can't limit the {what} of containers; use cgroup version 2, or run it as root"
            ));
        }
    }
    let is_rootless = |option: &Value| option.as_str().is_some_and(|option| option.contains("rootless"));
    let tools = tools::read(options).await;
    let report = EngineReport {
        kind,
        version: text(&version["Version"]),
        api_version: text(&version["ApiVersion"]),
        rootless: info["SecurityOptions"].as_array().is_some_and(|options| options.iter().any(is_rootless)),
        storage_driver: text(&info["Driver"]),
        cgroup_version: text(&info["CgroupVersion"]),
        compose: tools.compose,
        buildkit: kind == EngineKind::Docker && offers_buildkit && tools.has_buildx,
        unfiltered: None,
        ungrouped: None,
        shares_parts: false,
        socket: client.socket().to_owned(),
        is_started: false,
    };
    Ok((report, Description { version, info }))
}
