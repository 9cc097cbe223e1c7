//! The container engine of a host: found when it is needed first, and shared by all sandboxes, each through a filter of
//! its own.
//!
//! Every host has a folder for its engine below a common one, and is known to the engine by that folder's name. A host
//! that finds the folder of a dead one removes what that one's sandboxes left in the engine.

mod leftovers;
mod view;

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bench_engine::{
    Engine, ImageCache, ImageRules, Limits, NetworkPolicy, Owner, ProbeError, ProbeOptions, Proxy,
    SandboxRules, SharedFolder, probe, reap,
};
use tokio::time::Instant;

use self::leftovers::{has_leftovers, lock_record, remove_leftovers};
pub use self::view::EngineView;
use super::HostError;
use super::error::sentence;
use crate::isolation::EnginePlace;

/// Time after which a host looks again for an engine that it didn't find.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// Folder with the times at which images were used.
const IMAGE_USES: &str = "image-uses";
/// Number of characters of the name of a host's folder.
const NAME_CHARS: usize = 12;

/// Configuration of the container engine.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Private folder for the state of all hosts that use it; created when an engine is needed first.
    pub folder: PathBuf,
    /// Where to look for an engine. [`ProbeOptions::run_folder`] and [`ProbeOptions::instance`] are replaced.
    pub probe: ProbeOptions,
    /// Limits of the containers of each sandbox.
    pub limits: Limits,
    /// Prefixes of full names of images that sandboxes may pull and use, such as `docker.io/`.
    pub images: Vec<String>,
    /// Prefix of full names of images that sandboxes may build and keep for each other.
    pub own_images: String,
    /// Maximum size of the images that are kept, in bytes.
    pub images_bytes_max: u64,
    /// If true, containers reach everything that the machine reaches; otherwise public addresses only, or nothing
    /// where networks can't be limited.
    pub allow_network: bool,
}

/// The engine of a host, or the reason why there is none.
#[derive(Debug)]
pub(super) struct HostEngine {
    config: Option<EngineConfig>,
    /// Held while the host looks for an engine.
    finding: tokio::sync::Mutex<()>,
    found: Mutex<Found>,
}

#[derive(Debug, Clone)]
enum Found {
    NotYet,
    Searching,
    Ready(Arc<ReadyEngine>),
    Missing { reason: String, at: Instant },
    Closed,
}

/// An engine that runs containers.
#[derive(Debug)]
struct ReadyEngine {
    engine: Engine,
    /// Name of the host's folder, which labels everything that its sandboxes make.
    instance: String,
    run_folder: PathBuf,
    /// Kept locked while the host lives.
    _record: File,
}

impl HostEngine {
    pub(super) fn new(config: Option<EngineConfig>) -> Self {
        Self { config, finding: tokio::sync::Mutex::default(), found: Mutex::new(Found::NotYet) }
    }

    /// Returns true if a killed host left its folder, so that the engine has to be cleaned up.
    pub(super) fn has_leftovers(&self) -> bool {
        self.config.as_ref().is_some_and(|config| has_leftovers(&config.folder))
    }

    /// Returns true if the host hasn't looked for an engine yet.
    pub(super) fn is_unknown(&self) -> bool {
        self.config.is_some() && matches!(&*self.found(), Found::NotYet)
    }

    /// Returns what is known of the engine.
    pub(super) fn view(&self) -> EngineView {
        if self.config.is_none() {
            return EngineView::missing("This sandbox host is configured to use none.");
        }
        match &*self.found() {
            Found::NotYet | Found::Searching => {
                EngineView::missing("The host is looking for one: ask again in a few seconds.")
            }
            Found::Ready(ready) => EngineView::of(ready.engine.report()),
            Found::Missing { reason, .. } => EngineView::missing(reason),
            Found::Closed => EngineView::missing("The sandbox host is being shut down."),
        }
    }

    /// Returns name and version of the engine, if it is known.
    pub(super) fn name(&self) -> Option<String> {
        match &*self.found() {
            Found::Ready(ready) => Some(view::name(ready.engine.report())),
            _ => None,
        }
    }

    /// Finds the engine, unless that was done before. Fails with one sentence that says what to install.
    pub(super) async fn find(&self) -> Result<(), HostError> {
        self.ready().await.map(drop)
    }

    /// Gives a new sandbox its socket.
    pub(super) async fn attach(&self, sandbox: &str, place: &EnginePlace) -> Result<Proxy, HostError> {
        let ready = self.ready().await?;
        let config = self.config.as_ref().ok_or_else(not_configured)?;
        let failed = |error: &dyn std::fmt::Display| {
            HostError::Failed(sentence(&format!("the sandbox's engine socket could not be made: {error}")))
        };
        let owner = Owner::new(&ready.instance, sandbox).map_err(|error| failed(&error))?;
        let folders = place.workspace.iter().map(|folder| SharedFolder {
            seen: folder.inside.clone(),
            host: folder.host.clone(),
            writable: true,
        });
        let network = match (config.allow_network, &ready.engine.report().unfiltered) {
            (true, _) => NetworkPolicy::Unfiltered,
            (false, None) => NetworkPolicy::Public,
            (false, Some(_)) => NetworkPolicy::None,
        };
        let rules = SandboxRules {
            folders: folders.collect(),
            images: ImageRules {
                usable: config.images.clone(),
                own: vec![config.own_images.clone()],
                keep: true,
            },
            limits: config.limits.clone(),
            network,
            ..SandboxRules::new(owner)
        };
        Proxy::start(&ready.engine, &place.socket, rules).map_err(|error| failed(&error))
    }

    /// Removes what sandboxes of this host other than those in `running` left in the engine.
    pub(super) async fn remove_others(&self, running: &BTreeSet<String>) -> Result<(), HostError> {
        let found = self.found().clone();
        let Found::Ready(ready) = found else { return Ok(()) };
        let reaped = reap(ready.engine.client(), &ready.instance, running, true).await;
        reaped.map_err(|error| HostError::Failed(sentence(&error)))
    }

    /// Stops what the host started. All sandboxes must have ended.
    pub(super) async fn close(&self) {
        // Waits for a search in progress, which may start a service.
        let _finding = self.finding.lock().await;
        let found = std::mem::replace(&mut *self.found(), Found::Closed);
        if let Found::Ready(ready) = found {
            let path = self.config.as_ref().map(|config| config.probe.path.clone()).unwrap_or_default();
            ready.close(&path).await;
        }
    }

    async fn ready(&self) -> Result<Arc<ReadyEngine>, HostError> {
        let config = self.config.as_ref().ok_or_else(not_configured)?;
        let _finding = self.finding.lock().await;
        let found = self.found().clone();
        match found {
            Found::Ready(ready) => {
                // It may answer later. Callers wait for that only for so long, unlike for a host that is full.
                if let Err(error) = ready.engine.revive().await {
                    return Err(HostError::Failed(format!(
                        "The container engine doesn't answer, start it again: {error}."
                    )));
                }
                return Ok(ready);
            }
            Found::Missing { reason, at } if at.elapsed() < RETRY_AFTER => {
                return Err(HostError::Unavailable(reason));
            }
            Found::Closed => return Err(super::create::shutting_down()),
            Found::NotYet | Found::Searching | Found::Missing { .. } => {}
        }
        *self.found() = Found::Searching;
        match ReadyEngine::find(config).await {
            Ok(ready) => {
                let ready = Arc::new(ready);
                tracing::info!("Container engine for sandboxes: {}", ready.engine.report());
                *self.found() = Found::Ready(Arc::clone(&ready));
                Ok(ready)
            }
            Err(reason) => {
                let reason = sentence(&reason);
                tracing::info!("No container engine for sandboxes: {reason}");
                *self.found() = Found::Missing { reason: reason.clone(), at: Instant::now() };
                Err(HostError::Unavailable(reason))
            }
        }
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Found> {
        // A panic can't leave the value half changed.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadyEngine {
    /// Finds an engine, and removes what dead hosts left in it.
    async fn find(config: &EngineConfig) -> Result<Self, String> {
        let (run_folder, record) =
            make_run_folder(config).map_err(|error| format!("{}: {error}", config.folder.display()))?;
        let instance = run_folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let options = ProbeOptions {
            run_folder: run_folder.clone(),
            instance: Some(instance.clone()),
            ..config.probe.clone()
        };
        let mut found = probe(&options).await;
        if matches!(&found, Err(ProbeError::Unusable { .. } | ProbeError::Configured { .. })) {
            // Something that the probe had started may have been killed.
            found = probe(&options).await;
        }
        let engine = match found {
            Ok(engine) => engine,
            Err(error) => {
                leftovers::discard(&run_folder, &config.probe.path, None).await;
                return Err(error.to_string());
            }
        };
        remove_leftovers(&config.folder, &instance, engine.client(), &config.probe.path).await;
        let uses = config.folder.join(IMAGE_USES);
        let engine = match ImageCache::open(uses, &config.own_images, config.images_bytes_max) {
            Ok(cache) => engine.with_images(cache),
            Err(error) => {
                tracing::warn!(%error, "Images of sandboxes are kept without a size limit");
                engine
            }
        };
        Ok(Self { engine, instance, run_folder, _record: record })
    }

    async fn close(&self, path: &std::ffi::OsStr) {
        // Nothing is left, unless the removal of a sandbox's objects failed; then another try, or the next host.
        let reaped = reap(self.engine.client(), &self.instance, &BTreeSet::new(), true).await;
        self.engine.stop().await;
        match reaped {
            Ok(()) => leftovers::discard(&self.run_folder, path, None).await,
            Err(error) => tracing::warn!(%error, "Containers of sandboxes were not removed"),
        }
    }
}

/// Creates the folder of this host, with a record that is locked while the host lives.
fn make_run_folder(config: &EngineConfig) -> io::Result<(PathBuf, File)> {
    DirBuilder::new().recursive(true).mode(0o700).create(&config.folder)?;
    let id = uuid::Uuid::new_v4().simple().to_string();
    let run_folder = config.folder.join(id.get(..NAME_CHARS).unwrap_or(&id));
    DirBuilder::new().mode(0o700).create(&run_folder)?;
    let record = lock_record(&run_folder)?.ok_or_else(|| io::Error::other("a new file is locked"))?;
    Ok((run_folder, record))
}

fn not_configured() -> HostError {
    HostError::Unavailable(
        "This sandbox host is configured to use no container engine: omit enableDockerSocket, or configure one."
            .to_owned(),
    )
}
