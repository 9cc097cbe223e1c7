//! Model ids as providers report them with their answers.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Model ids that a provider reported for a benchmark, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReportedModels(BTreeSet<String>);

impl ReportedModels {
    /// Maximum number of ids; a provider that invents more isn't trustworthy anyway.
    pub const MAX: usize = 64;
    /// Maximum length of an id in characters; the rest is cut off.
    const CHARS_MAX: usize = 256;
    /// Maximum length of all ids in a report, in bytes of JSON.
    const BYTES_MAX: usize = 4_096;

    /// Adds an id. The first [`MAX`](Self::MAX) ids are kept, so samples have to be added in the order of the plan.
    pub fn add(&mut self, model: &str) {
        if self.0.len() < Self::MAX {
            self.0.insert(model.chars().take(Self::CHARS_MAX).collect());
        }
    }

    /// Returns true if the ids are short enough for a report.
    pub(crate) fn fits_report(&self) -> bool {
        serde_json::to_string(self).is_ok_and(|json| json.len() <= Self::BYTES_MAX)
    }

    /// Returns the ids in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_sorted_and_bounded() {
        let mut models = ReportedModels::default();
        ["b", "a", "b"].into_iter().for_each(|model| models.add(model));
        assert_eq!(serde_json::to_string(&models).unwrap(), r#"["a","b"]"#);
        models.add(&"ö".repeat(1_000));
        assert!(models.iter().any(|model| model == "ö".repeat(256)));
        (0..1_000).for_each(|number| models.add(&format!("c{number}")));
        assert_eq!(models.iter().count(), ReportedModels::MAX);
    }

    #[test]
    fn reports_have_no_ids_of_more_than_4_kib() {
        let of = |length: usize, text: &str| {
            let mut models = ReportedModels::default();
            (0..ReportedModels::MAX)
                .for_each(|number| models.add(&format!("{number:02}{}", text.repeat(length))));
            models
        };
        // 64 ids of 60 bytes have 4,033 bytes of JSON, and 64 of 61 bytes have 4,097.
        assert!(of(58, "a").fits_report());
        assert!(!of(59, "a").fits_report());
        assert!(!of(254, "ö").fits_report());
        assert!(!of(10, "\u{1}").fits_report(), "its JSON has six characters");
    }
}
