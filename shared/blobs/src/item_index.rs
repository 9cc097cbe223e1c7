//! Compact index of the samples of a benchmark: what a table of them filters and sorts by.
//!
//! The finisher writes it when it closes the benchmark, in parts of at most [`PART_ROWS_MAX`] rows, each a JSON object
//! compressed with gzip, so that it can be sent as it is stored. A row is an array of the values of [`COLUMNS`]; groups and
//! outcomes are indices into lists of the same part. Keys contain the generation of the run, so that a late finisher can't
//! replace the index of a later generation.

use std::io::{Read, Write};

use bench_domain::{BenchmarkName, Outcome, Position, RunId};
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::{BlobError, Blobs};

/// Maximum number of rows of a part. A part must fit into a response of Lambda without compression.
pub const PART_ROWS_MAX: u64 = 10_000;
/// Maximum size of a row, in bytes, with the comma after it.
const ROW_BYTES_MAX: usize = 200;
/// Names of a row's values.
pub const COLUMNS: [&str; 13] = [
    "position",
    "sample",
    "item_id",
    "source_id",
    "group",
    "outcome",
    "score",
    "extracted",
    "latency_ms",
    "input_tokens",
    "output_tokens",
    "attempts",
    "item_hash",
];
/// Number of hexadecimal digits of an item's hash. The probability that one of 100,000 changed questions keeps its digits by
/// chance is below 10⁻⁹.
const ITEM_HASH_DIGITS: usize = 12;
/// Maximum length of an extracted answer, in bytes, with the ellipsis.
const EXTRACTED_BYTES_MAX: usize = 40;
/// Maximum length of the dataset's own id of an item, in bytes. Longer ones are left out: a part of an id finds nothing.
const SOURCE_ID_BYTES_MAX: usize = 60;
/// Maximum length of a group's name, in bytes.
const GROUP_BYTES_MAX: usize = 100;
/// Maximum number of groups of a part. Rows of further ones have no group.
const GROUPS_MAX: usize = 1_000;
/// Maximum size of a part after decompression, in bytes.
const PART_BYTES_MAX: u64 = 8 * 1024 * 1024;
const ELLIPSIS: char = '…';

/// Row of the index: one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IndexRow<'a> {
    /// Position of the sample in the plan.
    pub position: Position,
    /// Index of the item's row in the dataset.
    pub item_id: &'a str,
    /// The dataset's own id of the item.
    pub source_id: Option<&'a str>,
    /// Group of the item within its benchmark.
    pub group: Option<&'a str>,
    /// Outcome; `None` if the sample didn't end.
    pub outcome: Option<Outcome>,
    /// Score, if it was graded.
    pub score: Option<f64>,
    /// Answer that the parser found.
    pub extracted: Option<&'a str>,
    /// Milliseconds from the request to the end of the answer.
    pub latency_ms: Option<u64>,
    /// Tokens of the prompt.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer.
    pub output_tokens: Option<u64>,
    /// Number of attempts, of all stages.
    pub attempts: u32,
    /// Hash of the item's identifying text; `None` if the sample has no answer.
    pub item_hash: Option<&'a str>,
}

/// Benchmark that an index belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexOf<'a> {
    /// Run of the benchmark.
    pub run: RunId,
    /// Generation of the run that wrote the index.
    pub generation: u32,
    /// Name of the benchmark.
    pub benchmark: &'a BenchmarkName,
    /// Number of rows.
    pub items: u64,
}

impl IndexOf<'_> {
    /// Returns the number of parts.
    pub fn parts(&self) -> u32 {
        u32::try_from(self.items.div_ceil(PART_ROWS_MAX)).unwrap_or(u32::MAX)
    }

    /// Returns the prefix of the keys of this generation's parts.
    fn prefix(&self) -> String {
        let Self { run, generation, benchmark, .. } = self;
        format!("indexes/{run}/{benchmark}/{generation}/")
    }

    fn key(&self, part: u32) -> String {
        format!("{}{part:06}.json.gz", self.prefix())
    }
}

/// Returns the prefix of all indexes of a run.
pub fn indexes_prefix(run: RunId) -> String {
    format!("indexes/{run}/")
}

/// Writes an index row by row, with at most one part in memory.
#[derive(Debug)]
pub struct IndexWriter<'a> {
    blobs: &'a Blobs,
    of: IndexOf<'a>,
    part: Part,
    parts_written: u32,
}

/// Part that is being filled.
#[derive(Debug, Default)]
struct Part {
    /// Rows as JSON, each with a comma after it.
    rows: Vec<u8>,
    count: u64,
    groups: Vec<String>,
    outcomes: Vec<Outcome>,
}

impl<'a> IndexWriter<'a> {
    /// Begins an index. Rows must be added in the order of the plan.
    pub fn new(blobs: &'a Blobs, of: IndexOf<'a>) -> Self {
        Self { blobs, of, part: Part::default(), parts_written: 0 }
    }

    /// Adds a row. Writes the part if the row fills it.
    ///
    /// # Errors
    /// If the part can't be written.
    pub async fn add(&mut self, row: &IndexRow<'_>) -> Result<(), BlobError> {
        self.part.add(row);
        if self.part.count >= PART_ROWS_MAX { self.write_part().await } else { Ok(()) }
    }

    /// Writes the last part and removes the parts of earlier generations. Returns the number of parts.
    ///
    /// # Errors
    /// If the part can't be written.
    pub async fn finish(mut self) -> Result<u32, BlobError> {
        if self.part.count > 0 {
            self.write_part().await?;
        }
        if self.of.generation > 1 {
            self.remove_earlier().await?;
        }
        Ok(self.parts_written)
    }

    async fn write_part(&mut self) -> Result<(), BlobError> {
        let key = self.of.key(self.parts_written);
        let text = std::mem::take(&mut self.part).into_json(&self.of, self.parts_written);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let packed = encoder.write_all(&text).and_then(|()| encoder.finish());
        let packed = packed.map_err(|error| BlobError::request(&key, error))?;
        self.blobs.put(&key, packed.into(), "application/gzip").await?;
        self.parts_written += 1;
        Ok(())
    }

    async fn remove_earlier(&self) -> Result<(), BlobError> {
        let (all, own) = (indexes_prefix(self.of.run), self.of.prefix());
        let mut earlier = std::collections::BTreeSet::new();
        let mut from = None;
        loop {
            let (objects, next) =
                self.blobs.list(&format!("{all}{}/", self.of.benchmark), from.take()).await?;
            let folders = objects.into_iter().filter(|object| !object.key.starts_with(&own));
            earlier.extend(folders.filter_map(|object| Some(object.key.rsplit_once('/')?.0.to_owned())));
            from = next;
            if from.is_none() {
                break;
            }
        }
        for folder in earlier {
            let generation = folder.rsplit('/').next().and_then(|text| text.parse::<u32>().ok());
            if generation.is_some_and(|generation| generation < self.of.generation) {
                self.blobs.delete_prefix(&format!("{folder}/")).await?;
            }
        }
        Ok(())
    }
}

impl Part {
    fn add(&mut self, row: &IndexRow<'_>) {
        let group = row.group.and_then(|group| self.group(cut(group, GROUP_BYTES_MAX)));
        let outcome = row.outcome.map(|outcome| self.outcome(outcome));
        let source_id = row.source_id.filter(|id| id.len() <= SOURCE_ID_BYTES_MAX);
        let extracted = row.extracted.map(|text| cut(text, EXTRACTED_BYTES_MAX));
        let item_hash = row.item_hash.map(|hash| hash.get(..ITEM_HASH_DIGITS).unwrap_or(hash));
        let score = row.score.map(|score| (score * 1e6).round() / 1e6);
        // Control characters take six bytes each, so both texts may still be too long.
        for (source_id, extracted) in [(source_id, extracted.as_deref()), (source_id, None), (None, None)] {
            let values = json!([
                row.position.item,
                row.position.sample,
                cut(row.item_id, SOURCE_ID_BYTES_MAX),
                source_id,
                group,
                outcome,
                number(score),
                extracted,
                row.latency_ms,
                row.input_tokens,
                row.output_tokens,
                row.attempts,
                item_hash,
            ]);
            let text = values.to_string();
            if text.len() < ROW_BYTES_MAX || (source_id.is_none() && extracted.is_none()) {
                self.rows.extend_from_slice(text.as_bytes());
                self.rows.push(b',');
                break;
            }
        }
        self.count += 1;
    }

    fn group(&mut self, name: String) -> Option<usize> {
        let known = self.groups.iter().position(|group| *group == name);
        if known.is_none() && self.groups.len() < GROUPS_MAX {
            self.groups.push(name);
            return Some(self.groups.len() - 1);
        }
        known
    }

    fn outcome(&mut self, outcome: Outcome) -> usize {
        self.outcomes.iter().position(|known| *known == outcome).unwrap_or_else(|| {
            self.outcomes.push(outcome);
            self.outcomes.len() - 1
        })
    }

    fn into_json(self, of: &IndexOf<'_>, part: u32) -> Vec<u8> {
        let Self { mut rows, groups, outcomes, .. } = self;
        let head = json!({
            "run_id": of.run,
            "benchmark_name": of.benchmark,
            "generation": of.generation,
            "part": part,
            "parts": of.parts(),
            "items": of.items,
            "hidden": false,
            "groups": groups,
            "outcomes": outcomes,
            "columns": COLUMNS,
        });
        rows.pop();
        let mut text = head.to_string().into_bytes();
        text.pop();
        text.extend_from_slice(b",\"rows\":[");
        text.append(&mut rows);
        text.extend_from_slice(b"]}");
        text
    }
}

/// Returns a number in its shortest form: `1` instead of `1.0`.
#[allow(clippy::cast_possible_truncation, clippy::float_cmp)]
fn number(value: Option<f64>) -> Value {
    match value {
        Some(whole) if whole == whole.trunc() && whole.abs() < 1e9 => json!(whole as i64),
        other => json!(other),
    }
}

/// Returns the beginning of a text, with an ellipsis if it is cut.
fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let room = bytes_max - ELLIPSIS.len_utf8();
    let end = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let mut cut = text[..end].to_owned();
    cut.push(ELLIPSIS);
    cut
}

impl Blobs {
    /// Returns a part of an index as it is stored: JSON compressed with gzip. `None` if it doesn't exist.
    ///
    /// # Errors
    /// If it can't be read.
    pub async fn get_index_part(&self, of: &IndexOf<'_>, part: u32) -> Result<Option<Bytes>, BlobError> {
        self.get(&of.key(part)).await
    }
}

/// Unpacks a part of an index.
///
/// # Errors
/// If it isn't gzip, or is too large.
pub fn unpack_index_part(packed: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    GzDecoder::new(packed).take(PART_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > PART_BYTES_MAX {
        return Err(std::io::Error::other("a part of the index is too large"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'a>() -> IndexRow<'a> {
        IndexRow {
            position: Position { item: 3, sample: 1 },
            item_id: "1234",
            source_id: Some("q-7"),
            group: Some("law"),
            outcome: Some(Outcome::Correct),
            score: Some(1.0),
            extracted: Some("C"),
            latency_ms: Some(1_234),
            input_tokens: Some(100),
            output_tokens: Some(200),
            attempts: 1,
            item_hash: Some("0123456789abcdef"),
        }
    }

    fn read(part: Part, items: u64) -> Value {
        let benchmark = "mmlu_pro".parse().unwrap();
        let of = IndexOf { run: RunId::random(), generation: 2, benchmark: &benchmark, items };
        serde_json::from_slice(&part.into_json(&of, 0)).unwrap()
    }

    #[test]
    fn a_part_explains_itself() {
        let mut part = Part::default();
        part.add(&row());
        let open = IndexRow { outcome: None, score: None, extracted: None, source_id: None, ..row() };
        part.add(&IndexRow { group: Some("math"), latency_ms: None, item_hash: None, ..open });
        part.add(&IndexRow { score: Some(1.0 / 3.0), outcome: Some(Outcome::Partial), group: None, ..row() });
        let part = read(part, 20_001);
        assert_eq!(
            (&part["parts"], &part["generation"], &part["items"]),
            (&json!(3), &json!(2), &json!(20_001))
        );
        assert_eq!(
            (&part["groups"], &part["outcomes"]),
            (&json!(["law", "math"]), &json!(["correct", "partial"]))
        );
        assert_eq!(part["columns"].as_array().unwrap().len(), part["rows"][0].as_array().unwrap().len());
        assert_eq!(
            part["rows"],
            json!([
                [3, 1, "1234", "q-7", 0, 0, 1, "C", 1_234, 100, 200, 1, "0123456789ab"],
                [3, 1, "1234", null, 1, null, null, null, null, 100, 200, 1, null],
                [3, 1, "1234", "q-7", null, 1, 0.333333, "C", 1_234, 100, 200, 1, "0123456789ab"],
            ])
        );
        assert_eq!(read(Part::default(), 0)["rows"], json!([]));
    }

    #[test]
    fn every_row_keeps_to_its_bound() {
        let (long, control) = ("é".repeat(500), "\u{1}".repeat(60));
        for text in [long.as_str(), control.as_str(), &"\"".repeat(60)] {
            let mut part = Part::default();
            part.add(&IndexRow {
                position: Position { item: u32::MAX, sample: u32::MAX },
                item_id: "999999999999",
                source_id: Some(text),
                group: Some(text),
                score: Some(-0.123456789),
                extracted: Some(text),
                latency_ms: Some(86_400_000),
                input_tokens: Some(100_000_000),
                output_tokens: Some(100_000_000),
                attempts: u32::MAX,
                ..row()
            });
            assert!(part.rows.len() <= ROW_BYTES_MAX, "{}", part.rows.len());
            assert_eq!(read(part, 1)["rows"][0][12], "0123456789ab");
        }
        // Texts of the maximum length fit beside usual numbers.
        let (source_id, extracted) = ("i".repeat(SOURCE_ID_BYTES_MAX), "x".repeat(EXTRACTED_BYTES_MAX));
        let (source_id, extracted) = (Some(&*source_id), Some(&*extracted));
        let position = Position { item: 99_999, sample: 9 };
        let mut part = Part::default();
        part.add(&IndexRow {
            position,
            item_id: "99999",
            latency_ms: Some(600_000),
            source_id,
            extracted,
            ..row()
        });
        assert!(part.rows.len() <= ROW_BYTES_MAX, "{}", part.rows.len());
        let part = read(part, 1);
        assert_eq!((&part["rows"][0][3], &part["rows"][0][7]), (&json!(source_id), &json!(extracted)));
        assert_eq!(cut("ääää", 6), "ä…");
        assert_eq!(cut("ääää", 8), "ääää");
    }

    #[test]
    fn groups_are_bounded() {
        let mut part = Part::default();
        for number in 0..GROUPS_MAX + 1 {
            part.add(&IndexRow { group: Some(&number.to_string()), ..row() });
        }
        assert_eq!(part.groups.len(), GROUPS_MAX);
        part.add(&IndexRow { group: Some("5"), ..row() });
        let rows = read(part, 3)["rows"].clone();
        assert_eq!((&rows[GROUPS_MAX][4], &rows[GROUPS_MAX + 1][4]), (&json!(null), &json!(5)));
    }
}
