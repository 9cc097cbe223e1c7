//! Who orders, and what may be ordered with that.

use bench_domain::Secret;
use bench_domain::run::{AuthMode, Owner};
use bench_state::access::{AccessEntry, AccessRow};

/// Who orders, and whose key is used.
#[derive(Debug, Clone)]
pub struct Orderer {
    /// Who may change the run.
    pub owner: Owner,
    /// The caller's own key; `None` uses the operator's.
    pub api_key: Option<Secret>,
    /// The caller's own key for the judge; `None` uses the one above where judge and model have the same provider,
    /// else the operator's.
    pub judge_key: Option<Secret>,
    /// What the server knows of the caller.
    pub standing: Standing,
}

impl Orderer {
    /// The person at this machine, on the operator's key.
    pub const fn local() -> Self {
        Self { owner: Owner::Local, api_key: None, judge_key: None, standing: Standing::Local }
    }

    /// Whose key pays for the answers.
    pub const fn auth(&self) -> AuthMode {
        match self.api_key {
            Some(_) => AuthMode::ApiKey,
            None => AuthMode::System,
        }
    }
}

/// What the server knows of the caller who orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The person at this machine, or this program itself.
    Local,
    /// A holder of the admin secret.
    Admin,
    /// A holder of an access token.
    Token(Permissions),
    /// A holder of a key that the operator has listed.
    ListedKey(Permissions),
    /// A holder of some text that may be a key: its provider has to confirm it.
    Key,
}

/// Permissions of a listed caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Permissions {
    /// May order runs of the oracle and of stored responses.
    pub oracle: bool,
    /// May order runs of gated benchmarks.
    pub gated: bool,
}

impl Permissions {
    /// Those of an entry in the operator's list.
    pub const fn of(entry: &AccessEntry) -> Self {
        Self { oracle: entry.oracle, gated: entry.gated }
    }
}

impl Standing {
    /// What it may order beyond what everybody may.
    pub const fn permissions(self) -> Permissions {
        match self {
            Self::Local | Self::Admin => Permissions { oracle: true, gated: true },
            Self::Token(permissions) | Self::ListedKey(permissions) => permissions,
            Self::Key => Permissions { oracle: false, gated: false },
        }
    }

    /// Whether orders may be paid with the operator's keys.
    pub const fn spends_operators_money(self) -> bool {
        matches!(self, Self::Local | Self::Admin | Self::Token(_))
    }

    /// The row of the access policy that has to allow its orders.
    pub const fn row(self) -> Option<AccessRow> {
        match self {
            Self::Local => None,
            Self::Admin => Some(AccessRow::Admin),
            Self::Token(_) => Some(AccessRow::Token),
            Self::ListedKey(_) | Self::Key => Some(AccessRow::ProviderKey),
        }
    }
}
