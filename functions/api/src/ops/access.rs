//! The operator's list of callers: access tokens, callers' own keys and signed-in users that have permissions.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bench_domain::{Code, Secret, Timestamp};
use bench_state::access::{
    AccessEntry, AccessKind, ENTRIES_MAX, is_access_token, new_access_token, user_entry,
};
use bench_web::body::read_object;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Identity, Path};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;

const NAME_CHARS_MAX: usize = 100;
const KEY_CHARS_MAX: usize = 4_096;
const SUBJECT_CHARS_MAX: usize = 255;
/// Minimum and maximum lifetime of an entry, in seconds.
const EXPIRES_MIN_S: u64 = 60;
const EXPIRES_MAX_S: u64 = 10 * 366 * 24 * 3_600;

/// Entry of the operator's access list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccessEntry)]
pub(crate) struct EntryView {
    /// Id of the entry, for revoking it.
    id: String,
    /// Name that the operator chose.
    name: String,
    /// Kind: `token`, `key` for a caller's own provider key, or `user` for a signed-in user.
    kind: &'static str,
    /// Subject of the user; null for other kinds.
    subject: Option<String>,
    /// True if the caller may order runs of the oracle.
    oracle: bool,
    /// True if the caller may order runs of gated benchmarks.
    gated: bool,
    /// True if the caller may upload terminal tasks and order runs of them.
    tasks: bool,
    /// Time of creation.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// Time at which the entry expires; null if it never does.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// True if the entry has expired.
    expired: bool,
}

/// New entry of the access list, with its token.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewEntryView {
    #[serde(flatten)]
    entry: EntryView,
    /// The access token. It is shown only once, since the server stores only its keyed hash. Null for a caller's own
    /// key and for a user.
    token: Option<String>,
}

/// The operator's access list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EntriesView {
    /// Entries, oldest first.
    entries: Vec<EntryView>,
}

/// Confirmation of a revocation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevokedView {
    /// Always true: failures are errors.
    success: bool,
    /// Id of the revoked entry.
    id: String,
}

/// Order for an entry of the access list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccessOrder)]
#[allow(dead_code)] // describes what `read` reads
pub(crate) struct EntryBody {
    /// Name of the entry, unique in the list.
    #[schema(max_length = 100)]
    name: String,
    /// Allows runs of the oracle.
    #[schema(default = false)]
    oracle: Option<bool>,
    /// Allows runs of gated benchmarks.
    #[schema(default = false)]
    gated: Option<bool>,
    /// Allows uploads of terminal tasks and runs of them.
    #[schema(default = false)]
    tasks: Option<bool>,
    /// Seconds until the entry expires. Without it, the entry never does.
    #[schema(minimum = 60)]
    expires_in_seconds: Option<u64>,
    /// A caller's own provider key, to list it instead of issuing a token. The server stores only its keyed hash.
    key: Option<String>,
    /// Subject of a signed-in user, to list the user instead of issuing a token: the sign-in provider's name for the user,
    /// which `GET /api/auth/me` shows as the user's id.
    #[schema(max_length = 255)]
    user: Option<String>,
}

impl EntryView {
    fn new(entry: &AccessEntry, now: Timestamp) -> Self {
        Self {
            id: entry.id().to_owned(),
            name: entry.name.clone(),
            kind: entry.kind.as_str(),
            subject: entry.subject.clone(),
            oracle: entry.oracle,
            gated: entry.gated,
            tasks: entry.tasks,
            created_at: entry.created_at,
            expires_at: entry.ends_at,
            expired: !entry.is_valid(now),
        }
    }
}

/// Lists the access tokens, listed keys and listed users.
#[utoipa::path(
    get, path = "/api/admin/access", tag = "access", security((), ("admin" = []), ("session" = [])),
    responses((status = 200, body = EntriesView), (status = 401, body = ErrorBody)),
)]
pub(crate) async fn get_entries(
    State(api): State<Arc<Api>>,
    identity: Identity,
) -> Result<Json<EntriesView>, ApiError> {
    identity.caller()?.must_operate()?;
    let now = bench_clock::now();
    let entries = api.state.list_access().await?;
    Ok(Json(EntriesView { entries: entries.iter().map(|entry| EntryView::new(entry, now)).collect() }))
}

/// Issues an access token, or lists a caller's own key or a signed-in user.
///
/// Callers send a token as `Authorization: Bearer TOKEN`. It orders runs on the operator's keys and is never sent to
/// a provider.
#[utoipa::path(
    post, path = "/api/admin/access", tag = "access", security((), ("admin" = []), ("session" = [])), request_body = EntryBody,
    responses(
        (status = 201, body = NewEntryView),
        (status = 401, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "The name, the key or the user is listed already, or the list is full"),
        (status = 422, body = ErrorBody, description = "A field is invalid"),
    ),
)]
pub(crate) async fn post_entry(State(api): State<Arc<Api>>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    Identity::of(&parts).caller()?.must_operate()?;
    let mut fields = read_object(&parts.headers, body).await?;
    let name = fields.required_text("name", NAME_CHARS_MAX);
    let name = name.and_then(|name| fields.checked("name", checked_name(&name))).unwrap_or_default();
    let (oracle, gated, tasks) = (fields.flag("oracle"), fields.flag("gated"), fields.flag("tasks"));
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
    let user = fields.maybe_text("user", SUBJECT_CHARS_MAX);
    let user = user.and_then(|user| fields.checked("user", checked_subject(&user)));
    if user.is_some() && key.is_some() {
        fields.note_invalid("user", "send either `user` or `key`");
    }
    fields.refuse_unknown(&["name", "oracle", "gated", "tasks", "expires_in_seconds", "key", "user"]);
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
    let owner_of = |secret: &Secret| api.access.owner_key.owner_of(secret);
    let (kind, owner, token) = match (key, &user) {
        (_, Some(subject)) => (AccessKind::User, user_entry(subject), None),
        (Some(key), None) => (AccessKind::Key, owner_of(&key), None),
        (None, None) => {
            let token = new_access_token()?;
            (AccessKind::Token, owner_of(&token), Some(token.expose().to_owned()))
        }
    };
    let now = bench_clock::now();
    let entry = AccessEntry {
        owner,
        name,
        kind,
        subject: user,
        oracle,
        gated,
        tasks,
        created_at: now,
        ends_at: expires_in.map(|seconds| now.plus(Duration::from_secs(seconds))),
    };
    if !api.state.add_access(&entry).await? {
        return Err(ApiError::new(
            Code::AccessEntryExists,
            "this key or user is listed already; revoke the earlier entry first",
        ));
    }
    tracing::info!(access.id = entry.id(), access.kind = kind.as_str(), "Listed a caller");
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

/// Trims and checks a user's subject.
fn checked_subject(subject: &str) -> Result<String, String> {
    let subject = subject.trim();
    if subject.is_empty() || subject.chars().any(char::is_control) {
        return Err(format!(
            "a subject must have 1 to {SUBJECT_CHARS_MAX} characters and no control characters"
        ));
    }
    Ok(subject.to_owned())
}

fn is_key(key: &Secret) -> bool {
    key.expose().bytes().all(|byte| byte.is_ascii_graphic()) && !is_access_token(key)
}

/// Revokes an entry immediately. Runs of its holder stay and continue.
#[utoipa::path(
    delete, path = "/api/admin/access/{entry}", tag = "access", security((), ("admin" = []), ("session" = [])),
    params(("entry" = String, Path, description = "Id or name of the entry")),
    responses(
        (status = 200, body = RevokedView),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "The entry doesn't exist"),
    ),
)]
pub(crate) async fn delete_entry(
    State(api): State<Arc<Api>>,
    Path(wanted): Path<String>,
    identity: Identity,
) -> Result<Json<RevokedView>, ApiError> {
    identity.caller()?.must_operate()?;
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
