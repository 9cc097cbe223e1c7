//! What an order can choose for one of its benchmarks, and what is wrong with a choice.

use bench_benchmarks::{OptionError, UnknownProtocol};

/// What an order can choose for one of its benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Where its items come from.
    Dataset,
    /// Its protocol.
    Protocol,
    /// Its own settings.
    Options,
}

/// A name that no benchmark has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no benchmark `{name}`; known are {}", all_names())]
pub struct UnknownBenchmark {
    /// What was asked for, cut to 80 characters.
    pub name: String,
}

/// What was chosen for a benchmark and is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownChoice {
    /// The benchmark itself.
    #[error(transparent)]
    Benchmark(#[from] UnknownBenchmark),
    /// Its protocol.
    #[error(transparent)]
    Protocol(#[from] UnknownProtocol),
    /// One of its options, or an option's value.
    #[error(transparent)]
    Option(#[from] OptionError),
}

fn all_names() -> String {
    let names: Vec<&str> = bench_benchmarks::all().iter().map(|benchmark| benchmark.name()).collect();
    names.join(", ")
}
