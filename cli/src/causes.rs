//! Causes of errors, as they are shown.

use crate::format;

pub(crate) use bench_domain::causes::{cause, one_line};

/// How often something occurred, and what.
pub(crate) fn times(count: u64, text: &str) -> String {
    format!("{} × {text}", format::count(count))
}
