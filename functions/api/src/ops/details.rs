//! Who sees more than sums.

use bench_web::Caller;
use http::HeaderMap;

use crate::Api;

/// Returns whether a caller sees single workers, runs and sandboxes: admins do, and everybody who reaches a server that
/// is bound to loopback.
pub(super) fn sees_details(api: &Api, headers: &HeaderMap) -> bool {
    api.config.server.local || api.access.reader(headers) == Caller::Admin
}
