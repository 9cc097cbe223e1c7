//! Makes sandboxes on this machine.

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

use super::cell::Cell;
use super::cgroups::{Group, OWN_PROCESSES};
use super::instance::Instance;
use super::launched::Launched;
use super::sandbox::LocalSandbox;
use super::slots::{self, Slot, Slots};
use super::stage::{
    Files, GUARD_PRIORITY, LAUNCH, LOWEST_PRIORITY, STAGE_ARGUMENT, YIELDING_PRIORITY, files_of,
    threads_of_user,
};
use super::wire::{self, AgentPlan, Kind, LimitsPlan, Plan, Ready, Tell};
use super::{Form, Isolation, IsolationError, IsolationOptions, Limits, Sandbox};

/// A sandbox is made within this time, or not at all.
const START_MAX: Duration = Duration::from_secs(60);
/// Programs of the system, after those of the options.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
/// Processes that a user may have started after a sandbox was made without keeping it from starting its own.
const PROCESSES_OF_OTHERS: u64 = 1_024;
/// From this kernel on, processes are counted by user namespace and not by user alone.
const COUNTED_BY_NAMESPACE_SINCE: (u32, u32) = (5, 14);

/// Whether this process and its children may raise their priority. Tried in a thread, which has a priority of its own: a
/// capability may be one of a user namespace, which does not count.
static MAY_RAISE_PRIORITY: LazyLock<bool> = LazyLock::new(|| {
    let tried = std::thread::spawn(|| rustix::process::setpriority_process(None, GUARD_PRIORITY).is_ok());
    tried.join().unwrap_or(false)
});

/// Makes sandboxes of one form.
pub(crate) struct Local {
    kind: Kind,
    form: Form,
    options: IsolationOptions,
    instance: Arc<Instance>,
    slots: Option<Slots>,
}

impl Local {
    /// Tries the form by making a sandbox of it. The reason why it is not possible is one sentence.
    pub(crate) fn new(kind: Kind, options: &IsolationOptions) -> Result<Self, String> {
        let slots = slots_for(kind, &options.folder)?;
        for shared in &options.shared {
            if !shared.inside.is_absolute() || shared.inside == Path::new("/") {
                return Err(format!("{} is no place for a shared folder", shared.inside.display()));
            }
            if !shared.host.exists() {
                return Err(format!("the shared folder {} is missing", shared.host.display()));
            }
        }
        let others = slots.is_some() && kind == Kind::Confined;
        let instance = Instance::new(&options.folder, others)
            .map_err(|error| format!("the folder {} cannot be used: {error}", options.folder.display()))?;
        let mut local = Self {
            kind,
            form: Form { name: kind.name(), holds: Vec::new(), lacks: Vec::new() },
            options: options.clone(),
            instance: Arc::new(instance),
            slots,
        };
        let trial = local.launch(&Limits::default())?;
        local.form = super::form::describe(kind, &trial.ready, &local.facts());
        drop(trial.control);
        drop(trial.cell.close());
        Ok(local)
    }

    fn facts(&self) -> super::form::Facts {
        super::form::Facts {
            own_user: self.slots.is_some(),
            bounds_memory: self.instance.cgroups().bounds_memory(),
            bounds_processes: self.instance.cgroups().bounds_processes(),
            yields: self.yields(),
            allow_network: self.options.allow_network,
            moved: self
                .options
                .shared
                .iter()
                .filter(|shared| self.kind == Kind::Confined && shared.host != shared.inside)
                .map(|shared| shared.inside.clone())
                .collect(),
        }
    }

    /// Makes a sandbox; blocks until it is ready.
    pub(crate) fn launch(&self, limits: &Limits) -> Result<Launched, String> {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let doing = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
        let slot = self.slots.as_ref().map(Slots::take).transpose().map_err(doing("no user is free"))?;
        let group = self.instance.cgroups().make(&id, limits).map_err(doing("its cgroups cannot be made"))?;
        let folder = self.instance.folder_of(&id);
        let plan = self.plan(&id, limits, slot.as_ref(), &group, &folder);

        let (control, theirs) = wire::pair().map_err(|error| format!("no socket can be made: {error}"))?;
        let pipe = || {
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
                .map_err(|error| format!("no pipe can be made: {error}"))
        };
        let ((alive, life), (errors, complaints)) = (pipe()?, pipe()?);
        let mut cell = Cell {
            life: Some(life),
            child: None,
            errors,
            slot,
            group,
            folder: None,
            _instance: self.instance.clone(),
        };
        if self.kind == Kind::Confined {
            make_folders(&folder, &plan.agent, cell.slot.as_ref())
                .map_err(doing("its folder cannot be made"))?;
            cell.folder = Some(folder);
        }
        // Both plans are waiting when the stages begin to read.
        let texts =
            wire::anonymous_json(&plan).and_then(|first| Ok((first, wire::anonymous_json(&plan.agent)?)));
        let (first, second) = texts.map_err(doing("the plan cannot be written"))?;
        wire::send(control.as_fd(), &(), &[first.as_fd(), alive.as_fd()])
            .and_then(|()| wire::send(control.as_fd(), &(), &[second.as_fd()]))
            .map_err(|error| format!("the plan cannot be sent: {error}"))?;
        drop(alive);
        cell.child = Some(self.start(theirs, complaints)?);
        match await_ready(&control) {
            Ok(ready) => Ok(Launched { control, ready, cell }),
            Err(silence) => {
                drop(control);
                Err(cell.close_failed().unwrap_or(silence))
            }
        }
    }

    /// Starts the first stage. Nothing of this process' environment goes along.
    fn start(&self, control: OwnedFd, complaints: OwnedFd) -> Result<Child, String> {
        Command::new(&self.options.helper)
            .args([STAGE_ARGUMENT, LAUNCH])
            .env_clear()
            .current_dir("/")
            .stdin(control)
            .stdout(Stdio::null())
            .stderr(complaints)
            .spawn()
            .map_err(|error| {
                format!("the helper {} cannot be started: {error}", self.options.helper.display())
            })
    }

    fn plan(&self, id: &str, limits: &Limits, slot: Option<&Slot>, group: &Group, folder: &Path) -> Plan {
        let cgroups = self.instance.cgroups();
        let uid = slot.map(Slot::uid);
        let limits = LimitsPlan {
            memory_bytes: limits.memory_bytes,
            processes: limits.processes,
            disk_bytes: limits.disk_bytes,
            open_files: limits.open_files,
            memory_is_bounded: cgroups.bounds_memory(),
            // The kernel counts by user, and by user namespace.
            processes_are_bounded: cgroups.bounds_processes()
                || uid.is_some()
                || self.kind == Kind::Namespaces,
        };
        let readable = self.options.shared.iter().map(|shared| shared.host.as_path());
        let files = files_of(self.kind, folder, readable, self.options.allow_network);
        let agent = AgentPlan {
            kind: self.kind,
            // In namespaces the first stage becomes the user: they are made by it.
            uid: uid.filter(|_| self.kind == Kind::Confined),
            limits,
            processes_max: self.processes_max(&limits, uid),
            priority: self.priority(uid),
            env: self.environment(id, &files),
            home: files.home,
            read: files.read,
            write: files.write,
            devices: files.devices,
            allow_network: self.options.allow_network,
        };
        Plan {
            kind: self.kind,
            uid,
            joins: group.joins(),
            staging: self.instance.staging(),
            folder: (self.kind == Kind::Confined).then(|| folder.to_owned()),
            shared: self.options.shared.clone(),
            allow_network: self.options.allow_network,
            limits,
            agent,
        }
    }

    /// Whether programs must come after the guard, and it can't come before them.
    fn yields(&self) -> bool {
        !self.instance.cgroups().bounds_memory() && !*MAY_RAISE_PRIORITY
    }

    /// Priority of programs: this process' own, or less.
    fn priority(&self, uid: Option<u32>) -> i32 {
        let own = rustix::process::getpriority_process(None).unwrap_or_default();
        match (self.yields(), uid) {
            (false, _) => own,
            // A guard that is another user could not lower it further, once there are many.
            (true, Some(_)) if self.kind == Kind::Confined => LOWEST_PRIORITY,
            (true, _) => own.max(YIELDING_PRIORITY),
        }
    }

    /// `RLIMIT_NPROC`, for which the kernel counts all processes of a user: also those outside of the sandbox, where it
    /// has no user or user namespace of its own.
    fn processes_max(&self, limits: &LimitsPlan, uid: Option<u32>) -> u64 {
        let own = limits.processes.saturating_add(OWN_PROCESSES);
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let is_counted_apart = uid.is_some()
            || (self.kind == Kind::Namespaces && version(&release) >= COUNTED_BY_NAMESPACE_SINCE);
        if is_counted_apart {
            return own;
        }
        // Room for what the user and other sandboxes start later; the guard counts what is this sandbox's.
        own.saturating_add(threads_of_user(nix::unistd::Uid::current().as_raw()))
            .saturating_add(PROCESSES_OF_OTHERS)
    }

    fn environment(&self, id: &str, files: &Files) -> BTreeMap<String, String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut path = OsString::new();
        for folder in &self.options.path_prefix {
            path.push(self.seen(folder));
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
        if let Some(shared) = self.options.shared.first() {
            environment.insert("SANDY_FILES".to_owned(), text(&self.seen(&shared.inside)));
        }
        environment
    }

    /// Where a path inside is found: without a mount namespace, shared folders are where they are.
    fn seen(&self, inside: &Path) -> PathBuf {
        if self.kind == Kind::Namespaces {
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
impl Isolation for Arc<Local> {
    fn form(&self) -> &Form {
        &self.form
    }

    async fn create(&self, limits: &Limits) -> Result<Arc<dyn Sandbox>, IsolationError> {
        let (local, limits) = (self.clone(), limits.clone());
        // When nobody waits any more, what was made is dropped, and with it the sandbox.
        let launched = tokio::task::spawn_blocking(move || local.launch(&limits))
            .await
            .map_err(|error| IsolationError::Failed(error.to_string()))?
            .map_err(IsolationError::Failed)?;
        Ok(Arc::new(LocalSandbox::new(launched).map_err(|error| IsolationError::Failed(error.to_string()))?))
    }
}

/// Users for sandboxes, which only root can give out; without them programs are the host's user.
fn slots_for(kind: Kind, folder: &Path) -> Result<Option<Slots>, String> {
    if !nix::unistd::Uid::effective().is_root() {
        return Ok(None);
    }
    match Slots::find(folder).map_err(|error| format!("users for sandboxes cannot be given out: {error}"))? {
        Some(slots) => Ok(Some(slots)),
        // In namespaces of their own programs are not even root by name.
        None if kind == Kind::Namespaces && slots::is_root_by_map() => Ok(None),
        None => Err("the host is root and its user namespace has no users to spare for sandboxes".to_owned()),
    }
}

/// The second stage's first words; otherwise that there were none.
fn await_ready(control: &OwnedFd) -> Result<Ready, String> {
    match wire::wait_readable(control.as_fd(), START_MAX) {
        Ok(true) => {}
        Ok(false) => return Err("it was not ready in time".to_owned()),
        Err(error) => return Err(format!("it cannot be waited for: {error}")),
    }
    match wire::receive::<Tell>(control.as_fd()) {
        Ok(Some(parcel)) => match parcel.message {
            Tell::Ready(ready) => Ok(ready),
            _ => Err("its first word is not understood".to_owned()),
        },
        Ok(None) => Err("it ended without a word".to_owned()),
        Err(error) => Err(format!("its first word is not understood: {error}")),
    }
}

fn make_folders(folder: &Path, agent: &AgentPlan, slot: Option<&Slot>) -> std::io::Result<()> {
    std::fs::DirBuilder::new().mode(0o711).create(folder)?;
    for path in &agent.write {
        std::fs::DirBuilder::new().mode(0o700).create(path)?;
        if let Some(slot) = slot {
            std::os::unix::fs::chown(path, Some(slot.uid()), Some(slot.uid()))?;
        }
    }
    Ok(())
}

/// Major and minor number of a kernel's release; zeros where there are none.
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
