//! The proxy of one sandbox: a Unix socket that passes allowed requests on to the engine.

mod build;
mod builder;
mod container;
mod count;
mod dispatch;
mod events;
mod forward;
mod health;
mod hijack;
mod images;
mod lists;
mod networks;
mod ownership;
mod serve;
mod size;
mod volumes;
mod work;

use std::collections::{HashMap, HashSet};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cleanup::{CleanupError, remove_layers, remove_sandbox};
use crate::client::{Client, ClientError};
use crate::context::Builder;
use crate::firewall::Firewall;
use crate::images::ImageCache;
use crate::pipes::PipeWatch;
use crate::probe::{BuildServices, Description, Engine, EngineKind};
use crate::rules::{FolderError, Folders, NetworkPolicy, Pin, Pins, SandboxRules};
use crate::short_path::ShortPath;

/// Maximum number of contexts of builds of a sandbox that are received or wait at the same time.
const CONTEXTS_MAX: usize = 2;
/// Time that requests in progress have to end when the proxy stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// Failure to start a proxy.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// A shared folder can't be opened.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Networks can't be filtered on this machine.
    #[error("containers can't be limited to public addresses: {0}")]
    Unfiltered(String),
    /// The socket is inside a folder that containers can mount.
    #[error("the socket `{}` is inside a folder that the sandbox shares with containers", .0.display())]
    Exposed(PathBuf),
    /// The socket or the private folder can't be created.
    #[error("can't listen on `{}`: {source}", path.display())]
    Listen {
        /// Path of the socket or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A running proxy. Stop it with [`Proxy::stop`]; dropping it leaves the sandbox's containers to the next
/// [`reap`](crate::reap).
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    socket: PathBuf,
}

/// State of a proxy, shared by its connections.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) description: Arc<Description>,
    pub(crate) rules: SandboxRules,
    pub(crate) folders: Folders,
    pub(crate) builder: Builder,
    pub(crate) firewall: Option<Firewall>,
    /// Limited interfaces by the id of their network.
    pub(crate) interfaces: AsyncMutex<HashMap<String, String>>,
    /// Private folder for contexts of builds.
    pub(crate) spool: PathBuf,
    /// Mounted files and folders by the id of their container.
    pub(crate) pins: Mutex<HashMap<String, Vec<Pin>>>,
    /// Held while something is counted and created.
    pub(crate) creating: AsyncMutex<()>,
    /// One build of this sandbox at a time.
    pub(crate) building: Arc<Semaphore>,
    /// Held while files of a container are removed.
    pub(crate) emptying: AsyncMutex<()>,
    /// One container of this sandbox is measured at a time.
    pub(crate) measuring: Arc<Semaphore>,
    /// Containers whose health is checked by this program; `None` if the engine checks them.
    pub(crate) checked: Option<Mutex<HashSet<String>>>,
    /// One sandbox of the host builds at a time.
    pub(crate) builders: Arc<Semaphore>,
    /// Held while names of images must not change.
    pub(crate) pulls: Arc<AsyncMutex<()>>,
    /// The host's builder while this sandbox has it.
    pub(crate) holding: Mutex<Weak<OwnedSemaphorePermit>>,
    /// Podman services for builds.
    pub(crate) build_services: Option<Arc<BuildServices>>,
    /// Images that are kept for other sandboxes.
    pub(crate) cache: Option<Arc<ImageCache>>,
    /// Watch over pipes in containers.
    pub(crate) pipes: Option<Arc<PipeWatch>>,
    /// Contexts of builds that are received or wait.
    pub(crate) contexts: Arc<Semaphore>,
    /// Folder on the disk on which the engine stores images.
    pub(crate) storage: Option<PathBuf>,
    /// Requests in progress, which continue without their client.
    pub(crate) tasks: TaskTracker,
    pub(crate) stopping: CancellationToken,
}

impl Proxy {
    /// Starts a proxy on `socket`, which must not exist. Every user may connect, so the socket's folder must be
    /// accessible to the sandbox only. It must not be in a shared folder. Requires a tokio runtime.
    pub fn start(engine: &Engine, socket: &Path, rules: SandboxRules) -> Result<Self, ProxyError> {
        let run = engine.run_folder();
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| ProxyError::Listen { path, source }
        };
        let pins = match engine.can_mount() {
            true => Pins::in_folder(&engine.pin_folder()).map_err(at(&engine.pin_folder()))?,
            false => Pins::none(),
        };
        let folders = Folders::open(&rules.folders, pins)?;
        if socket.parent().is_none_or(|folder| folders.contains(folder)) {
            return Err(ProxyError::Exposed(socket.to_owned()));
        }
        if rules.network == NetworkPolicy::Public && engine.firewall().is_none() {
            return Err(ProxyError::Unfiltered(engine.report().unfiltered.clone().unwrap_or_default()));
        }
        let short = ShortPath::new(socket).map_err(at(socket))?;
        let listener = UnixListener::bind(short.path()).map_err(at(socket))?;
        // The sandbox may have a user of its own; the socket's folder decides who reaches it.
        std::fs::set_permissions(socket, Permissions::from_mode(0o666)).map_err(at(socket))?;
        let shared = Arc::new(Shared {
            client: engine.client().clone(),
            description: engine.description(),
            folders,
            builder: match engine.report().kind {
                EngineKind::Docker => Builder::Classic,
                EngineKind::Podman => Builder::Buildah,
            },
            firewall: engine.firewall().cloned(),
            interfaces: AsyncMutex::default(),
            spool: run.to_owned(),
            pins: Mutex::default(),
            creating: AsyncMutex::default(),
            building: Arc::new(Semaphore::new(1)),
            emptying: AsyncMutex::default(),
            measuring: Arc::new(Semaphore::new(1)),
            checked: health::are_checked_here(engine.report().kind).then(Mutex::default),
            builders: engine.builders(),
            pulls: engine.pulls(),
            holding: Mutex::default(),
            build_services: engine.build_services(),
            cache: engine.image_cache(),
            pipes: engine.pipes(),
            contexts: Arc::new(Semaphore::new(CONTEXTS_MAX)),
            storage: engine.storage().map(Path::to_owned),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            rules,
        });
        tokio::spawn(serve::serve(Arc::clone(&shared), listener));
        Ok(Self { shared, socket: socket.to_owned() })
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the CPU time of the sandbox's running containers, in seconds.
    pub async fn cpu_seconds(&self) -> Result<f64, ClientError> {
        self.shared.cpu_seconds().await
    }

    /// Stops the proxy and removes the sandbox's containers, networks and volumes, and its images unless they are kept.
    /// May be repeated if it fails.
    pub async fn stop(&self) -> Result<(), CleanupError> {
        self.shared.stopping.cancel();
        self.shared.tasks.close();
        // A request that still waits for the engine could create something after the removal.
        if tokio::time::timeout(STOP_TIMEOUT, self.shared.tasks.wait()).await.is_err() {
            tracing::warn!(
                sandbox.id = self.shared.rules.owner.sandbox(),
                "Requests to the container engine hang"
            );
        }
        let rules = &self.shared.rules;
        let removed = remove_sandbox(&self.shared.client, &rules.owner, rules.images.keep).await;
        // Docker may have finished a step of a build that was left. A build that is running removes the layers at its end.
        if let Ok(_no_build) = self.shared.builders.try_acquire() {
            self.shared.remove_layers().await;
        }
        self.shared.forget_pins(|_| false);
        self.shared.forget_interfaces().await;
        self.shared.evict_images().await;
        removed
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stopping.cancel();
        if let Err(error) = std::fs::remove_file(&self.socket)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.socket.display(), %error, "Socket was not removed");
        }
    }
}

impl Shared {
    /// Keeps the mounts of a container until it is removed.
    pub(crate) fn keep_pins(&self, container: &str, pins: Vec<Pin>) {
        if !pins.is_empty() {
            let mut kept = self.pins.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            kept.insert(container.to_owned(), pins);
        }
    }

    /// Removes the layers of docker's builds that belong to no image. No other build of the host may be running.
    pub(crate) async fn remove_layers(&self) {
        if self.builder == Builder::Classic
            && let Err(error) = remove_layers(&self.client, self.rules.owner.instance()).await
        {
            tracing::warn!(%error, "Layers of builds were not removed");
        }
    }

    /// Unmounts what belongs to containers for which `keep` is false.
    pub(crate) fn forget_pins(&self, keep: impl Fn(&str) -> bool) {
        let mut kept = self.pins.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.retain(|container, _| keep(container));
    }
}
