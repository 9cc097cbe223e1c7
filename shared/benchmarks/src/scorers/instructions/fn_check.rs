//! Checks that are a single function of the text.

use super::Check;

/// Check that calls a function.
struct FnCheck<F>(F);

impl<F: Fn(&str) -> bool + Send + Sync> Check for FnCheck<F> {
    fn follows(&self, text: &str) -> bool {
        (self.0)(text)
    }
}

/// Creates a check from a function.
pub(crate) fn fn_check(follows: impl Fn(&str) -> bool + Send + Sync + 'static) -> Box<dyn Check> {
    Box::new(FnCheck(follows))
}
