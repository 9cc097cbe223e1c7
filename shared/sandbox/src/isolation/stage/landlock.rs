//! Landlock: restricts access of this process and its children to files, the network and other processes.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope, path_beneath_rules,
};

use super::Context;
use crate::isolation::wire::AgentPlan;

/// Version of the interface that this code is written for; with an older kernel it uses everything that is available.
const KNOWN: ABI = ABI::V9;

/// First version that restricts truncation of files, signals and abstract sockets. Sandboxes without namespaces need these
/// restrictions.
pub(super) const SCOPES_SINCE: u32 = 6;
/// First version that restricts sockets in the file system.
pub(super) const UNIX_SOCKETS_SINCE: u32 = 9;

/// Device that programs may map.
const ZERO: &str = "/dev/zero";

/// Restricts this process irrevocably. Returns the version of the interface, or 0 if the kernel has none.
pub(super) fn restrict(plan: &AgentPlan) -> Result<u32, String> {
    const CONTEXT: &str = "cannot apply Landlock";
    let everything = AccessFs::from_all(KNOWN);
    let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
    let write = everything & !(AccessFs::MakeBlock | AccessFs::MakeChar | AccessFs::IoctlDev);
    let device: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::WriteFile;
    // A shared writable mapping of `/dev/zero` is memory that belongs to no process and that only a cgroup counts.
    let (read_only, devices): (Vec<&PathBuf>, Vec<&PathBuf>) = plan
        .devices
        .iter()
        .partition(|device| !plan.limits.memory_is_bounded && device.as_path() == Path::new(ZERO));

    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(everything)
        .context(CONTEXT)?
        .scope(Scope::from_all(KNOWN))
        .context(CONTEXT)?;
    // In namespaces, the network is the sandbox's own, and its loopback interface is for its programs.
    if plan.kind == crate::isolation::wire::FormKind::Confined && !plan.allow_network {
        ruleset = ruleset.handle_access(AccessNet::from_all(KNOWN)).context(CONTEXT)?;
    }
    let status = ruleset
        .create()
        .context(CONTEXT)?
        .add_rules(path_beneath_rules(&plan.read, read))
        .context(CONTEXT)?
        .add_rules(path_beneath_rules(devices, device))
        .context(CONTEXT)?
        .add_rules(path_beneath_rules(read_only, AccessFs::ReadFile))
        .context(CONTEXT)?
        .add_rules(path_beneath_rules(&plan.sockets, AccessFs::ReadDir | AccessFs::ResolveUnix))
        .context(CONTEXT)?
        .add_rules(path_beneath_rules(&plan.write, write))
        .context(CONTEXT)?
        .restrict_self()
        .context(CONTEXT)?;
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
        _ => 0,
    })
}
