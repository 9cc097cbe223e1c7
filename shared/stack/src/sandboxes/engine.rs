//! Settings of the container engine for sandboxes.

use std::path::{Path, PathBuf};

use bench_engine::{EngineReport, Limits, ProbeError, ProbeOptions};
use bench_sandbox::host::EngineConfig;

use super::{MIB_MAX, SandboxesError};

/// Folder in the data directory for state of the engine, below that of the sandboxes.
const STATE: &str = "engine";
/// Default of `BENCH_SANDBOX_ENGINE`: the first engine that is found.
const AUTO: &str = "auto";
/// Value of `BENCH_SANDBOX_ENGINE` for hosts without an engine.
const NONE: &str = "none";
/// Registries from which sandboxes may pull images by default.
const REGISTRIES: &str = "docker.io,ghcr.io";
/// Prefix of full names of images that sandboxes may build and keep for each other.
const OWN_IMAGES: &str = "docker.io/library/bench__";
const CONTAINER_MEMORY_MIB: u64 = 8_192;
const IMAGES_GIB: u64 = 20;
/// Maximum of `BENCH_SANDBOX_IMAGES_GIB`.
const IMAGES_GIB_MAX: u64 = 1 << 20;
/// Minimum memory of a container, in MiB. With less, nothing starts in it.
const CONTAINER_MEMORY_MIB_MIN: u64 = 16;
/// Memory of a container that asks for none, in MiB.
const CONTAINER_MEMORY_MIB_DEFAULT: u64 = 2_048;

/// Settings of the container engine.
///
/// | variable | default | meaning |
/// | --- | --- | --- |
/// | `BENCH_SANDBOX_ENGINE` | `auto` | `auto`, `none`, or the engine's address: `unix:///path` |
/// | `BENCH_SANDBOX_CONTAINER_MEMORY_MIB` | 8192 | maximum memory of each container |
/// | `BENCH_SANDBOX_IMAGES_GIB` | 20 | size above which the least recently used images are removed |
/// | `BENCH_SANDBOX_REGISTRIES` | `docker.io,ghcr.io` | registries from which sandboxes may pull images |
///
/// With `auto`, `DOCKER_HOST` names the engine if it is set. Engines find their own settings by `HOME` and similar
/// variables.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// Where to look for an engine; `None` for hosts without one.
    probe: Option<ProbeOptions>,
    container_memory_mib: u64,
    images_gib: u64,
    registries: Vec<String>,
}

impl EngineSettings {
    /// Reads the settings from variables.
    ///
    /// # Errors
    /// Fails with one sentence that names the invalid variable.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self, SandboxesError> {
        let text = |name: &str| var(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let number = |name, default, min, max| {
            let Some(text) = text(name) else { return Ok(default) };
            let number = text.parse().ok().filter(|number| (min..=max).contains(number));
            number.ok_or(SandboxesError::Variable { name, min, max })
        };
        let path = |name: &str| text(name).map(PathBuf::from);
        let engine = text("BENCH_SANDBOX_ENGINE").unwrap_or_else(|| AUTO.to_owned());
        let docker_host = match engine.as_str() {
            NONE => None,
            AUTO => text("DOCKER_HOST"),
            address if address.starts_with("unix:///") => Some(address.to_owned()),
            _ => return Err(SandboxesError::Engine),
        };
        let defaults = ProbeOptions::new("");
        let probe = ProbeOptions {
            docker_host,
            path: text("PATH").map_or(defaults.path.clone(), Into::into),
            home: path("HOME"),
            runtime_folder: path("XDG_RUNTIME_DIR"),
            docker_config: path("DOCKER_CONFIG"),
            containers_conf: path("CONTAINERS_CONF"),
            storage_conf: path("CONTAINERS_STORAGE_CONF"),
            ..defaults
        };
        let registries = text("BENCH_SANDBOX_REGISTRIES").unwrap_or_else(|| REGISTRIES.to_owned());
        Ok(Self {
            probe: (engine != NONE).then_some(probe),
            container_memory_mib: number(
                "BENCH_SANDBOX_CONTAINER_MEMORY_MIB",
                CONTAINER_MEMORY_MIB,
                CONTAINER_MEMORY_MIB_MIN,
                MIB_MAX,
            )?,
            images_gib: number("BENCH_SANDBOX_IMAGES_GIB", IMAGES_GIB, 1, IMAGES_GIB_MAX)?,
            registries: registries
                .split(',')
                .map(|registry| registry.trim().trim_end_matches('/').to_owned())
                .filter(|registry| !registry.is_empty())
                .collect(),
        })
    }

    /// Finds the engine as a host does, with its private files in `folder`, and stops what it started. Returns `None` if
    /// hosts have no engine.
    ///
    /// # Errors
    /// Fails with the reason for each place where there is no engine.
    pub async fn try_engine(&self, folder: &Path) -> Option<Result<EngineReport, ProbeError>> {
        let options = ProbeOptions { run_folder: folder.to_owned(), ..self.probe.clone()? };
        let engine = match bench_engine::probe(&options).await {
            Ok(engine) => engine,
            Err(error) => return Some(Err(error)),
        };
        engine.stop().await;
        Some(Ok(engine.report().clone()))
    }

    /// Checks that an engine is installed or listens, without starting anything. Returns `None` for hosts without one.
    ///
    /// # Errors
    /// Fails if no engine is installed, or the configured one isn't there.
    pub fn expect_any(&self) -> Option<Result<(), ProbeError>> {
        self.probe.as_ref().map(ProbeOptions::expect_any)
    }

    /// Returns the configuration for a host whose state is in `state`; `None` for a host without an engine.
    pub(super) fn config(&self, state: &Path, allow_network: bool) -> Option<EngineConfig> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get) as u64;
        Some(EngineConfig {
            folder: state.join(STATE),
            probe: self.probe.clone()?,
            limits: Limits {
                memory_bytes_default: self.container_memory_mib.min(CONTAINER_MEMORY_MIB_DEFAULT) << 20,
                memory_bytes_max: self.container_memory_mib << 20,
                nano_cpus_max: processors.saturating_mul(1_000_000_000),
                ..Limits::default()
            },
            images: self.registries.iter().map(|registry| format!("{registry}/")).collect(),
            own_images: OWN_IMAGES.to_owned(),
            images_bytes_max: self.images_gib << 30,
            allow_network,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(vars: &[(&str, &str)]) -> Result<EngineSettings, SandboxesError> {
        EngineSettings::from_vars(|name| {
            vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_engine_is_found_named_or_switched_off() {
        let host = |vars: &[(&str, &str)]| {
            settings(vars).unwrap().config(Path::new("/s"), false).map(|config| config.probe.docker_host)
        };
        assert_eq!(host(&[]), Some(None));
        assert_eq!(host(&[("BENCH_SANDBOX_ENGINE", " none ")]), None);
        assert_eq!(host(&[("DOCKER_HOST", "unix:///d")]), Some(Some("unix:///d".to_owned())));
        let both = [("DOCKER_HOST", "unix:///d"), ("BENCH_SANDBOX_ENGINE", "unix:///b")];
        assert_eq!(host(&both), Some(Some("unix:///b".to_owned())));
        assert!(settings(&[("BENCH_SANDBOX_ENGINE", "podman")]).is_err());
    }

    #[test]
    fn limits_and_registries_come_from_variables() {
        let config = |vars: &[(&str, &str)]| settings(vars).unwrap().config(Path::new("/s"), true).unwrap();
        let default = config(&[]);
        assert_eq!(default.images, ["docker.io/", "ghcr.io/"]);
        assert_eq!((default.limits.memory_bytes_max, default.images_bytes_max), (8 << 30, 20 << 30));
        assert!(default.allow_network && default.folder == Path::new("/s/engine"));
        let changed = config(&[
            ("BENCH_SANDBOX_REGISTRIES", "registry.example:5000/team/, ghcr.io,"),
            ("BENCH_SANDBOX_CONTAINER_MEMORY_MIB", "512"),
            ("BENCH_SANDBOX_IMAGES_GIB", "3"),
        ]);
        assert_eq!(changed.images, ["registry.example:5000/team/", "ghcr.io/"]);
        assert_eq!(changed.limits.memory_bytes_default, 512 << 20);
        assert_eq!(changed.images_bytes_max, 3 << 30);
        for (name, bad) in [("BENCH_SANDBOX_CONTAINER_MEMORY_MIB", "8"), ("BENCH_SANDBOX_IMAGES_GIB", "0")] {
            assert!(settings(&[(name, bad)]).unwrap_err().to_string().starts_with(name));
        }
    }
}
