//! Choices that an order can make for one of its benchmarks, and errors in them.

use bench_benchmarks::{OptionError, UnknownProtocol};

/// Kind of choice for one benchmark of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Source of its items.
    Dataset,
    /// Its protocol.
    Protocol,
    /// Its options.
    Options,
}

/// Error for a name that isn't a benchmark.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown benchmark `{name}`; known benchmarks are {}", benchmark_names())]
pub struct UnknownBenchmark {
    /// Requested name, cut to 80 characters.
    pub name: String,
}

/// Error for a choice that doesn't exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownChoice {
    /// The benchmark doesn't exist.
    #[error(transparent)]
    Benchmark(#[from] UnknownBenchmark),
    /// The protocol doesn't exist.
    #[error(transparent)]
    Protocol(#[from] UnknownProtocol),
    /// The option, or its value, doesn't exist.
    #[error(transparent)]
    Option(#[from] OptionError),
}

fn benchmark_names() -> String {
    let all = bench_benchmarks::all().iter();
    let names: Vec<String> = all.map(|benchmark| benchmark.metadata().listed_name()).collect();
    names.join(", ")
}
