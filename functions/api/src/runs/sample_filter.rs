//! Filter and order of a benchmark's samples.

use bench_domain::Outcome;
use bench_state::SampleRecord;
use bench_web::FieldReader;

/// Maximum length of a list of outcomes, in characters.
const OUTCOMES_CHARS_MAX: usize = 256;
/// Maximum length of a group or id, in characters.
const NAME_CHARS_MAX: usize = 512;

/// Range of a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageRange {
    /// Number of samples to skip.
    pub(crate) offset: u64,
    /// Maximum number of samples.
    pub(crate) limit: u64,
    /// False to leave out what is in stored bodies.
    pub(crate) texts: bool,
}

/// Samples to return. Every part that is given must match.
#[derive(Debug, Clone, Default)]
pub(crate) struct SampleFilter {
    outcomes: Option<Vec<Outcome>>,
    group: Option<String>,
    item: Option<String>,
    sample: Option<u32>,
    /// True for the order of the dataset, false for that of the plan, which is random.
    by_dataset: bool,
}

impl SampleFilter {
    /// Reads the filter of a request. Empty values count as not given.
    pub(crate) fn read(fields: &mut FieldReader) -> Self {
        let outcomes = fields.maybe_text("outcome", OUTCOMES_CHARS_MAX).filter(|names| !names.is_empty());
        let outcomes = outcomes.and_then(|names| fields.checked("outcome", parse_outcomes(&names)));
        let mut name = |field: &str| fields.maybe_text(field, NAME_CHARS_MAX).filter(|name| !name.is_empty());
        let (group, item) = (name("group"), name("item"));
        let sample = fields.maybe_integer("sample", 0, u32::MAX.into());
        let sample = sample.and_then(|sample| u32::try_from(sample).ok());
        let by_dataset = fields.maybe_choice("order", "`plan` or `dataset`", |order| match order {
            "plan" | "" => Some(false),
            "dataset" => Some(true),
            _ => None,
        });
        Self { outcomes, group, item, sample, by_dataset: by_dataset.unwrap_or(false) }
    }

    /// Returns true if the samples are those of the plan, in its order.
    pub(crate) fn is_everything(&self) -> bool {
        let Self { outcomes, group, item, sample, by_dataset } = self;
        outcomes.is_none() && group.is_none() && item.is_none() && sample.is_none() && !by_dataset
    }

    /// Returns true if the samples are asked for in the order of the dataset's rows.
    pub(crate) const fn is_sorted(&self) -> bool {
        self.by_dataset
    }

    /// Returns true if a sample matches.
    pub(crate) fn matches(&self, record: &SampleRecord) -> bool {
        let outcome = || record.finished.as_ref().map(|finished| finished.verdict.outcome);
        let outcomes = self.outcomes.as_ref();
        outcomes.is_none_or(|outcomes| outcome().is_some_and(|outcome| outcomes.contains(&outcome)))
            && self.group.as_ref().is_none_or(|group| {
                record.group.as_ref().is_some_and(|its| its.to_lowercase() == group.to_lowercase())
            })
            && self.item.as_ref().is_none_or(|item| is_named(record, item))
            && self.sample.is_none_or(|sample| record.position.sample == sample)
    }
}

/// Returns true if the name is the dataset's own id of the sample's item, or `#` and the index of its row.
fn is_named(record: &SampleRecord, name: &str) -> bool {
    match name.strip_prefix('#') {
        Some(index) => record.item_id == index,
        None => record.source_id.as_ref().unwrap_or(&record.item_id) == name,
    }
}

fn parse_outcomes(names: &str) -> Result<Vec<Outcome>, String> {
    let parse = |name: &str| {
        Outcome::from_name(name.trim()).ok_or_else(|| {
            let known = Outcome::ALL.map(Outcome::as_str).join(", ");
            let shown: String = name.trim().chars().take(40).collect();
            format!("`{shown}` is not an outcome; the outcomes are {known}")
        })
    };
    names.split(',').map(parse).collect()
}
