//! Callers that order, and their permissions.

use bench_domain::run::{AuthMode, ModelRef, Owner};
use bench_domain::{ModelRole, Secret, SessionId};
use bench_state::access::{AccessEntry, AccessRow};

/// Provider whose models are paid for by the account of a signed-in user.
pub const CHUTES: &str = "chutes";

/// Caller that orders, with its keys.
#[derive(Debug, Clone)]
pub struct Orderer {
    /// Owner, who may change the run.
    pub owner: Owner,
    /// Caller's own key; `None` uses the operator's.
    pub api_key: Option<Secret>,
    /// Caller's own key for the judge; `None` uses `api_key` if judge and model have the same provider, otherwise the
    /// operator's.
    pub judge_key: Option<Secret>,
    /// Caller's own key for the user model; `None` uses the others in the same way.
    pub user_key: Option<Secret>,
    /// Session whose user's account pays for the answers of Chutes models; `None` for callers without a session, and for
    /// sessions that may not call models.
    pub session: Option<SessionId>,
    /// Standing of the caller with the server.
    pub standing: Standing,
}

impl Orderer {
    /// Returns the user of this machine, with the operator's keys.
    pub const fn local() -> Self {
        Self {
            owner: Owner::Local,
            api_key: None,
            judge_key: None,
            user_key: None,
            session: None,
            standing: Standing::Local,
        }
    }

    /// Returns the caller's own key for a role.
    pub(crate) const fn key_of(&self, role: ModelRole) -> Option<&Secret> {
        match role {
            ModelRole::Model => self.api_key.as_ref(),
            ModelRole::Judge => self.judge_key.as_ref(),
            ModelRole::UserModel => self.user_key.as_ref(),
        }
    }

    /// Returns the session that pays for what belongs to `owner`: another user's account doesn't, not even an admin's.
    pub fn session_for(&self, owner: &Owner) -> Option<SessionId> {
        self.session.clone().filter(|_| self.owner == *owner)
    }

    /// Returns what pays for the answers of a model: the caller's own key, the account of a signed-in user, or the operator's
    /// key.
    pub fn auth_for(&self, model: &ModelRef) -> AuthMode {
        match self.api_key {
            Some(_) => AuthMode::ApiKey,
            None if self.session_pays(&model.provider) && model.base_url.is_none() => AuthMode::Idp,
            None => AuthMode::System,
        }
    }

    /// Returns true if models of this provider are looked up without a key, since only the account of a signed-in user may pay
    /// for them, even if its session lacks the scope: the access policy says so then.
    pub(crate) fn needs_no_key(&self, provider: &str) -> bool {
        let operator_pays = self.standing.spends_operators_money();
        let is_user = matches!(self.standing, Standing::User(_)) && !operator_pays && provider == CHUTES;
        is_user || self.session_pays(provider)
    }

    /// Returns true if the account of a signed-in user pays for models of this provider, unless a key does.
    pub(crate) fn session_pays(&self, provider: &str) -> bool {
        self.session.is_some() && provider == CHUTES
    }
}

/// Standing of a caller: how the server knows the caller that orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// User of this machine, or this program itself.
    Local,
    /// Holder of the admin secret.
    Admin,
    /// Holder of an access token.
    Token(Permissions),
    /// Holder of a key that the operator has listed.
    ListedKey(Permissions),
    /// Holder of a text that may be a key, which its provider has to confirm.
    Key,
    /// Signed-in user.
    User(UserStanding),
}

/// Standing of a signed-in user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserStanding {
    /// Permissions, if the operator has listed the user.
    pub permissions: Permissions,
    /// True if the session may call Chutes models on the user's account.
    pub has_invoke_scope: bool,
    /// True if the operator's keys may pay for what the user's account can't.
    pub operator_pays: bool,
}

/// Permissions of a listed caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Permissions {
    /// True if the caller may order runs of the oracle and of stored responses.
    pub oracle: bool,
    /// True if the caller may order runs of gated benchmarks.
    pub gated: bool,
    /// True if the caller may upload terminal tasks and order runs of them.
    pub tasks: bool,
}

impl Permissions {
    /// Returns the permissions of an entry in the operator's list.
    pub const fn from_entry(entry: &AccessEntry) -> Self {
        Self { oracle: entry.oracle, gated: entry.gated, tasks: entry.tasks }
    }
}

impl Standing {
    /// Returns the permissions beyond those of all callers.
    pub const fn permissions(self) -> Permissions {
        match self {
            Self::Local | Self::Admin => Permissions { oracle: true, gated: true, tasks: true },
            Self::Token(permissions) | Self::ListedKey(permissions) => permissions,
            Self::User(user) => user.permissions,
            Self::Key => Permissions { oracle: false, gated: false, tasks: false },
        }
    }

    /// Returns true if orders may be paid for with the operator's keys.
    pub const fn spends_operators_money(self) -> bool {
        match self {
            Self::Local | Self::Admin | Self::Token(_) => true,
            Self::User(user) => user.operator_pays,
            Self::ListedKey(_) | Self::Key => false,
        }
    }

    /// Returns the row of the access policy that has to allow the caller's orders.
    pub const fn row(self) -> Option<AccessRow> {
        match self {
            Self::Local => None,
            Self::Admin => Some(AccessRow::Admin),
            Self::Token(_) => Some(AccessRow::Token),
            Self::ListedKey(_) | Self::Key => Some(AccessRow::ProviderKey),
            Self::User(_) => Some(AccessRow::Session),
        }
    }
}
