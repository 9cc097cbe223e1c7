//! Which forms this machine allows.

use std::sync::Arc;

use super::local::Local;
use super::wire::Kind;
use super::{Isolation, IsolationError, IsolationOptions};

/// A form, or its name and why this machine does not allow it.
pub type FormOutcome = Result<Arc<dyn Isolation>, (&'static str, String)>;

/// From the strongest to the weakest.
const KINDS: [Kind; 2] = [Kind::Namespaces, Kind::Confined];

/// The strongest form that this machine allows. Each is tried by making a sandbox; blocks meanwhile.
///
/// # Errors
///
/// [`IsolationError::Unsafe`] where none is possible, with what is missing.
pub fn probe(options: &IsolationOptions) -> Result<Arc<dyn Isolation>, IsolationError> {
    let mut reasons = Vec::new();
    for kind in KINDS {
        match try_form(kind, options) {
            Ok(form) => return Ok(form),
            Err((name, reason)) => reasons.push(format!("{name}: {reason}")),
        }
    }
    Err(IsolationError::Unsafe(reasons.join("; ")))
}

/// Every form, from the strongest to the weakest. Blocks while they are tried.
#[must_use]
pub fn forms(options: &IsolationOptions) -> Vec<FormOutcome> {
    KINDS.into_iter().map(|kind| try_form(kind, options)).collect()
}

fn try_form(kind: Kind, options: &IsolationOptions) -> FormOutcome {
    match Local::new(kind, options) {
        Ok(local) => Ok(Arc::new(Arc::new(local))),
        Err(reason) => Err((kind.name(), reason)),
    }
}
