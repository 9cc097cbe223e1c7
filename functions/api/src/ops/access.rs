//! The operator's list of callers: access tokens, and callers' own keys that have permissions.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bench_domain::{Code, Secret, Timestamp};
use bench_state::access::{AccessEntry, AccessKind, ENTRIES_MAX, is_access_token, new_access_token};
use bench_web::body::read_object;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Path};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;

const NAME_CHARS_MAX: usize = 100;
const KEY_CHARS_MAX: usize = 4_096;
/// Minimum and maximum lifetime of an entry, in seconds.
const EXPIRES_MIN_S: u64 = 60;
const EXPIRES_MAX_S: u64 = 10 * 366 * 24 * 3_600;

/// A caller that the operator has listed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccessEntry)]
pub(crate) struct EntryView {
    /// Id, for revoking.
    id: String,
    /// Name that the operator chose.
    name: String,
    /// `token`, or `key` for a caller's own key at a provider.
    kind: &'static str,
    /// Whether runs of the oracle may be ordered.
    oracle: bool,
    /// Whether runs of gated benchmarks may be ordered.
    gated: bool,
    /// Time of creation.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// Time from which the entry is void; null if there is none.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// Whether that time has come.
    expired: bool,
}

/// A new entry.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewEntryView {
    #[serde(flatten)]
    entry: EntryView,
    /// The access token. It is shown this once; the server stores its keyed hash only. Null for a caller's own key.
    token: Option<String>,
}

/// The operator's list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EntriesView {
    /// The entries, oldest first.
    entries: Vec<EntryView>,
}

/// Confirmation of a revocation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevokedView {
    /// Always true: a failure is an error.
    success: bool,
    /// Id of the entry.
    id: String,
}

/// The body of a request for an entry.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccessOrder)]
#[allow(dead_code)] // describes what `read` reads
pub(crate) struct EntryBody {
    /// A name for it, unique in the list.
    #[schema(max_length = 100)]
    name: String,
    /// Permission to order runs of the oracle.
    #[schema(default = false)]
    oracle: Option<bool>,
    /// Permission to order runs of gated benchmarks.
    #[schema(default = false)]
    gated: Option<bool>,
    /// Seconds from now until the entry is void; none means never.
    #[schema(minimum = 60)]
    expires_in_seconds: Option<u64>,
    /// A caller's own key at a provider, to be listed instead of a new token. Only its keyed hash is stored.
    key: Option<String>,
}

impl EntryView {
    fn new(entry: &AccessEntry, now: Timestamp) -> Self {
        Self {
            id: entry.id().to_owned(),
            name: entry.name.clone(),
            kind: entry.kind.as_str(),
            oracle: entry.oracle,
            gated: entry.gated,
            created_at: entry.created_at,
            expires_at: entry.ends_at,
            expired: !entry.is_valid(now),
        }
    }
}

/// Lists the callers that the operator has listed.
#[utoipa::path(
    get, path = "/api/admin/access", tag = "access", security((), ("admin" = [])),
    responses((status = 200, body = EntriesView), (status = 401, body = ErrorBody)),
)]
pub(crate) async fn get_entries(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
) -> Result<Json<EntriesView>, ApiError> {
    api.access.caller(&headers)?.must_operate()?;
    let now = bench_clock::now();
    let entries = api.state.list_access().await?;
    Ok(Json(EntriesView { entries: entries.iter().map(|entry| EntryView::new(entry, now)).collect() }))
}

/// Issues an access token, or lists a caller's own key.
///
/// A token orders runs on the operator's keys, as `Authorization: Bearer TOKEN`. It is never sent to a provider.
#[utoipa::path(
    post, path = "/api/admin/access", tag = "access", security((), ("admin" = [])), request_body = EntryBody,
    responses(
        (status = 201, body = NewEntryView),
        (status = 401, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "The name or the key is listed already, or the list is full"),
        (status = 422, body = ErrorBody, description = "The body is not as it should be"),
    ),
)]
pub(crate) async fn post_entry(State(api): State<Arc<Api>>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    api.access.caller(&parts.headers)?.must_operate()?;
    let mut fields = read_object(&parts.headers, body).await?;
    let name = fields.required_text("name", NAME_CHARS_MAX);
    let name = name.and_then(|name| fields.checked("name", checked_name(&name))).unwrap_or_default();
    let (oracle, gated) = (fields.flag("oracle"), fields.flag("gated"));
    let expires_in = fields.maybe_integer("expires_in_seconds", EXPIRES_MIN_S, EXPIRES_MAX_S);
    // The error omits the value, which may be a key after all.
    let not_a_key = || {
        ApiError::new(
            Code::InvalidRequest,
            "`key` must be a provider's key: visible ASCII characters only, and not an access token",
        )
    };
    let key = fields.maybe_text("key", KEY_CHARS_MAX);
    let key = key.map(|key| Secret::new(key).filter(is_key).ok_or_else(not_a_key)).transpose()?;
    fields.refuse_unknown(&["name", "oracle", "gated", "expires_in_seconds", "key"]);
    fields.finish()?;
    let listed = api.state.list_access().await?;
    if listed.iter().any(|entry| entry.name == name) {
        return Err(ApiError::new(
            Code::AccessEntryExists,
            format!("an entry named `{name}` exists; revoke it first or choose another name"),
        ));
    }
    if listed.len() >= ENTRIES_MAX {
        return Err(ApiError::new(
            Code::AccessEntriesLimit,
            format!("there are {ENTRIES_MAX} entries, the maximum; revoke one first"),
        ));
    }
    let (kind, secret) = match key {
        Some(key) => (AccessKind::Key, key),
        None => (AccessKind::Token, new_access_token()?),
    };
    let now = bench_clock::now();
    let entry = AccessEntry {
        owner: api.access.owner_key.owner_of(&secret),
        name,
        kind,
        oracle,
        gated,
        created_at: now,
        ends_at: expires_in.map(|seconds| now.plus(Duration::from_secs(seconds))),
    };
    if !api.state.add_access(&entry).await? {
        return Err(ApiError::new(
            Code::AccessEntryExists,
            "this key is listed already; revoke its entry first",
        ));
    }
    tracing::info!(access.id = entry.id(), access.kind = kind.as_str(), "Listed a caller");
    let token = (kind == AccessKind::Token).then(|| secret.expose().to_owned());
    let view = NewEntryView { entry: EntryView::new(&entry, now), token };
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// Trims and checks an entry's name.
fn checked_name(name: &str) -> Result<String, String> {
    let name = name.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(format!("a name must have 1 to {NAME_CHARS_MAX} characters and no control characters"));
    }
    Ok(name.to_owned())
}

fn is_key(key: &Secret) -> bool {
    key.expose().bytes().all(|byte| byte.is_ascii_graphic()) && !is_access_token(key)
}

/// Revokes an entry, at once. Its holder's runs stay, and go on.
#[utoipa::path(
    delete, path = "/api/admin/access/{entry}", tag = "access", security((), ("admin" = [])),
    params(("entry" = String, Path, description = "The entry's id or its name")),
    responses(
        (status = 200, body = RevokedView),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "There is no such entry"),
    ),
)]
pub(crate) async fn delete_entry(
    State(api): State<Arc<Api>>,
    Path(wanted): Path<String>,
    headers: HeaderMap,
) -> Result<Json<RevokedView>, ApiError> {
    api.access.caller(&headers)?.must_operate()?;
    let entries = api.state.list_access().await?;
    let by = |matches: &dyn Fn(&AccessEntry) -> bool| entries.iter().find(|entry| matches(entry));
    let found = by(&|entry| entry.id() == wanted).or_else(|| by(&|entry| entry.name == wanted));
    let entry = found.ok_or_else(|| {
        ApiError::new(Code::AccessEntryNotFound, "access entry not found; `GET /api/admin/access` lists them")
    })?;
    api.state.revoke_access(&entry.owner).await?;
    tracing::info!(access.id = entry.id(), "Revoked a caller's entry");
    Ok(Json(RevokedView { success: true, id: entry.id().to_owned() }))
}
