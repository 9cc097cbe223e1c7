//! The topic to which notices are published.

use std::future::Future;
use std::pin::Pin;

/// The result of one message: an error is a sentence that names the call.
pub type Publishing<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// A topic whose subscribers are the operators of an installation.
pub trait Topic: std::fmt::Debug + Send + Sync {
    /// Publishes one message. The subject has at most 99 ASCII characters.
    fn publish(&self, subject: String, text: String) -> Publishing<'_>;
}
