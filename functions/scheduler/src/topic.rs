//! Topic to publish notices to.

use std::future::Future;
use std::pin::Pin;

/// Result of publishing one message. The error is a sentence that names the call.
pub type Publishing<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// A topic to which the operators of an installation subscribe.
pub trait Topic: std::fmt::Debug + Send + Sync {
    /// Publishes one message. The subject has at most 99 ASCII characters.
    fn publish(&self, subject: String, text: String) -> Publishing<'_>;
}
