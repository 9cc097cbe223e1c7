//! Landlock: what the kernel lets this process and its children do with files, the network and other processes.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope, path_beneath_rules,
};

use super::Doing;
use crate::isolation::wire::AgentPlan;

/// The interface this is written for; of an older one everything is used that it has.
const KNOWN: ABI = ABI::V9;

/// From this version on, what programs without namespaces do to files of their own user is bounded (truncation), and so
/// are signals and abstract sockets.
pub(super) const SCOPES_SINCE: u32 = 6;
/// From this version on, sockets in the file system can only be reached where rules say so.
pub(super) const UNIX_SOCKETS_SINCE: u32 = 9;

/// Endless zeros.
const ZERO: &str = "/dev/zero";

/// Restricts this process for good. Gives the version of the interface, or 0 where the kernel has none.
pub(super) fn restrict(plan: &AgentPlan) -> Result<u32, String> {
    const DOING: &str = "landlock cannot be applied";
    let everything = AccessFs::from_all(KNOWN);
    let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
    let write = everything & !(AccessFs::MakeBlock | AccessFs::MakeChar | AccessFs::IoctlDev);
    let device: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::WriteFile;
    // What is mapped of `/dev/zero` to be written together is memory of no process, which only a cgroup counts.
    let (read_only, devices): (Vec<&PathBuf>, Vec<&PathBuf>) = plan
        .devices
        .iter()
        .partition(|device| !plan.limits.memory_is_bounded && device.as_path() == Path::new(ZERO));

    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(everything)
        .doing(DOING)?
        .scope(Scope::from_all(KNOWN))
        .doing(DOING)?;
    // In namespaces the network is the sandbox's own, and its loopback is for its programs.
    if plan.kind == crate::isolation::wire::Kind::Confined && !plan.allow_network {
        ruleset = ruleset.handle_access(AccessNet::from_all(KNOWN)).doing(DOING)?;
    }
    let status = ruleset
        .create()
        .doing(DOING)?
        .add_rules(path_beneath_rules(&plan.read, read))
        .doing(DOING)?
        .add_rules(path_beneath_rules(devices, device))
        .doing(DOING)?
        .add_rules(path_beneath_rules(read_only, AccessFs::ReadFile))
        .doing(DOING)?
        .add_rules(path_beneath_rules(&plan.write, write))
        .doing(DOING)?
        .restrict_self()
        .doing(DOING)?;
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
        _ => 0,
    })
}
