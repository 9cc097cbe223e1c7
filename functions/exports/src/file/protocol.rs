//! Protocol of benchmarks in Markdown: the settings, then each sample with all of its texts, in the order of the plan.
//! If there are several benchmarks, a list of them precedes the first.
//!
//! Texts are in fences that are longer than any in them, names in code spans, and sentences are escaped, so that no text
//! of a model, a dataset or a caller changes the document around it.
//!
//! The page writes the same document for archives and for runs without exports (`frontend-static/js/views/run/protocol.js`);
//! its tests compare the two.

use bench_benchmarks::find_for_run;
use bench_domain::Outcome;
use bench_domain::report::BenchmarkReport;
use bench_domain::run::Plan;
use bench_web::views::{IntervalView, ItemView, StepView};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::context::ExportsConfig;
use crate::file::facts::{BenchmarkFacts, RunFacts};
use crate::file::item::ItemRow;
use crate::file::markdown::{code, fenced, sentence};
use crate::file::report::percent;
use crate::file::results::{DEMO_NOTICE, protocol_name};
use crate::file::wording;

/// Value that isn't known, or that the run doesn't have.
const NONE: &str = "-";

/// Sentence of a benchmark whose texts are left out.
const HIDDEN_NOTICE: &str = "Prompts and answers are left out: the dataset is gated or private, and only the run's owner and \
                             the operator may read them.";

/// Fields about the worker's attempts and connections, which say nothing about the sample.
const INTERNALS: [&str; 7] = [
    "worker_attempt",
    "worker_attempts",
    "response_attempts",
    "lost_attempts",
    "waits",
    "request_id",
    "choices_count",
];

/// Writes the document into memory; the caller takes the bytes piece by piece.
pub(crate) struct ProtocolWriter {
    software_version: String,
    /// True if the reader may not see texts of private datasets.
    hides: bool,
    /// True if the current benchmark's texts are left out.
    is_hidden: bool,
    /// True if items of the current benchmark have several samples.
    has_several: bool,
    /// True if the document has several benchmarks, whose headings are below the document's.
    is_list: bool,
    written: String,
}

impl ProtocolWriter {
    /// Begins the document. `hides` leaves out texts of private datasets.
    pub(crate) fn begin(facts: &RunFacts, config: &ExportsConfig, hides: bool) -> Self {
        let mut protocol = Self {
            software_version: config.software_version.clone(),
            hides,
            is_hidden: false,
            has_several: false,
            is_list: facts.benchmarks.len() > 1,
            written: String::new(),
        };
        if protocol.is_list {
            protocol.list(facts);
        }
        protocol
    }

    /// Writes the document's heading and the list of its benchmarks.
    fn list(&mut self, facts: &RunFacts) {
        let count = facts.benchmarks.len();
        self.line(&format!("# Benchmark protocol: {count} benchmarks\n"));
        for (label, value) in run_head(facts) {
            self.line(&format!("- {label}: {value}"));
        }
        self.line("\nBenchmarks:\n");
        for (number, found) in facts.benchmarks.iter().enumerate() {
            let score = found
                .score()
                .map_or_else(|| "no score".to_owned(), |score| format!("score {}", percent(score)));
            let status = found.record.state.status();
            let (number, title) = (number + 1, title(found, facts));
            self.line(&format!("{number}. {title}: {score}, coverage {}, {status}", share(found.coverage())));
        }
    }

    pub(crate) fn begin_benchmark(&mut self, benchmark: &BenchmarkFacts, facts: &RunFacts) {
        self.is_hidden =
            self.hides && bench_benchmarks::is_private(&benchmark.record.name, benchmark.dataset());
        self.has_several = benchmark.plan().is_some_and(|plan| plan.samples_per_item > 1);
        let title = title(benchmark, facts);
        match self.is_list {
            true => self.line(&format!("\n## {title}\n")),
            false => self.line(&format!("# Benchmark protocol: {title}\n")),
        }
        for (label, value) in head(benchmark, facts, &self.software_version) {
            self.line(&format!("- {label}: {value}"));
        }
        if benchmark.is_demo() {
            self.line(&format!("\n{DEMO_NOTICE}"));
        }
        if self.is_hidden {
            self.line(&format!("\n{HIDDEN_NOTICE}"));
        }
        if let Some(error) = benchmark.record.state.error().filter(|_| !self.is_hidden) {
            self.line(&format!("\nError: {}", sentence(error)));
        }
    }

    pub(crate) fn item(&mut self, row: &ItemRow) {
        match self.is_hidden {
            true => self.sample(&row.view.clone().hide()),
            false => self.sample(&row.view),
        }
    }

    /// Returns the bytes that were written since the last call.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.written).into_bytes()
    }

    fn line(&mut self, line: &str) {
        self.written.push_str(line);
        self.written.push('\n');
    }

    fn sample(&mut self, view: &ItemView) {
        let sample = match self.has_several {
            true => format!(", sample {}", view.sample + 1),
            false => String::new(),
        };
        let level = if self.is_list { "###" } else { "##" };
        let (number, verdict) = (view.position + 1, outcome(view));
        self.line(&format!("\n{level} {number}. Item {}{sample} – {verdict}\n", item_name(view)));
        self.line(&facts_of(view));
        if let Some(error) = &view.error {
            self.line(&format!("\nError: {}", sentence(error)));
        }
        if let Some(reason) = view.reason.as_ref().filter(|reason| view.error.as_ref() != Some(reason)) {
            self.line(&format!("\nReason: {}", sentence(reason)));
        }
        for step in view.steps.iter().flatten() {
            self.step(step);
        }
        for (title, text) in [
            ("Prompt", &view.prompt),
            ("Reasoning", &view.reasoning),
            ("Response", &view.response),
            ("Extracted", &view.extracted),
            ("Expected", &view.expected),
            ("Executed code", &view.test_code),
            ("Judge prompt", &view.judge_prompt),
        ] {
            self.text(title, text.as_deref());
        }
        self.object("Judge output", view.judge_output.as_ref().map(without_internals).as_ref());
        self.object("Grader", view.detail.as_ref());
        self.object("Metadata", view.item_metadata.as_ref().map(without_internals).as_ref());
    }

    fn step(&mut self, step: &StepView) {
        self.text(&format!("Step {}: prompt", step.name), Some(&step.prompt));
        self.text(&format!("Step {}: reasoning", step.name), step.reasoning.as_deref());
        self.text(&format!("Step {}: response", step.name), Some(&step.response));
    }

    fn text(&mut self, title: &str, text: Option<&str>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        self.line(&format!("\n**{}**\n", sentence(title)));
        fenced(&mut self.written, text);
    }

    fn object(&mut self, title: &str, object: Option<&impl Serialize>) {
        let text = object.and_then(|object| serde_json::to_string_pretty(object).ok());
        self.text(title, text.as_deref());
    }
}

/// Returns the display name of a benchmark with its name; the name alone if this version of the program doesn't know it.
fn title(benchmark: &BenchmarkFacts, facts: &RunFacts) -> String {
    let name = &benchmark.record.name;
    match find_for_run(&facts.run.spec, name) {
        Some(known) => format!("{} ({})", sentence(known.metadata().display_name), code(name.as_str())),
        None => code(name.as_str()),
    }
}

/// Returns the fields of a sample's metadata that are about the sample.
fn without_internals(fields: &Map<String, Value>) -> Map<String, Value> {
    let fields = fields.iter().filter(|(name, _)| !INTERNALS.contains(&name.as_str()));
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the run and its model, as labels and Markdown.
fn run_head(facts: &RunFacts) -> Vec<(&'static str, String)> {
    let spec = &facts.run.spec;
    let mut rows = vec![
        ("Run", code(&spec.id.to_string())),
        ("Model", code(&spec.model.qualified())),
        ("Provider", code(&spec.model.provider)),
    ];
    rows.extend(spec.model.endpoint_host.as_ref().map(|host| ("Endpoint", code(host))));
    rows
}

fn prompt_text(plan: &Plan) -> String {
    match wording::prompt(&plan.prompt_source, &plan.prompt_digest) {
        (texts, None) => sentence(texts),
        (texts, Some(digest)) => format!("{} ({})", sentence(texts), code(digest)),
    }
}

fn judge_text(model: &str) -> String {
    wording::judge_note(model).map_or_else(|| code(model), |note| format!("{} ({note})", code(model)))
}

/// Returns the settings and results of a benchmark, as labels and Markdown.
fn head(benchmark: &BenchmarkFacts, facts: &RunFacts, software_version: &str) -> Vec<(&'static str, String)> {
    let spec = &facts.run.spec;
    let (plan, report) = (benchmark.plan(), benchmark.record.state.report());
    let changed = plan.map(Plan::changed_settings).unwrap_or_default();
    let options = plan.map(|plan| &plan.options).filter(|options| !options.is_empty());
    let mut rows = run_head(facts);
    rows.extend([
        ("Benchmark", code(benchmark.record.name.as_str())),
        ("Protocol", maybe(protocol_name(benchmark))),
        ("Dataset", dataset_text(benchmark)),
        ("Demo data", yes_or_no(benchmark.is_demo()).to_owned()),
        ("Prompt", plan.map_or_else(none, prompt_text)),
        (
            "Judge",
            plan.and_then(|plan| plan.judge.as_ref()).map_or_else(none, |judge| judge_text(&judge.model)),
        ),
        ("User model", spec.user.as_ref().map_or_else(none, |user| code(&user.model.qualified()))),
        (
            "Changed settings",
            if changed.is_empty() { "none".to_owned() } else { sentence(&changed.join("; ")) },
        ),
        (
            "Options",
            options.and_then(|options| serde_json::to_string(options).ok()).map_or_else(none, |o| code(&o)),
        ),
        ("Subset", subset_text(facts)),
        ("Seed", maybe(spec.subset.seed.as_deref())),
        ("Items", format!("{} of {}", benchmark.items_planned(), plan.map_or(0, |plan| plan.dataset_items))),
        ("Samples", samples_text(benchmark)),
        ("Status", benchmark.record.state.status().to_string()),
        ("Score", share(benchmark.score())),
        ("95% interval", report.and_then(interval_text).unwrap_or_else(none)),
        ("Coverage", share(benchmark.coverage())),
        ("Outcomes", outcomes_text(benchmark)),
        ("Run completed", facts.completed_at.whole_seconds().to_string()),
        ("Software", format!("bench-runner {}", sentence(software_version))),
    ]);
    rows.retain(|(label, value)| {
        value != NONE || !matches!(*label, "Endpoint" | "Judge" | "User model" | "Options")
    });
    rows
}

fn none() -> String {
    NONE.to_owned()
}

fn maybe(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).map_or_else(none, code)
}

const fn yes_or_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

/// Formats a share or a score in percent.
fn share(value: Option<f64>) -> String {
    value.map_or_else(none, percent)
}

fn count(value: Option<u64>) -> String {
    value.map_or_else(none, |value| value.to_string())
}

fn dataset_text(benchmark: &BenchmarkFacts) -> String {
    benchmark
        .dataset()
        .map_or_else(none, |dataset| format!("{} at {}", code(&dataset.id), code(&dataset.revision)))
}

fn subset_text(facts: &RunFacts) -> String {
    let spec = &facts.run.spec;
    match (spec.items.len(), spec.subset.count) {
        (0, Some(count)) => format!("{count} items"),
        (0, None) => format!("{}%", spec.subset.pct),
        (named, _) => format!("{named} named items"),
    }
}

fn samples_text(benchmark: &BenchmarkFacts) -> String {
    let per_item = benchmark.plan().map_or(1, |plan| plan.samples_per_item);
    let (graded, planned) = (benchmark.tally.outcomes.graded(), benchmark.samples_planned());
    match per_item {
        1 => format!("{graded} graded of {planned}"),
        several => format!("{graded} graded of {planned}, {several} of each item"),
    }
}

fn interval_text(report: &BenchmarkReport) -> Option<String> {
    let IntervalView { low, high, method } = IntervalView::from_report(report)?;
    Some(format!("{} to {} ({method})", percent(low), percent(high)))
}

fn outcomes_text(benchmark: &BenchmarkFacts) -> String {
    let counts = benchmark.tally.outcomes.iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> =
        counts.map(|(outcome, count)| format!("{count} {}", outcome.as_str())).collect();
    if counts.is_empty() { none() } else { counts.join(", ") }
}

/// Returns the outcome of a sample.
fn outcome(view: &ItemView) -> &'static str {
    view.outcome.map_or("not ended", Outcome::as_str)
}

/// Returns the item's name in the dataset, or the index of its row.
fn item_name(view: &ItemView) -> String {
    match &view.source_id {
        Some(id) if !id.is_empty() => code(id),
        _ => code(&format!("#{}", view.item_id)),
    }
}

/// Returns the facts of a sample on one line.
fn facts_of(view: &ItemView) -> String {
    let correct = view.is_correct.map_or(NONE, yes_or_no);
    let mut line = format!(
        "row {} · hash {} · outcome {} · correct {correct} · score {} · time {} · tokens {} in, {} out",
        code(&view.item_id),
        maybe(view.item_hash.as_deref()),
        outcome(view),
        share(view.score),
        view.latency_ms.map_or_else(none, |ms| format!("{ms} ms")),
        count(view.input_tokens),
        count(view.output_tokens),
    );
    if let Some(group) = &view.group {
        line.push_str(" · group ");
        line.push_str(&code(group));
    }
    line
}
