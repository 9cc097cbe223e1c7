//! Checks that are one function of the text.

use super::Check;

/// A check made of a function.
struct By<F>(F);

impl<F: Fn(&str) -> bool + Send + Sync> Check for By<F> {
    fn follows(&self, text: &str) -> bool {
        (self.0)(text)
    }
}

/// A check from a function.
pub(crate) fn by(follows: impl Fn(&str) -> bool + Send + Sync + 'static) -> Box<dyn Check> {
    Box::new(By(follows))
}
