//! Isolation for machines that allow no safe form: every creation fails with the reason.

use std::sync::Arc;

use async_trait::async_trait;

use crate::isolation::{Form, Isolation, IsolationError, Limits, Sandbox};

/// Name of the form if the machine allows none.
pub(super) const NO_FORM: &str = "none";

struct UnavailableIsolation {
    form: Form,
    reason: IsolationError,
}

/// Returns an isolation whose creations all fail with this reason, for a machine that allows no form or whose probe
/// failed. The error tells callers that retrying doesn't help.
pub fn unavailable_isolation(reason: &IsolationError) -> Arc<dyn Isolation> {
    let reason = match reason {
        IsolationError::Unsafe(end_reason) => IsolationError::Unsafe(end_reason.clone()),
        other => IsolationError::Unsafe(other.to_string()),
    };
    let lacks = vec![format!("Everything: {reason}.")];
    Arc::new(UnavailableIsolation { form: Form { name: NO_FORM, holds: Vec::new(), lacks }, reason })
}

#[async_trait]
impl Isolation for UnavailableIsolation {
    fn form(&self) -> &Form {
        &self.form
    }

    async fn create(&self, _: &Limits) -> Result<Arc<dyn Sandbox>, IsolationError> {
        Err(self.reason.clone())
    }
}
