//! Finds a container engine on this machine, and checks that it runs a container within limits.

mod build_service;
mod error;
mod podman;
mod report;
mod tools;
mod trial;

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::timeout;

pub(crate) use self::build_service::{BuildService, BuildServices};
pub use self::error::ProbeError;
use self::podman::{Podman, Settings};
pub(crate) use self::report::Description;
pub use self::report::{EngineKind, EngineReport};
use crate::build_group::remove_recorded;
use crate::client::{Client, ClientError};
use crate::firewall::Firewall;
use crate::images::ImageCache;
use crate::pipes::PipeWatch;
use crate::rules::{Pins, release_all};

/// Where the probe looks, and for how long.
#[derive(Debug, Clone)]
pub struct ProbeOptions {
    /// Private folder for sockets, contexts of builds and mounts. The probe creates it and releases what an earlier
    /// process left mounted there.
    pub run_folder: PathBuf,
    /// Id of the host's instance, by which [`reap`](crate::reap) finds what an interrupted probe leaves.
    pub instance: Option<String>,
    /// Address of an engine, as in `DOCKER_HOST`: `unix:///path`. No other engine is tried then.
    pub docker_host: Option<String>,
    /// Start podman's service if no engine listens.
    pub start_podman: bool,
    /// Folders of programs, as in `PATH`.
    pub path: OsString,
    /// Home folder, in which podman and docker have their settings.
    pub home: Option<PathBuf>,
    /// Folder of the user's sockets, as in `XDG_RUNTIME_DIR`.
    pub runtime_folder: Option<PathBuf>,
    /// Folder of docker's settings and plugins, as in `DOCKER_CONFIG`.
    pub docker_config: Option<PathBuf>,
    /// Podman's `containers.conf`, as in `CONTAINERS_CONF`.
    pub containers_conf: Option<PathBuf>,
    /// Podman's `storage.conf`, as in `CONTAINERS_STORAGE_CONF`.
    pub storage_conf: Option<PathBuf>,
    /// Time limit of the probe.
    pub time_limit: Duration,
}

impl ProbeOptions {
    /// Checks that an engine is installed or listens where the [probe](probe()) looks, without starting anything. The probe
    /// itself may still fail.
    ///
    /// # Errors
    /// As the probe, for an engine that isn't installed or whose socket doesn't exist.
    pub fn expect_any(&self) -> Result<(), ProbeError> {
        let Some(address) = &self.docker_host else {
            let has_podman = || self.start_podman && tools::find("podman", &self.path).is_some();
            let is_any = self.usual_sockets().iter().any(|socket| socket.exists()) || has_podman();
            return if is_any { Ok(()) } else { Err(ProbeError::Missing) };
        };
        let socket = socket_of(address)?;
        match Path::new(socket).exists() {
            true => Ok(()),
            false => Err(ProbeError::unusable(socket, "the socket doesn't exist")),
        }
    }

    /// Creates options that look in the usual places for at most 30 s.
    #[must_use]
    pub fn new(run_folder: impl Into<PathBuf>) -> Self {
        Self {
            run_folder: run_folder.into(),
            instance: None,
            docker_host: None,
            start_podman: true,
            path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into(),
            home: None,
            runtime_folder: None,
            docker_config: None,
            containers_conf: None,
            storage_conf: None,
            time_limit: Duration::from_secs(30),
        }
    }

    /// Returns the sockets on which engines usually listen.
    fn usual_sockets(&self) -> Vec<PathBuf> {
        let user = |name: &str| self.runtime_folder.as_ref().map(|folder| folder.join(name));
        let sockets = [
            Some(PathBuf::from("/var/run/docker.sock")),
            user("docker.sock"),
            Some(PathBuf::from("/run/podman/podman.sock")),
            user("podman/podman.sock"),
        ];
        sockets.into_iter().flatten().collect()
    }
}

/// A container engine that passed the probe.
#[derive(Debug)]
pub struct Engine {
    report: EngineReport,
    description: Arc<Description>,
    client: Client,
    run_folder: PathBuf,
    can_mount: bool,
    firewall: Option<Firewall>,
    podman: Mutex<Option<Podman>>,
    options: ProbeOptions,
    storage: Option<PathBuf>,
    builders: Arc<Semaphore>,
    /// Held while names of images must not change.
    pulls: Arc<tokio::sync::Mutex<()>>,
    build_services: Option<Arc<BuildServices>>,
    cache: Option<Arc<ImageCache>>,
    pipes: Option<Arc<PipeWatch>>,
}

/// Removes what a process has left of its run folder: mounts, the firewall's table, and the group of builds. `path` has the
/// folders of programs. Where the process has died, `engine` is the client of the engine, which removes the files of its
/// builds. Remove the objects of its sandboxes by [`reap`](crate::reap) before.
pub async fn discard(
    run_folder: &Path,
    path: &std::ffi::OsStr,
    engine: Option<&Client>,
) -> std::io::Result<()> {
    release_all(&pin_folder(run_folder));
    if let Some(nft) = tools::find("nft", path) {
        Firewall::close_recorded(&nft, run_folder).await;
    }
    let folder = run_folder.to_owned();
    let ended = tokio::task::spawn_blocking(move || {
        podman::end_abandoned(&folder);
        remove_recorded(&folder)
    });
    // The record of a group that can't be removed stays for another try.
    let group = ended.await.map_err(std::io::Error::other)??;
    if let (Some(group), Some(engine)) = (group, engine)
        && let Err(error) = build_service::remove_recorded_files(engine, &group).await
    {
        tracing::warn!(%error, "The files of a killed host's builds were not removed");
    }
    let folder = run_folder.to_owned();
    let removed = tokio::task::spawn_blocking(move || {
        // What is still mounted stays, so that nothing of a sandbox is removed through it.
        match std::fs::remove_dir(pin_folder(&folder)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => std::fs::remove_dir_all(&folder),
        }
    });
    removed.await.map_err(std::io::Error::other)?
}

/// Finds a container engine. Returns the reason for each place where there is none.
pub async fn probe(options: &ProbeOptions) -> Result<Engine, ProbeError> {
    match timeout(options.time_limit, find(options)).await {
        Ok(found) => found,
        Err(_) => Err(ProbeError::TimedOut { seconds: options.time_limit.as_secs() }),
    }
}

/// Opens the firewall beside an engine that was found.
async fn find(options: &ProbeOptions) -> Result<Engine, ProbeError> {
    let mut engine = find_engine(options).await?;
    let opened = match (tools::find("nft", &options.path), engine.report.rootless) {
        // Networks of a rootless engine are in a namespace of their own.
        (_, true) => Err("the engine is rootless".to_owned()),
        (None, _) => Err(
            "install nftables (Debian, Ubuntu: `apt-get install nftables`; Fedora: `dnf install nftables`)"
                .to_owned(),
        ),
        (Some(nft), false) => Firewall::open(nft, &options.run_folder).await,
    };
    match opened {
        Ok(firewall) => engine.firewall = Some(firewall),
        Err(reason) => engine.report.unfiltered = Some(reason),
    }
    if engine.report.kind == EngineKind::Podman {
        match open_build_services(&engine).await {
            Ok(services) => engine.build_services = Some(Arc::new(services)),
            Err(reason) => engine.report.ungrouped = Some(reason),
        }
    }
    Ok(engine)
}

/// Prepares services for the builds of podman.
async fn open_build_services(engine: &Engine) -> Result<BuildServices, String> {
    if engine.report.rootless {
        return Err("podman is rootless".to_owned());
    }
    let options = &engine.options;
    if tools::find("podman", &options.path).is_none() {
        return Err("the command `podman` is missing".to_owned());
    }
    let Some(storage) = &engine.storage else {
        return Err("podman's storage isn't on this machine".to_owned());
    };
    // A service that the probe found has settings of its own.
    let settings = engine.podman.lock().await.as_ref().map_or(Settings::Own, Podman::settings);
    BuildServices::open(settings, options, &engine.client, storage).await
}

async fn find_engine(options: &ProbeOptions) -> Result<Engine, ProbeError> {
    let folder = &options.run_folder;
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(|source| ProbeError::RunFolder { path: folder.clone(), source })?;
    release_all(&pin_folder(folder));
    let run_folder = folder.clone();
    let removed = tokio::task::spawn_blocking(move || remove_recorded(&run_folder)).await;
    if let Err(error) = removed.map_err(std::io::Error::other).and_then(|removed| removed) {
        tracing::warn!(%error, "Group of an earlier process's builds was not removed");
    }
    if let Some(address) = &options.docker_host {
        let socket = socket_of(address)?;
        return check(Path::new(socket), options)
            .await
            .map_err(|reason| ProbeError::unusable(socket, &reason));
    }
    let mut reasons = Vec::new();
    for socket in options.usual_sockets() {
        // Most sockets don't exist, which is no news.
        if !socket.exists() {
            continue;
        }
        match check(&socket, options).await {
            Ok(engine) => return Ok(engine),
            Err(reason) => reasons.push(format!("{}: {reason}", socket.display())),
        }
    }
    if options.start_podman && tools::find("podman", &options.path).is_some() {
        for settings in [Settings::Adapted, Settings::Own] {
            match start(settings, options).await {
                Ok(engine) => return Ok(engine),
                Err(reason) => reasons.push(format!("podman with {settings}: {reason}")),
            }
        }
    }
    match reasons.is_empty() {
        true => Err(ProbeError::Missing),
        false => Err(ProbeError::Unusable { reasons: reasons.join("; ") }),
    }
}

fn socket_of(address: &str) -> Result<&str, ProbeError> {
    let socket = address.strip_prefix("unix://").filter(|path| path.starts_with('/'));
    socket.ok_or_else(|| ProbeError::Address { address: address.to_owned() })
}

/// Starts podman's service and checks it.
async fn start(settings: Settings, options: &ProbeOptions) -> Result<Engine, String> {
    let podman = Podman::start(settings, options).await.map_err(|error| error.to_string())?;
    match check(podman.socket(), options).await {
        Ok(mut engine) => {
            engine.podman = Mutex::new(Some(podman));
            engine.report.is_started = true;
            Ok(engine)
        }
        Err(reason) => {
            podman.stop().await;
            Err(reason)
        }
    }
}

/// Reads the description of the engine on a socket, and runs a container.
async fn check(socket: &Path, options: &ProbeOptions) -> Result<Engine, String> {
    let client = Client::new(socket);
    let (mut report, description) = report::read(&client, options).await?;
    let storage = description.info["DockerRootDir"].as_str().filter(|folder| folder.starts_with('/'));
    let storage = storage.map(PathBuf::from);
    trial::run(&client, options.instance.as_deref()).await?;
    let can_mount = can_mount(&options.run_folder);
    report.shares_parts = can_mount;
    Ok(Engine {
        report,
        description: Arc::new(description),
        client,
        run_folder: options.run_folder.clone(),
        can_mount,
        firewall: None,
        podman: Mutex::new(None),
        options: options.clone(),
        // The engine may see another disk than this process.
        pipes: storage.as_deref().and_then(PipeWatch::start).map(Arc::new),
        storage: storage.filter(|folder| folder.is_dir()),
        builders: Arc::new(Semaphore::new(1)),
        pulls: Arc::default(),
        build_services: None,
        cache: None,
    })
}

impl Engine {
    /// Returns what the probe found.
    #[must_use]
    pub fn report(&self) -> &EngineReport {
        &self.report
    }

    /// Returns a client of the engine's own socket, for [`reap`](crate::reap). No sandbox may reach it.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sets the images that sandboxes keep for each other.
    #[must_use]
    pub fn with_images(self, cache: ImageCache) -> Self {
        Self { cache: Some(Arc::new(cache)), ..self }
    }

    /// Checks that the engine answers. Starts podman's service again if it was this program's own and has ended.
    pub async fn revive(&self) -> Result<(), ClientError> {
        let asked = self.client.call(Method::HEAD, "/_ping", None).await;
        let Err(error) = asked else { return Ok(()) };
        let mut podman = self.podman.lock().await;
        let Some(ended) = podman.take() else { return Err(error) };
        let settings = ended.settings();
        tracing::warn!(%error, "Podman's service doesn't answer and is started again");
        ended.stop().await;
        match Podman::start(settings, &self.options).await {
            Ok(started) => {
                *podman = Some(started);
                Ok(())
            }
            Err(reason) => {
                tracing::warn!(%reason, "Podman's service can't be started again");
                Err(error)
            }
        }
    }

    /// Removes the firewall and the group of builds, and stops podman's service if the probe started it. Stop all
    /// proxies first.
    pub async fn stop(&self) {
        if let Some(firewall) = &self.firewall {
            firewall.close().await;
        }
        if let Some(podman) = self.podman.lock().await.take() {
            podman.stop().await;
        }
        if let Some(services) = &self.build_services {
            services.close().await;
        }
    }

    pub(crate) fn description(&self) -> Arc<Description> {
        Arc::clone(&self.description)
    }

    pub(crate) fn builders(&self) -> Arc<Semaphore> {
        Arc::clone(&self.builders)
    }

    /// Returns the lock on the names of images.
    pub(crate) fn pulls(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.pulls)
    }

    /// Returns the services for builds; `None` if the engine builds itself.
    pub(crate) fn build_services(&self) -> Option<Arc<BuildServices>> {
        self.build_services.clone()
    }

    /// Returns the images that sandboxes keep for each other.
    pub(crate) fn image_cache(&self) -> Option<Arc<ImageCache>> {
        self.cache.clone()
    }

    /// Returns the watch over pipes in containers, if this process may read their files.
    pub(crate) fn pipes(&self) -> Option<Arc<PipeWatch>> {
        self.pipes.clone()
    }

    /// Returns the folder in which the engine stores images, if this process sees it.
    pub(crate) fn storage(&self) -> Option<&Path> {
        self.storage.as_deref()
    }

    pub(crate) fn firewall(&self) -> Option<&Firewall> {
        self.firewall.as_ref()
    }

    pub(crate) fn run_folder(&self) -> &Path {
        &self.run_folder
    }

    pub(crate) fn pin_folder(&self) -> PathBuf {
        pin_folder(&self.run_folder)
    }

    /// Returns true if parts of shared folders can be mounted.
    pub(crate) fn can_mount(&self) -> bool {
        self.can_mount
    }
}

fn pin_folder(run_folder: &Path) -> PathBuf {
    run_folder.join("mounts")
}

/// Mounts a folder, to find out whether this process may.
fn can_mount(run_folder: &Path) -> bool {
    let tried = || {
        let pins = Pins::in_folder(&pin_folder(run_folder))?;
        let folder = std::fs::File::open(run_folder)?.into();
        pins.mount(&folder, true).map(drop)
    };
    match tried() {
        Ok(()) => true,
        Err(error) => {
            tracing::info!(%error, "Containers can share only whole folders");
            false
        }
    }
}
