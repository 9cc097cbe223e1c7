//! Scripts for the repository in an agent's container: preparation before the agent, and collection of its change.

use std::time::Duration;

use super::entry::APP;
use super::row::Instance;
use crate::scorers::instance::{CHANGE_TOO_LARGE_EXIT, InstanceCollection};

/// Maximum size of a change in bytes.
const CHANGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum size of all changed files in bytes.
const FILES_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Maximum time of a collection.
const COLLECTION_TIME_MAX: Duration = Duration::from_secs(15 * 60);
/// Folder for the objects of the base commit and the change, outside of the repository.
const STORE: &str = "/var/lib/bench-instance";
/// File with the change.
const CHANGE: &str = "/var/lib/bench-instance/change.diff";

const PREPARATION: &str = include_str!("prepare.sh");
const COLLECTION: &str = include_str!("collect.sh");

/// Returns the preparation of a repository.
pub(super) fn preparation(instance: &Instance) -> String {
    with_variables(PREPARATION, instance)
}

/// Returns the collection of a repository's change.
pub(super) fn collection(instance: &Instance) -> InstanceCollection {
    InstanceCollection {
        script: with_variables(COLLECTION, instance),
        file: CHANGE,
        bytes_max: CHANGE_BYTES_MAX,
        time_limit: COLLECTION_TIME_MAX,
    }
}

/// Puts the variables of a script in front of it. None of their values needs quotes.
fn with_variables(script: &str, instance: &Instance) -> String {
    format!(
        "base={}\nfolder={APP}\nstore={STORE}\nchange_bytes_max={CHANGE_BYTES_MAX}\nfiles_bytes_max={FILES_BYTES_MAX}\n\
         too_large={CHANGE_TOO_LARGE_EXIT}\n{script}",
        instance.base_commit
    )
}
