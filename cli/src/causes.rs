//! Formatting of error causes.

use crate::format;

pub(crate) use bench_domain::causes::{cause, one_line};

/// Formats a cause with its number of occurrences.
pub(crate) fn times(count: u64, text: &str) -> String {
    format!("{} × {text}", format::count(count))
}
