//! Finds out which forms this machine allows.

use std::sync::Arc;

use super::local::LocalIsolation;
use super::wire::FormKind;
use super::{Isolation, IsolationError, IsolationOptions};

/// A form, or its name and the reason for which this machine doesn't allow it.
pub type FormOutcome = Result<Arc<dyn Isolation>, (&'static str, String)>;

/// All forms, strongest first.
const FORM_KINDS: [FormKind; 2] = [FormKind::Namespaces, FormKind::Confined];

/// Returns the strongest form that this machine allows. Creates a trial sandbox of each form to find out, and blocks
/// meanwhile.
///
/// # Errors
///
/// [`IsolationError::Unsafe`] with the reasons if the machine allows none.
pub fn probe(options: &IsolationOptions) -> Result<Arc<dyn Isolation>, IsolationError> {
    let mut reasons = Vec::new();
    for kind in FORM_KINDS {
        match try_form(kind, options) {
            Ok(form) => return Ok(form),
            Err((name, reason)) => reasons.push(format!("{name}: {reason}")),
        }
    }
    Err(IsolationError::Unsafe(reasons.join("; ")))
}

/// Tries all forms, strongest first. Blocks meanwhile.
#[must_use]
pub fn forms(options: &IsolationOptions) -> Vec<FormOutcome> {
    FORM_KINDS.into_iter().map(|kind| try_form(kind, options)).collect()
}

fn try_form(kind: FormKind, options: &IsolationOptions) -> FormOutcome {
    match LocalIsolation::new(kind, options) {
        Ok(local) => Ok(Arc::new(Arc::new(local))),
        Err(reason) => Err((kind.name(), reason)),
    }
}
