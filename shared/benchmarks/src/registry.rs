//! Finds benchmarks by name, and as runs order them.

use std::collections::BTreeSet;

use bench_domain::run::DatasetUse;
use bench_domain::{Agent, BenchmarkName};
use bench_items::{IndexEntry, Item, Row};

use crate::aa_lcr::AaLcr;
use crate::aa_omniscience::AaOmniscience;
use crate::aime::{AIME_2022_2024, AIME_2025};
use crate::benchmark::Benchmark;
use crate::code_lab::CodeLab;
use crate::expert_questions::EXPERT_QUESTIONS;
use crate::gpqa_diamond::GpqaDiamond;
use crate::hle::Hle;
use crate::ifbench_allenai::IF_BENCH_ALLENAI;
use crate::ifeval::IF_EVAL;
use crate::livecodebench::LiveCodeBench;
use crate::mmlu_pro::MmluPro;
use crate::options::{OptionError, Options};
use crate::scicode::SciCode;
use crate::swe_bench_pro::SweBenchPro;
use crate::tau_bench_telecom::TauBenchTelecom;
use crate::terminal_bench_hard::TerminalBenchHard;
use crate::terminal_tasks::TerminalTasks;

/// Returns all published benchmarks, in the order of listings. Those whose items users bring are found by name only.
pub fn all() -> &'static [&'static dyn Benchmark] {
    static ALL: &[&dyn Benchmark] = &[
        &MmluPro,
        &GpqaDiamond,
        &Hle::OFFICIAL,
        &AIME_2025,
        &AIME_2022_2024,
        &IF_EVAL,
        &IF_BENCH_ALLENAI,
        &AaLcr::V1_1,
        &AaOmniscience,
        &LiveCodeBench::LATEST,
        &SciCode::INSPECT,
        &TerminalBenchHard::DEFAULT,
        &SweBenchPro::DEFAULT,
        &TauBenchTelecom,
        &CodeLab::DEFAULT,
        &EXPERT_QUESTIONS,
    ];
    ALL
}

/// Returns the benchmarks whose items users bring.
fn brought() -> &'static [&'static dyn Benchmark] {
    static BROUGHT: &[&dyn Benchmark] = &[&TerminalTasks::DEFAULT];
    BROUGHT
}

/// Returns the benchmark with this name.
pub fn find(name: &str) -> Option<&'static dyn Benchmark> {
    all().iter().chain(brought()).copied().find(|benchmark| benchmark.name() == name)
}

/// Returns the name of a benchmark for people, with its display name if the name alone is misleading: `ifbench (IFEval)`.
/// A name that isn't known stays as it is.
pub fn listed_name(name: &str) -> String {
    find(name).map_or_else(|| name.to_owned(), |benchmark| benchmark.metadata().listed_name())
}

/// Returns the benchmark that a user means: the one with this name, or with this alias.
pub fn find_named(name: &BenchmarkName) -> Option<&'static dyn Benchmark> {
    let has_alias = |benchmark: &&dyn Benchmark| benchmark.metadata().aliases.contains(&name.as_str());
    find(name.as_str()).or_else(|| all().iter().copied().find(has_alias))
}

/// Returns true for a benchmark on whose items an agent works under its default protocol.
pub fn has_agent(name: &BenchmarkName) -> bool {
    find_named(name).is_some_and(|benchmark| benchmark.has_agent())
}

/// Returns the agent that works on a benchmark's items under this protocol unless an order names another; `None` without agents.
pub fn default_agent(name: &BenchmarkName, protocol: Option<&str>) -> Option<Agent> {
    let benchmark = find_named(name)?;
    with_protocol(benchmark, protocol.filter(|protocol| !protocol.is_empty())).ok()?.default_agent()
}

/// Returns true if an agent works on a benchmark's items in a run.
pub fn has_agent_in(spec: &bench_domain::RunSpec, name: &BenchmarkName) -> bool {
    find_for_run(spec, name).is_some_and(|benchmark| benchmark.has_agent())
}

/// Error for a protocol that a benchmark doesn't have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("benchmark `{benchmark}` has no protocol `{protocol}`; it has {}", known.join(", "))]
pub struct UnknownProtocol {
    /// Name of the benchmark.
    pub benchmark: &'static str,
    /// Requested protocol.
    pub protocol: String,
    /// Available protocols, the default first.
    pub known: Vec<&'static str>,
}

/// Returns the benchmark under the named protocol; `None` selects the default one.
///
/// # Errors
/// Returns an error if the benchmark has no such protocol.
pub fn with_protocol(
    benchmark: &'static dyn Benchmark,
    protocol: Option<&str>,
) -> Result<&'static dyn Benchmark, UnknownProtocol> {
    let Some(protocol) = protocol else { return Ok(benchmark) };
    let all = || std::iter::once(benchmark).chain(benchmark.other_protocols().iter().copied());
    all().find(|known| known.metadata().protocol_name == protocol).ok_or_else(|| UnknownProtocol {
        benchmark: benchmark.name(),
        protocol: protocol.to_owned(),
        known: all().map(|known| known.metadata().protocol_name).collect(),
    })
}

/// Returns the benchmark as a run ordered it, with the run's protocol and options.
pub fn find_for_run(spec: &bench_domain::RunSpec, name: &BenchmarkName) -> Option<&'static dyn Benchmark> {
    let benchmark = find(name.as_str())?;
    let benchmark = with_protocol(benchmark, spec.protocols.get(name).map(String::as_str)).ok()?;
    let benchmark = match spec.options.get(name) {
        None => benchmark,
        Some(options) => benchmark.with_options(options).ok()?.unwrap_or(benchmark),
    };
    Some(benchmark.without_model(&spec.model.provider).unwrap_or(benchmark))
}

/// Returns the code that was run to grade an answer; `None` if nothing was run or the benchmark doesn't provide it.
pub fn executed_code(
    spec: &bench_domain::RunSpec,
    name: &BenchmarkName,
    body: &bench_domain::SampleBody,
) -> Option<String> {
    body.execution.as_ref()?;
    find_for_run(spec, name)?.sandbox()?.code(body)
}

/// Returns what is kept of a stored attempt at an item, as files for people.
pub fn artifacts(
    spec: &bench_domain::RunSpec,
    name: &BenchmarkName,
    item: &Item,
    body: &bench_domain::SampleBody,
) -> Vec<bench_domain::EpisodeLog> {
    let grader = find_for_run(spec, name).and_then(|benchmark| benchmark.sandbox());
    grader.map_or_else(Vec::new, |grader| grader.artifacts(item, body))
}

/// Returns the number of demo items that a run with these options selects from.
pub fn demo_items(benchmark: &dyn Benchmark, options: &Options) -> u64 {
    let rows = benchmark.spec().demo.items.lines().filter_map(|line| serde_json::from_str::<Row>(line).ok());
    let items = (0..).zip(rows).filter_map(|(index, row)| benchmark.item(index, row).ok().flatten());
    let entries = items.map(|item| IndexEntry {
        id: item.id,
        source_id: None,
        group: item.group,
        tags: item.tags,
        offset: 0,
        length: 0,
    });
    entries.filter(|entry| benchmark.selects(options, entry)).count() as u64
}

/// Returns the benchmarks whose items must not be redistributed: only the run's owner and admins see prompts and
/// answers.
pub fn gated() -> BTreeSet<BenchmarkName> {
    let gated = all().iter().filter(|benchmark| benchmark.spec().gate.is_some());
    gated.filter_map(|benchmark| benchmark.name().parse().ok()).collect()
}

/// Returns true if only a run's owner and admins may see prompts, answers and gold answers of a benchmark: the
/// dataset's terms require it or users brought the items, and the run doesn't use demo items. A benchmark that is not planned yet counts as
/// private.
pub fn is_private(name: &BenchmarkName, dataset: Option<&DatasetUse>) -> bool {
    let is_demo = dataset.is_some_and(DatasetUse::is_demo);
    let is_private = |benchmark: &'static dyn Benchmark| {
        benchmark.spec().gate.is_some() || brought().iter().any(|one| one.name() == benchmark.name())
    };
    !is_demo && find(name.as_str()).is_some_and(is_private)
}

/// Returns the options of a run that differ from the defaults.
///
/// # Errors
/// Returns the benchmark's error for an unknown name or value, or an error for an option with an empty value.
pub fn chosen_options(benchmark: &dyn Benchmark, given: &Options) -> Result<Options, OptionError> {
    let given = given.iter().map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    let mut options: Options = given.collect();
    benchmark.with_options(&options)?;
    if let Some((name, _)) = options.iter().find(|(_, value)| value.is_empty()) {
        return Err(OptionError(format!("option `{name}` has no value; leave it out to use the default")));
    }
    options.retain(|name, value| {
        !benchmark.options().iter().any(|option| option.name == name && option.default == value)
    });
    Ok(options)
}

/// Returns all options of a run: its own, and the defaults of the others.
pub fn effective_options(benchmark: &dyn Benchmark, given: &Options) -> Options {
    let defaults = benchmark.options().iter().filter(|option| !option.default.is_empty());
    let mut all: Options =
        defaults.map(|option| (option.name.to_owned(), option.default.to_owned())).collect();
    all.extend(given.iter().map(|(name, value)| (name.clone(), value.clone())));
    all
}
