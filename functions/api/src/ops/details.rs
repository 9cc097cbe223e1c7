//! Permission to see details in the operators' views.

use bench_web::Identity;

use crate::Api;

/// Returns true if the caller may see single workers, runs and sandboxes: admins, and all callers of a server
/// that is bound to loopback.
pub(super) fn may_see_details(api: &Api, identity: &Identity) -> bool {
    api.config.server.local || identity.reader().is_admin()
}
