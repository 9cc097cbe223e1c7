//! Finds items by the names that users give.

use std::collections::HashMap;

use crate::entry::IndexEntry;
use crate::layout::Layout;

/// Prefix of a row index.
pub const ROW_SIGN: char = '#';
/// Maximum number of names of a kind that a message lists.
const NAMES_SHOWN_MAX: usize = 5;
/// Maximum number of items per name that a message lists.
const ITEMS_SHOWN_MAX: usize = 3;
/// Maximum number of characters of a name that a message shows.
const NAME_CHARS_MAX: usize = 80;

/// Finds items by the dataset's own id, or by row index after a `#`, as in `#12`.
///
/// An item without an id in the dataset can also be found by its row index without the `#`.
#[derive(Debug)]
pub struct ItemNames<'a> {
    entries: &'a [IndexEntry],
    /// First item of each id.
    by_id: HashMap<&'a str, usize>,
    /// All items of an id that several items share.
    shared: HashMap<&'a str, Vec<usize>>,
    by_row: HashMap<&'a str, usize>,
}

/// Reason why a name doesn't identify an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameError {
    /// No item has this name.
    Unknown {
        /// True if the name is a row index without the leading `#`.
        is_row: bool,
    },
    /// Several items have this name.
    Ambiguous {
        /// Number of items.
        items: u64,
        /// Rows of the first items.
        rows: Vec<String>,
    },
}

impl<'a> ItemNames<'a> {
    /// Creates the lookup tables for a dataset's items.
    pub fn new(entries: &'a [IndexEntry]) -> Self {
        let mut by_id = HashMap::with_capacity(entries.len());
        let mut by_row = HashMap::with_capacity(entries.len());
        let mut shared: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, entry) in entries.iter().enumerate() {
            by_row.insert(entry.id.as_str(), at);
            let id = entry.display_id();
            if let Some(first) = by_id.get(id) {
                shared.entry(id).or_insert_with(|| vec![*first]).push(at);
            } else {
                by_id.insert(id, at);
            }
        }
        Self { entries, by_id, shared, by_row }
    }

    /// Returns the position in the index of the item with this name.
    ///
    /// # Errors
    /// Returns an error if no item or several items have the name.
    pub fn find(&self, name: &str) -> Result<usize, NameError> {
        let row = name.strip_prefix(ROW_SIGN).and_then(|row| self.by_row.get(row).copied());
        let one;
        let own = match (self.shared.get(name), self.by_id.get(name)) {
            (Some(several), _) => several.as_slice(),
            (None, Some(first)) => {
                one = [*first];
                one.as_slice()
            }
            (None, None) => &[],
        };
        match (own, row) {
            ([], Some(row)) => Ok(row),
            ([], None) => Err(NameError::Unknown { is_row: self.by_row.contains_key(name) }),
            ([at], None) => Ok(*at),
            ([at], Some(row)) if *at == row => Ok(row),
            (several, row) => {
                let all = several.iter().copied().chain(row.filter(|row| !several.contains(row)));
                let rows = all.clone().filter_map(|at| self.entries.get(at)).take(ITEMS_SHOWN_MAX);
                Err(NameError::Ambiguous {
                    items: all.count() as u64,
                    rows: rows.map(|entry| format!("{ROW_SIGN}{}", entry.id)).collect(),
                })
            }
        }
    }
}

/// Names that don't identify an item. Counts them, keeps the first few, and describes them in one sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameProblems {
    unknown: NameList,
    ambiguous: NameList,
    /// First unknown name that is a row index without `#`.
    row: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct NameList {
    /// Number of uses of these names.
    count: u64,
    /// First names, each with a remark.
    shown: Vec<(String, String)>,
}

impl NameList {
    fn add(&mut self, count: u64, name: String, remark: String) {
        self.count += count;
        let is_new = !self.shown.iter().any(|(known, _)| *known == name);
        if is_new && self.shown.len() <= NAMES_SHOWN_MAX {
            self.shown.push((name, remark));
        }
    }

    /// Lists the first names, followed by `…` if there are more.
    fn list(&self, quote: &str) -> String {
        let shown = self.shown.iter().take(NAMES_SHOWN_MAX);
        let listed: Vec<String> =
            shown.map(|(name, remark)| format!("{quote}{name}{quote}{remark}")).collect();
        let more = if self.shown.len() > NAMES_SHOWN_MAX { ", …" } else { "" };
        format!("{}{more}", listed.join(", "))
    }
}

impl NameProblems {
    /// Records a name that was used `count` times.
    pub fn add(&mut self, name: &str, count: u64, error: &NameError) {
        let name: String = name.chars().take(NAME_CHARS_MAX).collect();
        match error {
            NameError::Unknown { is_row } => {
                if *is_row && self.row.is_none() {
                    self.row = Some(name.clone());
                }
                self.unknown.add(count, name, String::new());
            }
            NameError::Ambiguous { items, rows } => {
                let more = if *items > rows.len() as u64 { ", …" } else { "" };
                self.ambiguous.add(count, name, format!(" (items {}{more})", rows.join(", ")));
            }
        }
    }

    /// Returns true if no problem was recorded.
    pub const fn is_empty(&self) -> bool {
        self.unknown.count == 0 && self.ambiguous.count == 0
    }

    /// Describes how many of `of` responses match no item of a dataset, or more than one: `3 of 1,000 responses match
    /// no item of mmlu_pro: …`.
    pub fn describe_responses(&self, of: u64, dataset: &str) -> String {
        let sentence = |named: &NameList, problem: &str| {
            let verb = if named.count == 1 { "matches" } else { "match" };
            let (count, of) = (grouped(named.count), grouped(of));
            (named.count > 0).then(|| {
                format!("{count} of {of} responses {verb} {problem} of {dataset}: {}", named.list("`"))
            })
        };
        let sentences = [sentence(&self.unknown, "no item"), sentence(&self.ambiguous, "more than one item")];
        sentences.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// Describes which of `of` named items a benchmark doesn't have, or has several of.
    pub fn describe_items(&self, of: u64, owner: &str) -> String {
        let count = |named: &NameList| match of {
            1 => String::new(),
            of => format!(" ({} of {} named)", grouped(named.count), grouped(of)),
        };
        let Self { unknown, ambiguous, .. } = self;
        let unknown = (unknown.count > 0)
            .then(|| format!("{owner} has no item {}{}", unknown.list(""), count(unknown)));
        let ambiguous = (ambiguous.count > 0)
            .then(|| format!("{owner} has more than one item {}{}", ambiguous.list(""), count(ambiguous)));
        unknown.into_iter().chain(ambiguous).collect::<Vec<_>>().join("; ")
    }

    /// Explains how to name items, if the recorded names suggest that the user didn't know.
    pub fn hint(&self, layout: &dyn Layout) -> Option<String> {
        let ids = match layout.id_columns() {
            [] => String::new(),
            columns => format!(" (`{}`)", columns.join("` or `")),
        };
        if let Some(row) = &self.row {
            return Some(format!(
                "items of {} are named by the dataset's own id{ids}; write a row's index, from 0, as `{ROW_SIGN}{row}`",
                layout.name()
            ));
        }
        (self.ambiguous.count > 0)
            .then(|| format!("name such an item by the index of its row, from 0, as in `{ROW_SIGN}12`"))
    }
}

/// Formats a number with thousands separators.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && at % 3 == first {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(ids: &[Option<&str>]) -> Vec<IndexEntry> {
        let entry = |(at, id): (usize, &Option<&str>)| IndexEntry {
            id: at.to_string(),
            source_id: id.map(str::to_owned),
            group: None,
            tags: Default::default(),
            offset: 0,
            length: 0,
        };
        ids.iter().enumerate().map(entry).collect()
    }

    #[test]
    fn the_datasets_own_id_wins() {
        let entries = entries(&[Some("2"), Some("70"), Some("0")]);
        let names = ItemNames::new(&entries);
        assert_eq!((names.find("2"), names.find("70"), names.find("0")), (Ok(0), Ok(1), Ok(2)));
        assert_eq!((names.find("#2"), names.find("#0")), (Ok(2), Ok(0)));
        assert_eq!(names.find("1"), Err(NameError::Unknown { is_row: true }));
        for unknown in ["71", "#70", "#02", "#", "", "# 1"] {
            assert_eq!(names.find(unknown), Err(NameError::Unknown { is_row: false }), "{unknown}");
        }
    }

    #[test]
    fn rows_without_an_id_go_by_their_index() {
        let none = entries(&[None, None]);
        let names = ItemNames::new(&none);
        assert_eq!((names.find("1"), names.find("#1")), (Ok(1), Ok(1)));
        // In a dataset where some items have ids, a row index may be the id of another item.
        let some = entries(&[Some("1"), None, None]);
        let names = ItemNames::new(&some);
        let both = NameError::Ambiguous { items: 2, rows: vec!["#0".into(), "#1".into()] };
        assert_eq!((names.find("1"), names.find("2"), names.find("#1")), (Err(both), Ok(2), Ok(1)));
    }

    #[test]
    fn a_name_of_several_items_is_none() {
        let entries = entries(&[Some("q"), Some("#0"), Some("q"), Some("q"), Some("q"), Some("#5")]);
        let names = ItemNames::new(&entries);
        let rows = vec!["#0".to_owned(), "#2".to_owned(), "#3".to_owned()];
        assert_eq!(names.find("q"), Err(NameError::Ambiguous { items: 4, rows }));
        let rows = vec!["#1".to_owned(), "#0".to_owned()];
        assert_eq!(names.find("#0"), Err(NameError::Ambiguous { items: 2, rows }), "an id and a row");
        assert_eq!((names.find("#5"), names.find("#1")), (Ok(5), Ok(1)), "both are the same item");
    }

    #[test]
    fn problems_are_counted_and_listed() {
        let unknown = NameError::Unknown { is_row: false };
        let mut problems = NameProblems::default();
        assert!(problems.is_empty());
        problems.add("99999", 1, &unknown);
        assert_eq!(
            problems.describe_responses(1_000, "mmlu_pro"),
            "1 of 1,000 responses matches no item of mmlu_pro: `99999`"
        );
        assert_eq!(problems.describe_items(1, "mmlu_pro"), "mmlu_pro has no item 99999");
        for name in ["a", "b", "c", "d", "99999", "e", "f"] {
            problems.add(name, 2, &unknown);
        }
        let rows = vec!["#0".to_owned(), "#2".to_owned(), "#3".to_owned()];
        problems.add("q", 1_234, &NameError::Ambiguous { items: 9, rows });
        assert_eq!(
            problems.describe_responses(1_234_567, "x"),
            "15 of 1,234,567 responses match no item of x: `99999`, `a`, `b`, `c`, `d`, …; \
             1,234 of 1,234,567 responses match more than one item of x: `q` (items #0, #2, #3, …)"
        );
        assert_eq!(
            problems.describe_items(2_000, "x"),
            "x has no item 99999, a, b, c, d, … (15 of 2,000 named); \
             x has more than one item q (items #0, #2, #3, …) (1,234 of 2,000 named)"
        );
        assert!(!problems.is_empty());
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (12_032, "12,032"), (1_234_567, "1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
    }
}
