//! Identifies callers and decides what they may change.
//!
//! Anyone may read what isn't private. A run belongs to its maker: a signed-in user, the holder of a key, identified by the
//! key's keyed hash, or the person at this machine if the server is bound to loopback ([`Access::local`]).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use bench_domain::run::Owner;
use bench_domain::{Code, RunSpec, Secret, SessionId, Visibility};
use bench_state::access::{admin_subjects, is_access_token};
use bench_state::credentials::OwnerKey;
use http::{HeaderMap, HeaderValue, header};
use subtle::ConstantTimeEq;

use crate::ApiError;

/// Header with the operator's secret.
pub const ADMIN_HEADER: &str = "x-admin-secret";
/// Header with the caller's own key for the judge.
pub const JUDGE_HEADER: &str = "x-judge-authorization";
/// Header with the caller's own key for the user model.
pub const USER_HEADER: &str = "x-user-authorization";
const WRONG_ADMIN_SECRET: &str = "Invalid admin secret";
/// Maximum length of a caller's key, in bytes.
const KEY_BYTES_MAX: usize = 4_096;

/// Identifies callers.
///
/// The holder of an access token is [`Caller::Key`], like the holder of a provider's key; [`crate::Guard`]
/// lets only requests with a valid token pass.
#[derive(Clone)]
pub struct Access {
    /// True if the server is bound to loopback: then a caller without a key is the person at this machine.
    pub local: bool,
    /// The operator's secret; without one, no caller has it.
    pub admin_secret: Option<String>,
    /// Subjects of users who are admins.
    pub admin_subjects: BTreeSet<String>,
    /// Origin of this server's own pages, such as `https://bench.example`. A server that is bound to loopback also has the
    /// origin of its address.
    pub own_origin: Option<String>,
    /// Hashes callers' keys into owner names.
    pub owner_key: Arc<OwnerKey>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("local", &self.local).finish_non_exhaustive()
    }
}

/// A caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// The operator.
    Admin,
    /// The person at this machine.
    Local,
    /// The holder of a key.
    Key {
        /// Keyed hash of the key.
        owner: String,
        /// True if the key was sent to a server that is bound to loopback. Without the key, the caller would
        /// be [`Caller::Local`].
        local: bool,
    },
    /// A signed-in user.
    User {
        /// The sign-in provider's name for the user, which never changes.
        subject: String,
        /// Name to show to the user.
        name: String,
        /// Session of the request.
        session: SessionId,
        /// True if the session may call models on the user's account.
        has_invoke_scope: bool,
        /// True if the user is one of the operator's admins.
        is_admin: bool,
        /// True if the server is bound to loopback. Without the session, the caller would be [`Caller::Local`].
        local: bool,
    },
    /// A caller without credentials.
    Anonymous,
}

impl Access {
    /// Creates the rules of a server without admins among its users.
    pub const fn new(local: bool, admin_secret: Option<String>, owner_key: Arc<OwnerKey>) -> Self {
        Self { local, admin_secret, admin_subjects: BTreeSet::new(), own_origin: None, owner_key }
    }

    /// Adds the settings of signed-in users: `ADMIN_SUBJECTS`, and the origin of `FRONTEND_URL`.
    #[must_use]
    pub fn with_users(self, var: impl Fn(&str) -> Option<String>) -> Self {
        let own_origin = var("FRONTEND_URL").as_deref().and_then(origin_of);
        Self { admin_subjects: admin_subjects(var), own_origin, ..self }
    }

    /// Returns the caller that sent these headers, without a look at sessions.
    ///
    /// # Errors
    /// 401 for a wrong admin secret or an `Authorization` that can't be read.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Result<Caller, ApiError> {
        if headers.contains_key(ADMIN_HEADER) {
            return if self.is_admin(headers) {
                Ok(Caller::Admin)
            } else {
                Err(ApiError::new(Code::InvalidAdminSecret, WRONG_ADMIN_SECRET))
            };
        }
        if headers.contains_key(header::AUTHORIZATION) {
            let key = bearer_key(headers)?;
            return Ok(Caller::Key { owner: self.owner_key.owner_of(&key), local: self.local });
        }
        Ok(if self.local { Caller::Local } else { Caller::Anonymous })
    }

    /// Returns the owner name of a key's holder.
    pub fn owner_of(&self, key: &Secret) -> Owner {
        Owner::Key(self.owner_key.owner_of(key))
    }

    pub(crate) fn is_admin(&self, headers: &HeaderMap) -> bool {
        let Some(secret) = self.admin_secret.as_deref().filter(|secret| !secret.is_empty()) else {
            return false;
        };
        let given = headers.get(ADMIN_HEADER).map(|value| value.as_bytes()).unwrap_or_default();
        // Compares digests, so that the time doesn't reveal even the length.
        let digest = |bytes: &[u8]| ring::digest::digest(&ring::digest::SHA256, bytes);
        digest(given).as_ref().ct_eq(digest(secret.as_bytes()).as_ref()).into()
    }
}

/// Returns the origin of an address such as `https://bench.example/page`, in lower case.
pub fn origin_of(address: &str) -> Option<String> {
    let (scheme, rest) = address.trim().split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().filter(|authority| !authority.is_empty())?;
    Some(format!("{scheme}://{authority}").to_lowercase())
}

impl Caller {
    /// Returns true for the holder of the admin secret and for users who are admins.
    pub const fn is_admin(&self) -> bool {
        matches!(self, Self::Admin | Self::User { is_admin: true, .. })
    }

    /// Returns the owners of what belongs to the caller. Admins have rights to everything, but own only what they ordered.
    pub fn own(&self) -> Vec<Owner> {
        match self {
            Self::Admin | Self::Local => vec![Owner::Local],
            Self::Key { owner, local } => with_local(Owner::Key(owner.clone()), *local),
            Self::User { subject, local, .. } => with_local(Owner::User(subject.clone()), *local),
            Self::Anonymous => Vec::new(),
        }
    }

    /// Returns true if something of `owner` belongs to the caller.
    pub fn is_own(&self, owner: &Owner) -> bool {
        match (self, owner) {
            (Self::Admin | Self::Local, Owner::Local) => true,
            (Self::Key { local, .. } | Self::User { local, .. }, Owner::Local) => *local,
            (Self::Key { owner: caller, .. }, Owner::Key(owner)) => caller == owner,
            (Self::User { subject: caller, .. }, Owner::User(subject)) => caller == subject,
            _ => false,
        }
    }

    /// Returns true if the caller may cancel, delete and requeue runs of `owner`, and see their private parts.
    pub fn owns(&self, owner: &Owner) -> bool {
        self.is_admin() || self.is_own(owner)
    }

    /// Returns true if the caller may know that something of `owner` with this visibility exists.
    pub fn sees(&self, owner: &Owner, visibility: Visibility) -> bool {
        visibility != Visibility::Private || self.owns(owner)
    }

    /// Returns true if the caller may know that a run exists.
    pub fn sees_run(&self, spec: &RunSpec) -> bool {
        self.sees(&spec.owner, spec.labels.visibility)
    }

    /// Returns true if lists show a run to the caller.
    pub fn finds_run(&self, spec: &RunSpec) -> bool {
        spec.labels.visibility.is_public() || self.owns(&spec.owner)
    }

    /// Lets only owners and admins pass.
    ///
    /// # Errors
    /// 401 for callers without credentials, 403 for all others.
    pub fn must_own(&self, owner: &Owner) -> Result<(), ApiError> {
        match self {
            caller if caller.owns(owner) => Ok(()),
            Self::Anonymous => Err(ApiError::new(Code::MissingCredentials, "Missing Authorization header")),
            _ => Err(ApiError::new(Code::NotOwner, "this run belongs to another caller")),
        }
    }

    /// Lets only admins and the person at this machine pass.
    ///
    /// # Errors
    /// 401 for all others.
    pub fn must_operate(&self) -> Result<(), ApiError> {
        match self {
            Self::Admin | Self::Local | Self::User { is_admin: true, .. } => Ok(()),
            Self::Key { .. } | Self::User { .. } | Self::Anonymous => Err(missing_admin_secret()),
        }
    }
}

fn with_local(owner: Owner, local: bool) -> Vec<Owner> {
    if local { vec![owner, Owner::Local] } else { vec![owner] }
}

/// Returns the error for an operators' request without an admin secret. Clients of the compatible system expect the
/// sentence of a wrong one.
pub fn missing_admin_secret() -> ApiError {
    ApiError::new(Code::MissingCredentials, WRONG_ADMIN_SECRET)
}

/// Returns the key in `Authorization: Bearer …`.
///
/// # Errors
/// 401 when it is missing or invalid.
pub fn bearer_key(headers: &HeaderMap) -> Result<Secret, ApiError> {
    let value = headers
        .get(header::AUTHORIZATION)
        .ok_or_else(|| ApiError::new(Code::MissingCredentials, "Missing Authorization header"))?;
    key_in(value, "Invalid Authorization header")
}

/// Returns the judge's key in `X-Judge-Authorization: Bearer …`, if sent.
///
/// # Errors
/// 401 when it is invalid.
pub fn judge_key(headers: &HeaderMap) -> Result<Option<Secret>, ApiError> {
    helper_key(headers.get(JUDGE_HEADER), "X-Judge-Authorization", "a judge's")
}

/// Returns the user model's key in `X-User-Authorization: Bearer …`, if sent.
///
/// # Errors
/// 401 when it is invalid.
pub fn user_key(headers: &HeaderMap) -> Result<Option<Secret>, ApiError> {
    helper_key(headers.get(USER_HEADER), "X-User-Authorization", "a user model's")
}

fn helper_key(value: Option<&HeaderValue>, name: &str, whose: &str) -> Result<Option<Secret>, ApiError> {
    let key = value.map(|value| key_in(value, &format!("Invalid {name} header"))).transpose()?;
    if key.as_ref().is_some_and(is_access_token) {
        return Err(ApiError::new(
            Code::InvalidCredentials,
            format!("an access token can't be sent to {whose} provider: leave `{name}` out"),
        ));
    }
    Ok(key)
}

/// Returns the caller's own key at a provider, if sent. Ignores access tokens, which must never reach a provider.
///
/// # Errors
/// 401 when it is invalid.
pub fn provider_key(headers: &HeaderMap) -> Result<Option<Secret>, ApiError> {
    if !headers.contains_key(header::AUTHORIZATION) {
        return Ok(None);
    }
    Ok(Some(bearer_key(headers)?).filter(|key| !is_access_token(key)))
}

fn key_in(value: &HeaderValue, refusal: &str) -> Result<Secret, ApiError> {
    let invalid = || ApiError::new(Code::InvalidCredentials, refusal);
    let (scheme, key) = value.to_str().map_err(|_| invalid())?.trim().split_once(' ').ok_or_else(invalid)?;
    let key = key.trim();
    let plausible = key.len() <= KEY_BYTES_MAX && key.bytes().all(|b| b.is_ascii_graphic());
    if !scheme.eq_ignore_ascii_case("bearer") || !plausible {
        return Err(invalid());
    }
    Secret::new(key).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(local: bool, secret: Option<&str>) -> Access {
        let owner_key = Arc::new(OwnerKey::from_master_key(&[7; 32]));
        Access::new(local, secret.map(str::to_owned), owner_key)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn keys_are_read_from_the_header() {
        let text = |value| {
            bearer_key(&headers(&[("authorization", value)]))
                .map(|key| key.expose().to_owned())
                .map_err(|e| e.message())
        };
        assert_eq!(text("Bearer sk-1").unwrap(), "sk-1");
        assert_eq!(text("bEARER   sk-1 ").unwrap(), "sk-1");
        for bad in ["Bearer", "Bearer ", "Basic sk-1", "sk-1", "Bearer a b", ""] {
            assert_eq!(text(bad).unwrap_err(), "Invalid Authorization header", "{bad}");
        }
        let missing = bearer_key(&HeaderMap::new()).unwrap_err();
        assert_eq!(
            (missing.status().as_u16(), missing.message().as_str()),
            (401, "Missing Authorization header")
        );
    }

    #[test]
    fn the_judges_key_has_a_header_of_its_own() {
        let text =
            |value| judge_key(&headers(&[("x-judge-authorization", value), ("authorization", "Bearer a")]));
        assert_eq!(text("Bearer sk-j").unwrap(), Some(Secret::new("sk-j").unwrap()));
        assert_eq!(judge_key(&headers(&[("authorization", "Bearer a")])).unwrap(), None);
        assert_eq!(text("sk-j").unwrap_err().message(), "Invalid X-Judge-Authorization header");
    }

    #[test]
    fn the_user_models_key_has_a_header_of_its_own() {
        let sent =
            headers(&[("x-user-authorization", "Bearer sk-u"), ("x-judge-authorization", "Bearer sk-j")]);
        assert_eq!(user_key(&sent).unwrap(), Some(Secret::new("sk-u").unwrap()));
        assert_eq!(user_key(&headers(&[("x-judge-authorization", "Bearer sk-j")])).unwrap(), None);
        let refused = |value| user_key(&headers(&[("x-user-authorization", value)])).unwrap_err().message();
        assert_eq!(refused("sk-u"), "Invalid X-User-Authorization header");
        let token = refused("Bearer bra_1");
        assert!(token.contains("user model's provider") && !token.contains("bra_1"), "{token}");
    }

    #[test]
    fn an_access_token_is_not_a_provider_key() {
        assert_eq!(provider_key(&headers(&[("authorization", "Bearer bra_1")])).unwrap(), None);
        assert_eq!(
            provider_key(&headers(&[("authorization", "Bearer sk-1")])).unwrap(),
            Some(Secret::new("sk-1").unwrap())
        );
        assert_eq!(provider_key(&HeaderMap::new()).unwrap(), None);
        let judge = judge_key(&headers(&[("x-judge-authorization", "Bearer bra_1")])).unwrap_err();
        assert!(judge.status() == 401 && !judge.message().contains("bra_1"), "{judge}");
    }

    #[test]
    fn there_is_no_admin_without_a_secret() {
        let sent = headers(&[("x-admin-secret", "hush")]);
        assert_eq!(access(false, Some("hush")).caller(&sent).unwrap(), Caller::Admin);
        for secret in [None, Some(""), Some("other"), Some("hushh")] {
            assert_eq!(access(true, secret).caller(&sent).unwrap_err().message(), "Invalid admin secret");
        }
        let empty = headers(&[("x-admin-secret", "")]);
        assert!(access(false, Some("")).caller(&empty).is_err());
    }

    #[test]
    fn a_missing_secret_and_a_wrong_one_have_different_codes() {
        let access = access(false, Some("hush"));
        let refused = |sent: &[(&'static str, &str)]| {
            let caller = access.caller(&headers(sent));
            caller.and_then(|caller| caller.must_operate()).map_err(|error| (error.code(), error.message()))
        };
        let message = || "Invalid admin secret".to_owned();
        assert_eq!(refused(&[("x-admin-secret", "hush")]), Ok(()));
        assert_eq!(refused(&[("x-admin-secret", "x")]), Err((Code::InvalidAdminSecret, message())));
        assert_eq!(refused(&[]), Err((Code::MissingCredentials, message())));
        assert_eq!(refused(&[("authorization", "Bearer a")]), Err((Code::MissingCredentials, message())));
    }

    #[test]
    fn a_run_belongs_to_its_creator() {
        let (deployed, at_home) = (access(false, None), access(true, None));
        let (a, b) = (headers(&[("authorization", "Bearer a")]), headers(&[("authorization", "Bearer b")]));
        let nobody = HeaderMap::new();
        let of_a = deployed.owner_of(&Secret::new("a").unwrap());
        let may = |access: &Access, sent: &HeaderMap, owner: &Owner| access.caller(sent).unwrap().owns(owner);
        assert!(may(&deployed, &a, &of_a));
        assert!(!may(&deployed, &b, &of_a));
        assert!(!may(&deployed, &nobody, &of_a));
        assert!(!may(&deployed, &nobody, &Owner::Local));
        assert!(!may(&deployed, &a, &Owner::Local));
        assert!(may(&at_home, &nobody, &Owner::Local));
        assert!(may(&at_home, &a, &Owner::Local));
        assert!(!may(&at_home, &nobody, &of_a));
        assert!(!may(&at_home, &b, &of_a));
        assert_eq!(Caller::Anonymous.must_own(&of_a).unwrap_err().status(), 401);
        assert_eq!(Caller::Local.must_own(&of_a).unwrap_err().status(), 403);
        assert!(Caller::Admin.must_own(&of_a).is_ok());
    }
}
