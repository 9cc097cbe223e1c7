//! Callers that order, and their permissions.

use bench_domain::Secret;
use bench_domain::run::{AuthMode, Owner};
use bench_state::access::{AccessEntry, AccessRow};

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
    /// Standing of the caller with the server.
    pub standing: Standing,
}

impl Orderer {
    /// Returns the user of this machine, with the operator's keys.
    pub const fn local() -> Self {
        Self { owner: Owner::Local, api_key: None, judge_key: None, standing: Standing::Local }
    }

    /// Returns whether the caller's or the operator's key pays for the answers.
    pub const fn auth(&self) -> AuthMode {
        match self.api_key {
            Some(_) => AuthMode::ApiKey,
            None => AuthMode::System,
        }
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
            Self::Key => Permissions { oracle: false, gated: false, tasks: false },
        }
    }

    /// Returns true if orders may be paid for with the operator's keys.
    pub const fn spends_operators_money(self) -> bool {
        matches!(self, Self::Local | Self::Admin | Self::Token(_))
    }

    /// Returns the row of the access policy that has to allow the caller's orders.
    pub const fn row(self) -> Option<AccessRow> {
        match self {
            Self::Local => None,
            Self::Admin => Some(AccessRow::Admin),
            Self::Token(_) => Some(AccessRow::Token),
            Self::ListedKey(_) | Self::Key => Some(AccessRow::ProviderKey),
        }
    }
}
