//! Hashing and parsing of the results in one pass with constant memory.

use std::fmt;
use std::io::{self, Read};

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use sha2::{Digest as _, Sha256};

use super::condense::Condenser;
use super::guard::JsonGuard;
use crate::SCHEMA_VERSION;
use crate::reason::{Reason, Refusal, quote_short};

/// The parts of the results that a verification needs.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) run: Run,
    pub(super) exported_at: Option<String>,
    pub(super) benchmark_count: u64,
    schema_version: Option<String>,
}

/// Fields of `run` that a verification reports.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) id: Option<String>,
    pub(super) model_slug: Option<String>,
    pub(super) subset_pct: Option<i64>,
    pub(super) subset_count: Option<i64>,
    pub(super) subset_seed: Option<String>,
    pub(super) overall_score: Option<f64>,
}

impl Summary {
    /// Returns an error if these results can't belong to the manifest that was signed with them.
    pub(super) fn check_against(&self, manifest_run_id: Option<&str>) -> Option<Refusal> {
        if self.schema_version.as_deref() != Some(SCHEMA_VERSION) {
            let found = self.schema_version.as_deref().map_or_else(|| "nothing".to_owned(), quote_short);
            let text = format!("Results schema_version must be \"{SCHEMA_VERSION}\" but is {found}");
            return Some(Refusal::new(Reason::UnsupportedSchema, text));
        }
        if self.run.id.is_none() {
            return Some(Refusal::new(Reason::ResultsWrongTypes, "Results do not name their run"));
        }
        // A manifest without a run id is reported elsewhere.
        if manifest_run_id.is_some() && manifest_run_id != self.run.id.as_deref() {
            return Some(Refusal::new(Reason::RunMismatch, "Manifest and results name different runs"));
        }
        None
    }
}

/// Returns the SHA-256 of all bytes, in lowercase hexadecimal.
pub(super) fn hash(mut reader: impl Read) -> io::Result<String> {
    let mut hashed = HashingReader { reader: &mut reader, sha256: Sha256::new(), guard: None };
    io::copy(&mut hashed, &mut io::sink())?;
    Ok(hex::encode(hashed.sha256.finalize()))
}

/// Returns the SHA-256 of all bytes, and the summary or the reason why there is none.
pub(super) fn hash_and_parse(mut reader: impl Read) -> io::Result<(String, Result<Summary, Refusal>)> {
    let mut hashed =
        HashingReader { reader: &mut reader, sha256: Sha256::new(), guard: Some(JsonGuard::default()) };
    let parsed = serde_json::from_reader(Condenser::new(&mut hashed));
    let violation = hashed.guard.take().and_then(|guard| guard.violation());
    let summary = match parsed {
        Ok(summary) => Ok(summary),
        Err(_) if violation.is_some() => {
            let text = format!("Results JSON is refused: {}", violation.unwrap_or_default());
            Err(Refusal::new(Reason::ResultsWrongTypes, text))
        }
        Err(error) if error.is_io() => return Err(error.into()),
        Err(error) if error.is_data() => {
            // Its position is that in the condensed text.
            let text = error.to_string();
            let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
            let text = format!("Results JSON does not have the expected form: {}", quote_short(text));
            Err(Refusal::new(Reason::ResultsWrongTypes, text))
        }
        Err(_) => Err(Refusal::new(Reason::ResultsNotJson, "Results JSON is invalid")),
    };
    // Parsing may stop early, but the hash covers everything.
    io::copy(&mut hashed, &mut io::sink())?;
    Ok((hex::encode(hashed.sha256.finalize()), summary))
}

/// Hashes the bytes read through it, and fails before the parser uses too much memory.
struct HashingReader<'a, R> {
    reader: &'a mut R,
    sha256: Sha256,
    guard: Option<JsonGuard>,
}

impl<R: Read> Read for HashingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        let bytes = buffer.get(..count).unwrap_or_default();
        self.sha256.update(bytes);
        if let Some(guard) = &mut self.guard {
            guard.check(bytes).map_err(io::Error::other)?;
        }
        Ok(count)
    }
}

// Implemented by hand because derived implementations also accept an array as a struct.

impl<'de> Deserialize<'de> for Summary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SummaryVisitor)
    }
}

struct SummaryVisitor;

impl<'de> Visitor<'de> for SummaryVisitor {
    type Value = Summary;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with run and benchmarks")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Summary, A::Error> {
        let (mut run, mut benchmarks, mut exported_at, mut schema_version) = (None, None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "run" => set(&mut run, &mut map, "run")?,
                "benchmarks" => set(&mut benchmarks, &mut map, "benchmarks")?,
                "exported_at" => set(&mut exported_at, &mut map, "exported_at")?,
                "schema_version" => set(&mut schema_version, &mut map, "schema_version")?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let Count(benchmark_count) = benchmarks.ok_or_else(|| A::Error::missing_field("benchmarks"))?;
        Ok(Summary {
            run: run.ok_or_else(|| A::Error::missing_field("run"))?,
            benchmark_count,
            exported_at: exported_at.flatten(),
            schema_version: schema_version.flatten(),
        })
    }
}

impl<'de> Deserialize<'de> for Run {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RunVisitor)
    }
}

struct RunVisitor;

impl<'de> Visitor<'de> for RunVisitor {
    type Value = Run;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object as run")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Run, A::Error> {
        let (mut id, mut model_slug, mut subset_seed) = (None, None, None);
        let (mut subset_pct, mut subset_count, mut overall_score) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "id" => set(&mut id, &mut map, "id")?,
                "model_slug" => set(&mut model_slug, &mut map, "model_slug")?,
                "subset_pct" => set(&mut subset_pct, &mut map, "subset_pct")?,
                "subset_count" => set(&mut subset_count, &mut map, "subset_count")?,
                "subset_seed" => set(&mut subset_seed, &mut map, "subset_seed")?,
                "overall_score" => set(&mut overall_score, &mut map, "overall_score")?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Run {
            id: id.flatten(),
            model_slug: model_slug.flatten(),
            subset_pct: subset_pct.flatten(),
            subset_count: subset_count.flatten(),
            subset_seed: subset_seed.flatten(),
            overall_score: overall_score.flatten(),
        })
    }
}

fn set<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    slot: &mut Option<T>,
    map: &mut A,
    field: &'static str,
) -> Result<(), A::Error> {
    match slot.replace(map.next_value()?) {
        Some(_) => Err(A::Error::duplicate_field(field)),
        None => Ok(()),
    }
}

/// Number of elements of an array.
struct Count(u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountVisitor;
        impl<'de> Visitor<'de> for CountVisitor {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of benchmarks")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Count, A::Error> {
                let mut count = 0;
                while elements.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Count(count))
            }
        }
        deserializer.deserialize_seq(CountVisitor)
    }
}
