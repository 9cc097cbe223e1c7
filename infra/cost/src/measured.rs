//! Calls of real runs.
//!
//! `bench-measure` executes a run on the embedded services and records every call of every function. Predictions for other
//! sizes start from these numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The runs that the model is fitted to, as they were measured.
pub const MEASURED: &str = include_str!("../measured.json");

/// Sums over the calls of one action by one function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Calls.
    pub calls: f64,
    /// Bytes sent.
    pub request_bytes: f64,
    /// Bytes received.
    pub response_bytes: f64,
    /// DynamoDB read request units.
    pub read_units: f64,
    /// DynamoDB write request units.
    pub write_units: f64,
    /// Requests as SQS counts them: one for each begun 64 KB.
    pub chunks: f64,
}

/// Calls by function, then by `Service.Action`.
pub type Tallies = BTreeMap<String, BTreeMap<String, Tally>>;

/// A measured run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRun {
    /// Samples of the run, each one item.
    pub samples: u64,
    /// Calls from the order until all work is done, without polling.
    pub run: Tallies,
    /// Calls of one request for the run's status.
    pub poll: Tallies,
    /// Calls of building and fetching one signed archive.
    pub export: Tallies,
    /// Total bytes of the questions to the model.
    pub question_bytes: f64,
}

impl Tally {
    /// Adds both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.map(other, |a, b| a + b)
    }

    /// Combines each pair of numbers with `f`.
    fn map(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            calls: f(self.calls, other.calls),
            request_bytes: f(self.request_bytes, other.request_bytes),
            response_bytes: f(self.response_bytes, other.response_bytes),
            read_units: f(self.read_units, other.read_units),
            write_units: f(self.write_units, other.write_units),
            chunks: f(self.chunks, other.chunks),
        }
    }
}

/// Reads measured runs, smallest first.
///
/// # Errors
/// Returns an error if the text isn't a list of measured runs.
pub fn read(text: &str) -> anyhow::Result<Vec<MeasuredRun>> {
    let mut runs: Vec<MeasuredRun> = serde_json::from_str(text)?;
    runs.sort_by_key(|run| run.samples);
    Ok(runs)
}

/// Extrapolates linearly from two measured runs to another size.
pub fn scale(small: &MeasuredRun, large: &MeasuredRun, samples: f64) -> MeasuredRun {
    let (a, b) = (small.samples as f64, large.samples as f64);
    let line = |at_a: f64, at_b: f64| {
        let slope = (at_b - at_a) / (b - a);
        (at_a + slope * (samples - a)).max(0.0)
    };
    let tallies = |at_a: &Tallies, at_b: &Tallies| -> Tallies {
        let mut functions = Tallies::new();
        for (name, calls) in at_a.iter().chain(at_b) {
            for action in calls.keys() {
                let of = |all: &Tallies| {
                    all.get(name).and_then(|calls| calls.get(action)).copied().unwrap_or_default()
                };
                let scaled = of(at_a).map(of(at_b), line);
                functions.entry(name.clone()).or_default().insert(action.clone(), scaled);
            }
        }
        functions
    };
    MeasuredRun {
        samples: samples as u64,
        run: tallies(&small.run, &large.run),
        poll: tallies(&small.poll, &large.poll),
        export: tallies(&small.export, &large.export),
        question_bytes: line(small.question_bytes, large.question_bytes),
    }
}

/// Sums the calls of all functions whose `Service.Action` passes.
pub fn sum(tallies: &Tallies, passes: impl Fn(&str) -> bool) -> Tally {
    let calls = tallies.values().flatten().filter(|(action, _)| passes(action));
    calls.fold(Tally::default(), |sum, (_, tally)| sum.plus(*tally))
}
