//! Creates sandboxes on this machine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use rustix::pipe::PipeFlags;

use super::cgroups::{Group, OWN_PROCESSES};
use super::engine_folders::{EngineFolders, SOCKETS_INSIDE};
use super::instance::Instance;
use super::launched::LaunchedSandbox;
use super::resources::SandboxResources;
use super::sandbox::LocalSandbox;
use super::stage::{
    ALLOCATOR_SETTING, AllowedFiles, GUARD_PRIORITY, LAUNCH, LOWEST_PRIORITY, STAGE_ARGUMENT,
    YIELDING_PRIORITY, allowed_files, threads_of_user,
};
use super::uids::{self, ReservedUid, UidPool};
use super::wire::{self, AgentPlan, FormKind, LimitsPlan, Plan, Ready, StageMessage};
use super::{Form, Isolation, IsolationError, IsolationOptions, Limits, Sandbox};

/// Maximum time to create a sandbox.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Default `PATH` of programs, which follows the folders of [`IsolationOptions::path_prefix`].
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
/// Margin of `RLIMIT_NPROC` for processes that the same user may start outside of the sandbox.
const PROCESSES_OF_OTHERS: u64 = 1_024;
/// First kernel version that counts processes by user namespace instead of by user alone.
const COUNTED_BY_NAMESPACE_SINCE: (u32, u32) = (5, 14);

/// True if this process and its children may raise their priority. Tested by raising the priority of a short-lived thread,
/// which doesn't affect other threads. Looking at the capabilities isn't enough: one that the process holds only in a user
/// namespace doesn't allow it.
static MAY_RAISE_PRIORITY: LazyLock<bool> = LazyLock::new(|| {
    let tried = std::thread::spawn(|| rustix::process::setpriority_process(None, GUARD_PRIORITY).is_ok());
    tried.join().unwrap_or(false)
});

/// Creates sandboxes of one form.
pub(crate) struct LocalIsolation {
    kind: FormKind,
    form: Form,
    options: IsolationOptions,
    instance: Arc<Instance>,
    uid_pool: Option<UidPool>,
    /// Programs may create local sockets.
    has_unix_sockets: bool,
}

impl LocalIsolation {
    /// Creates a trial sandbox to find out whether this machine allows the form. The error is one sentence.
    pub(crate) fn new(kind: FormKind, options: &IsolationOptions) -> Result<Self, String> {
        let uid_pool = uid_pool_for(kind, &options.folder)?;
        for shared in &options.shared {
            if !shared.inside.is_absolute() || shared.inside == Path::new("/") {
                return Err(format!("`{}` cannot be the path of a shared folder", shared.inside.display()));
            }
            if !shared.host.exists() {
                return Err(format!("the shared folder `{}` is missing", shared.host.display()));
            }
        }
        let needs_access_by_others = uid_pool.is_some() && kind == FormKind::Confined;
        let instance = Instance::new(&options.folder, needs_access_by_others)
            .map_err(|error| format!("cannot use the folder `{}`: {error}", options.folder.display()))?;
        let mut local = Self {
            kind,
            form: Form { name: kind.name(), holds: Vec::new(), lacks: Vec::new() },
            options: options.clone(),
            instance: Arc::new(instance),
            uid_pool,
            has_unix_sockets: false,
        };
        let trial = local.launch(&Limits::default(), false)?;
        local.has_unix_sockets = trial.ready.unix_sockets;
        local.form = super::form::describe(kind, &trial.ready, &local.host_facts());
        drop(trial.control);
        drop(trial.resources.close());
        Ok(local)
    }

    fn host_facts(&self) -> super::form::HostFacts {
        super::form::HostFacts {
            has_own_uid: self.uid_pool.is_some(),
            bounds_memory: self.instance.cgroups().bounds_memory(),
            bounds_processes: self.instance.cgroups().bounds_processes(),
            lowers_program_priority: self.lowers_program_priority(),
            allow_network: self.options.allow_network,
            moved_folders: self
                .options
                .shared
                .iter()
                .filter(|shared| self.kind == FormKind::Confined && shared.host != shared.inside)
                .map(|shared| shared.inside.clone())
                .collect(),
        }
    }

    /// Creates a sandbox and blocks until it is ready. `with_engine`: it has places for a container engine.
    pub(crate) fn launch(&self, limits: &Limits, with_engine: bool) -> Result<LaunchedSandbox, String> {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let context = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
        let reserved_uid = self
            .uid_pool
            .as_ref()
            .map(UidPool::take)
            .transpose()
            .map_err(context("no user for a sandbox is free"))?;
        let group =
            self.instance.cgroups().make(&id, limits).map_err(context("cannot create its cgroups"))?;
        let folder = self.instance.sandbox_folder(&id);
        let engine = with_engine.then(|| EngineFolders::below(&folder));
        let mut plan = self.plan(&id, limits, reserved_uid.as_ref(), &group, &folder, engine.as_ref());

        let (control, stage_end) =
            wire::socket_pair().map_err(|error| format!("cannot create a socket: {error}"))?;
        let pipe = || {
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
                .map_err(|error| format!("cannot create a pipe: {error}"))
        };
        let ((guard_end, host_pipe), (stderr, error_output)) = (pipe()?, pipe()?);
        let mut resources = SandboxResources {
            host_pipe: Some(host_pipe),
            child: None,
            stderr,
            reserved_uid,
            group,
            folder: None,
            _instance: self.instance.clone(),
        };
        let mut engine_place = None;
        if self.kind == FormKind::Confined || engine.is_some() {
            std::fs::DirBuilder::new()
                .mode(0o711)
                .create(&folder)
                .map_err(context("cannot create its folder"))?;
            resources.folder = Some(folder.clone());
        }
        if self.kind == FormKind::Confined {
            make_folders(&plan.agent, resources.reserved_uid.as_ref())
                .map_err(context("cannot create its folder"))?;
        }
        if let Some(engine) = &engine {
            let is_mounted = self
                .make_engine_folders(engine, limits, resources.reserved_uid.as_ref())
                .map_err(context("cannot create its folders for a container engine"))?;
            if self.kind == FormKind::Namespaces && is_mounted {
                plan.workspace = Some(engine.workspace.clone());
            }
            engine_place = Some(engine.place(self.kind, is_mounted));
        }
        // Both plans are sent before the stages start to read.
        let plan_files = wire::anonymous_json_file(&plan)
            .and_then(|first| Ok((first, wire::anonymous_json_file(&plan.agent)?)));
        let (first, second) = plan_files.map_err(context("cannot write the plan"))?;
        wire::send(control.as_fd(), &(), &[first.as_fd(), guard_end.as_fd()])
            .and_then(|()| wire::send(control.as_fd(), &(), &[second.as_fd()]))
            .map_err(|error| format!("cannot send the plan: {error}"))?;
        drop(guard_end);
        resources.child = Some(self.start(stage_end, error_output)?);
        match await_ready(&control) {
            Ok(ready) => {
                let folder = (self.kind == FormKind::Confined).then_some(folder);
                Ok(LaunchedSandbox { control, ready, folder, engine_place, resources })
            }
            Err(error) => {
                drop(control);
                Err(resources.close_failed().unwrap_or(error))
            }
        }
    }

    /// Starts the first stage with an environment that has nothing of this process.
    fn start(&self, control: OwnedFd, error_output: OwnedFd) -> Result<Child, String> {
        Command::new(&self.options.helper)
            .args([STAGE_ARGUMENT, LAUNCH])
            .env_clear()
            .env(ALLOCATOR_SETTING.0, ALLOCATOR_SETTING.1)
            .current_dir("/")
            .stdin(control)
            .stdout(Stdio::null())
            .stderr(error_output)
            .spawn()
            .map_err(|error| format!("cannot start the helper `{}`: {error}", self.options.helper.display()))
    }

    fn plan(
        &self,
        id: &str,
        limits: &Limits,
        reserved_uid: Option<&ReservedUid>,
        group: &Group,
        folder: &Path,
        engine: Option<&EngineFolders>,
    ) -> Plan {
        let cgroups = self.instance.cgroups();
        let uid = reserved_uid.map(ReservedUid::uid);
        let limits = LimitsPlan {
            memory_bytes: limits.memory_bytes,
            processes: limits.processes,
            disk_bytes: limits.disk_bytes,
            open_files: limits.open_files,
            memory_is_bounded: cgroups.bounds_memory(),
            // The kernel counts processes by user, and by user namespace.
            processes_are_bounded: cgroups.bounds_processes()
                || uid.is_some()
                || self.kind == FormKind::Namespaces,
        };
        let readable = self.options.shared.iter().map(|shared| shared.host.as_path());
        let files = allowed_files(self.kind, folder, readable, self.options.allow_network);
        let agent = AgentPlan {
            kind: self.kind,
            // In namespaces, the first stage already becomes the user, and creates the namespaces as that user.
            uid: uid.filter(|_| self.kind == FormKind::Confined),
            limits,
            processes_max: self.processes_max(&limits, uid),
            priority: self.priority(uid),
            env: self.environment(id, &files, engine),
            home: files.home,
            read: files.read,
            write: files.write,
            devices: files.devices,
            sockets: engine.map(|engine| self.sockets_inside(engine)).into_iter().collect(),
            allow_network: self.options.allow_network,
        };
        Plan {
            kind: self.kind,
            uid,
            cgroup_procs: group.cgroup_procs(),
            staging: self.instance.staging(),
            folder: (self.kind == FormKind::Confined).then(|| folder.to_owned()),
            workspace: None,
            sockets: engine.map(|engine| engine.sockets.clone()),
            shared: self.options.shared.clone(),
            allow_network: self.options.allow_network,
            limits,
            agent,
        }
    }

    /// Returns true if the priority of programs must be lowered because the guard can't raise its own.
    fn lowers_program_priority(&self) -> bool {
        !self.instance.cgroups().bounds_memory() && !*MAY_RAISE_PRIORITY
    }

    /// Returns the priority of programs: this process's own, or a lower one.
    fn priority(&self, uid: Option<u32>) -> i32 {
        let own = rustix::process::getpriority_process(None).unwrap_or_default();
        match (self.lowers_program_priority(), uid) {
            (false, _) => own,
            // A guard with another uid couldn't lower it further once there are many processes.
            (true, Some(_)) if self.kind == FormKind::Confined => LOWEST_PRIORITY,
            (true, _) => own.max(YIELDING_PRIORITY),
        }
    }

    /// Returns `RLIMIT_NPROC`. The kernel counts all processes of a user for it, including those outside of a sandbox
    /// that has neither a user nor a user namespace of its own.
    fn processes_max(&self, limits: &LimitsPlan, uid: Option<u32>) -> u64 {
        let own = limits.processes.saturating_add(OWN_PROCESSES);
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let is_counted_apart = uid.is_some()
            || (self.kind == FormKind::Namespaces && version(&release) >= COUNTED_BY_NAMESPACE_SINCE);
        if is_counted_apart {
            return own;
        }
        // Leaves a margin for what the user and other sandboxes start later; the guard counts the processes of this
        // sandbox.
        own.saturating_add(threads_of_user(nix::unistd::Uid::current().as_raw()))
            .saturating_add(PROCESSES_OF_OTHERS)
    }

    /// Creates the folders for a container engine. Returns true if the working folder is a file system of its own.
    fn make_engine_folders(
        &self,
        engine: &EngineFolders,
        limits: &Limits,
        reserved_uid: Option<&ReservedUid>,
    ) -> std::io::Result<bool> {
        let uid = reserved_uid.map(ReservedUid::uid);
        engine.make_sockets(uid)?;
        if self.kind == FormKind::Namespaces {
            std::fs::DirBuilder::new().mode(0o700).create(&engine.workspace)?;
        }
        engine.mount_workspace(uid, limits)
    }

    /// Returns the folder of the engine's socket as programs see it.
    fn sockets_inside(&self, engine: &EngineFolders) -> PathBuf {
        match self.kind {
            FormKind::Namespaces => SOCKETS_INSIDE.into(),
            FormKind::Confined => engine.sockets.clone(),
        }
    }

    fn environment(
        &self,
        id: &str,
        files: &AllowedFiles,
        engine: Option<&EngineFolders>,
    ) -> BTreeMap<String, String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut path = OsString::new();
        for folder in &self.options.path_prefix {
            path.push(self.path_inside(folder));
            path.push(":");
        }
        path.push(PATH);
        let mut environment = BTreeMap::from([
            ("PATH".to_owned(), path.to_string_lossy().into_owned()),
            ("HOME".to_owned(), text(&files.home)),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("TMPDIR".to_owned(), text(&files.temporary)),
            ("SANDY_SANDBOX_ID".to_owned(), id.to_owned()),
            ("SANDY_ISOLATION".to_owned(), self.kind.name().to_owned()),
        ]);
        if let Some(engine) = engine {
            environment.insert("DOCKER_HOST".to_owned(), engine.address(self.kind));
            // The newer builder needs a connection whose content can't be checked.
            environment.insert("DOCKER_BUILDKIT".to_owned(), "0".to_owned());
        }
        for (name, inside) in &self.options.variables {
            environment.insert(name.clone(), text(&self.path_inside(inside)));
        }
        if let Some(shared) = self.options.shared.first() {
            environment.insert("SANDY_FILES".to_owned(), text(&self.path_inside(&shared.inside)));
        }
        environment
    }

    /// Returns where programs find a path: without a mount namespace, shared folders are at their path on the machine.
    fn path_inside(&self, inside: &Path) -> PathBuf {
        if self.kind == FormKind::Namespaces {
            return inside.to_owned();
        }
        self.options
            .shared
            .iter()
            .find_map(|shared| Some(shared.host.join(inside.strip_prefix(&shared.inside).ok()?)))
            .unwrap_or_else(|| inside.to_owned())
    }
}

#[async_trait]
impl Isolation for Arc<LocalIsolation> {
    fn form(&self) -> &Form {
        &self.form
    }

    async fn create(&self, limits: &Limits) -> Result<Arc<dyn Sandbox>, IsolationError> {
        launch(self, limits, false).await
    }

    async fn create_with_engine(&self, limits: &Limits) -> Result<Arc<dyn Sandbox>, IsolationError> {
        if !self.has_unix_sockets {
            return Err(IsolationError::NoEngine(
                "programs in them cannot create sockets, which needs Landlock 9, or a host that runs as root"
                    .to_owned(),
            ));
        }
        // All ids have the same length.
        let folder = self.instance.sandbox_folder(&uuid::Uuid::nil().simple().to_string());
        if !EngineFolders::below(&folder).has_usable_address(self.kind) {
            let why = "the path of the host's folder is too long for a socket; choose a shorter --data-dir";
            return Err(IsolationError::NoEngine(why.to_owned()));
        }
        launch(self, limits, true).await
    }
}

async fn launch(
    local: &Arc<LocalIsolation>,
    limits: &Limits,
    with_engine: bool,
) -> Result<Arc<dyn Sandbox>, IsolationError> {
    let (local, limits) = (local.clone(), limits.clone());
    // If the caller stops waiting, the result is dropped, which ends the sandbox.
    let launched = tokio::task::spawn_blocking(move || local.launch(&limits, with_engine))
        .await
        .map_err(|error| IsolationError::Failed(error.to_string()))?
        .map_err(IsolationError::Failed)?;
    Ok(Arc::new(LocalSandbox::new(launched).map_err(|error| IsolationError::Failed(error.to_string()))?))
}

/// Returns the pool of users for sandboxes, which only root can assign; otherwise programs run as the host's user.
fn uid_pool_for(kind: FormKind, folder: &Path) -> Result<Option<UidPool>, String> {
    if !nix::unistd::Uid::effective().is_root() {
        return Ok(None);
    }
    match UidPool::find(folder).map_err(|error| format!("cannot assign users to sandboxes: {error}"))? {
        Some(uid_pool) => Ok(Some(uid_pool)),
        // Even without a spare uid, programs in namespaces aren't root on the machine, because this host is root only in
        // its own user namespace.
        None if kind == FormKind::Namespaces && uids::is_root_only_in_namespace() => Ok(None),
        None => {
            Err("the host runs as root, and its user namespace has no spare uids for sandboxes".to_owned())
        }
    }
}

/// Waits for the second stage's first message.
fn await_ready(control: &OwnedFd) -> Result<Ready, String> {
    match wire::wait_readable(control.as_fd(), START_TIMEOUT) {
        Ok(true) => {}
        Ok(false) => return Err("the sandbox was not ready in time".to_owned()),
        Err(error) => return Err(format!("cannot wait for the sandbox: {error}")),
    }
    match wire::receive::<StageMessage>(control.as_fd()) {
        Ok(Some(received)) => match received.message {
            StageMessage::Ready(ready) => Ok(ready),
            _ => Err("the sandbox sent an unexpected first message".to_owned()),
        },
        Ok(None) => Err("the sandbox exited without a message".to_owned()),
        Err(error) => Err(format!("cannot read the first message of the sandbox: {error}")),
    }
}

fn make_folders(agent: &AgentPlan, reserved_uid: Option<&ReservedUid>) -> std::io::Result<()> {
    for path in &agent.write {
        std::fs::DirBuilder::new().mode(0o700).create(path)?;
        if let Some(reserved_uid) = reserved_uid {
            std::os::unix::fs::chown(path, Some(reserved_uid.uid()), Some(reserved_uid.uid()))?;
        }
    }
    Ok(())
}

/// Returns the major and minor version of a kernel release; zeros if it can't be parsed.
fn version(release: &str) -> (u32, u32) {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or_default());
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_compared_by_number() {
        assert_eq!(version("6.18.44-fc-v657\n"), (6, 18));
        assert!(
            version("5.4.0") < COUNTED_BY_NAMESPACE_SINCE && version("5.15.0") > COUNTED_BY_NAMESPACE_SINCE
        );
        assert_eq!(version(""), (0, 0));
    }
}
