//! The table: one row per sample, by benchmark, in the order of the plan.

use bench_domain::Timestamp;
use bench_domain::run::Plan;
use serde_json::Value;

use crate::file::cells::{bool_cell, cut, integer_cell, maybe_text_cell, number_cell, text_cell};
use crate::file::facts::{BenchmarkFacts, RunFacts};
use crate::file::item::{ItemRow, TokenSource};
use crate::file::results::protocol_name;

/// Columns of the compatible system, which come first and in this order.
const COLUMNS: [&str; 22] = [
    "run_id",
    "model_slug",
    "subset_pct",
    "subset_count",
    "subset_seed",
    "run_status",
    "run_started_at",
    "run_completed_at",
    "overall_score",
    "benchmark_name",
    "benchmark_status",
    "benchmark_score",
    "sampled_items",
    "completed_items",
    "item_id",
    "prompt",
    "response",
    "expected",
    "is_correct",
    "score",
    "latency_ms",
    "error",
];

/// Additional columns of the benchmark.
const BENCHMARK_COLUMNS: [&str; 8] = [
    "benchmark_coverage",
    "benchmark_accuracy_all",
    "demo",
    "dataset_id",
    "dataset_revision",
    "samples_per_item",
    "protocol",
    "software_version",
];

/// Additional columns of the sample.
const ITEM_COLUMNS: [&str; 12] = [
    "item_hash",
    "sample",
    "outcome",
    "reason",
    "extracted",
    "truncated",
    "finish_reason",
    "attempts",
    "input_tokens",
    "output_tokens",
    "model_reported",
    "finished_at",
];

/// Columns of protocol, prompt and judge. These and the following groups were added later, so they are at the end.
const PROTOCOL_COLUMNS: [&str; 13] = [
    "protocol_name",
    "prompt_source",
    "prompt_digest",
    "judge_model",
    "judge_version",
    "judge_prompt_digest",
    "judge_prompt_source",
    "judge_temperature",
    "judge_seed",
    "judge_max_tokens",
    "rejudges_run",
    "rejudges_version",
    "dataset_digest",
];

/// Columns of the judge's exchange about the answer.
const JUDGE_COLUMNS: [&str; 2] = ["judge_prompt", "judge_reply"];

/// Columns of the providers of model and judge, and of the meaning of the overall score.
const ORIGIN_COLUMNS: [&str; 4] = ["provider", "endpoint_host", "judge_endpoint_host", "overall_score_label"];

/// Column of the dataset's own item id.
const SOURCE_COLUMNS: [&str; 1] = ["source_id"];

/// Columns of the source of token counts, and of the benchmark's estimated tokens.
const ESTIMATE_COLUMNS: [&str; 3] =
    ["tokens_known", "benchmark_estimated_tokens", "benchmark_judge_estimated_tokens"];

/// Column of the code of `error`, for samples without a grade.
const CODE_COLUMNS: [&str; 1] = ["error_code"];

/// Column of the settings that differ from the benchmark's own. Only in tables of runs with such settings, so that
/// other tables keep their bytes.
const SETTINGS_COLUMN: &str = "changed_settings";

/// Columns of an episode's agent. Only in tables of runs with episodes.
const EPISODE_COLUMNS: [&str; 4] = ["agent", "agent_turns", "agent_end", "exception"];

/// Number of [`COLUMNS`] that belong to the sample.
const COMPATIBLE_ITEM_COLUMNS: usize = 8;

/// Writes rows into memory; the caller takes the bytes piece by piece.
pub(crate) struct TableWriter {
    writer: csv::Writer<Vec<u8>>,
    software_version: String,
    /// Cells of the current benchmark before those of the sample; `after` has the additional ones behind them.
    before: Vec<String>,
    after: Vec<String>,
    /// Cells of [`PROTOCOL_COLUMNS`], before the judge's exchange.
    last: Vec<String>,
    /// Cells of [`ORIGIN_COLUMNS`], after the judge's exchange.
    origin: Vec<String>,
    /// Cells of the benchmark's estimated tokens, at the end.
    estimates: Vec<String>,
    /// True if the table has [`SETTINGS_COLUMN`].
    has_settings: bool,
    /// Cell of [`SETTINGS_COLUMN`], if the table has it.
    settings: Option<String>,
    /// True if the table has [`EPISODE_COLUMNS`].
    has_episodes: bool,
    has_items: bool,
}

impl TableWriter {
    pub(crate) fn begin(software_version: &str, facts: &RunFacts) -> Result<Self, csv::Error> {
        let has_settings = facts.benchmarks.iter().any(|benchmark| !changed_settings(benchmark).is_empty());
        let has_episodes = facts.benchmarks.iter().any(has_agent);
        let mut table = Self {
            writer: writer(),
            software_version: software_version.to_owned(),
            before: Vec::new(),
            after: Vec::new(),
            last: Vec::new(),
            origin: Vec::new(),
            estimates: Vec::new(),
            has_settings,
            settings: None,
            has_episodes,
            has_items: false,
        };
        let ours = BENCHMARK_COLUMNS.iter().chain(&ITEM_COLUMNS).chain(&PROTOCOL_COLUMNS);
        let ours =
            ours.chain(&JUDGE_COLUMNS).chain(&ORIGIN_COLUMNS).chain(&SOURCE_COLUMNS).chain(&ESTIMATE_COLUMNS);
        let ours = ours.chain(&CODE_COLUMNS).chain(has_settings.then_some(&SETTINGS_COLUMN));
        let ours = ours.chain(EPISODE_COLUMNS.iter().filter(|_| has_episodes));
        table.writer.write_record(COLUMNS.iter().chain(ours))?;
        Ok(table)
    }

    pub(crate) fn begin_benchmark(&mut self, benchmark: &BenchmarkFacts, facts: &RunFacts) {
        let spec = &facts.run.spec;
        let state = &facts.run.state;
        self.has_items = false;
        self.before = vec![
            spec.id.to_string(),
            text_cell(&spec.model.slug),
            spec.subset.pct.to_string(),
            integer_cell(spec.subset.count),
            maybe_text_cell(spec.subset.seed.as_deref()),
            state.status().to_string(),
            state.started_at().map(time_cell).unwrap_or_default(),
            time_cell(facts.completed_at),
            number_cell(state.overall_score()),
            benchmark.record.name.to_string(),
            benchmark.record.state.status().to_string(),
            number_cell(benchmark.score()),
            benchmark.items_planned().to_string(),
            benchmark.tally.items_done.to_string(),
        ];
        let plan = benchmark.plan();
        self.after = vec![
            number_cell(benchmark.coverage()),
            number_cell(benchmark.accuracy_all()),
            bool_cell(Some(benchmark.is_demo())).to_owned(),
            maybe_text_cell(benchmark.dataset().map(|dataset| dataset.id.as_str())),
            maybe_text_cell(benchmark.dataset().map(|dataset| dataset.revision.as_str())),
            integer_cell(plan.map(|plan| plan.samples_per_item.into())),
            maybe_text_cell(plan.map(|plan| plan.protocol.as_str())),
            text_cell(&self.software_version),
        ];
        let judge = plan.and_then(|plan| plan.judge.as_ref());
        self.last = vec![
            maybe_text_cell(protocol_name(benchmark)),
            maybe_text_cell(plan.map(|plan| plan.prompt_source.as_str())),
            maybe_text_cell(plan.map(|plan| plan.prompt_digest.as_str())),
            maybe_text_cell(judge.map(|judge| judge.model.as_str())),
            integer_cell(judge.map(|judge| judge.version.into())),
            maybe_text_cell(judge.map(|judge| judge.prompt_digest.as_str())),
            maybe_text_cell(judge.map(|judge| judge.prompt_source.as_str())),
            number_cell(judge.and_then(|judge| judge.generation.temperature)),
            judge.and_then(|judge| judge.generation.seed).map(|seed| seed.to_string()).unwrap_or_default(),
            integer_cell(judge.and_then(|judge| judge.generation.max_tokens).map(u64::from)),
            spec.rejudges.map(|rejudges| rejudges.run.to_string()).unwrap_or_default(),
            integer_cell(spec.rejudges.map(|rejudges| rejudges.version.into())),
            maybe_text_cell(benchmark.dataset().map(|dataset| dataset.digest.as_str())),
        ];
        self.origin = vec![
            text_cell(&spec.model.provider),
            maybe_text_cell(spec.model.endpoint_host.as_deref()),
            maybe_text_cell(judge.and_then(|judge| judge.endpoint_host.as_deref())),
            text_cell(&facts.overall_score_label),
        ];
        let estimates = benchmark.estimated_tokens();
        self.estimates = vec![integer_cell(estimates.answers), integer_cell(estimates.judge)];
        self.settings = self.has_settings.then(|| text_cell(&changed_settings(benchmark).join("; ")));
    }

    pub(crate) fn item(&mut self, item: &ItemRow) -> Result<(), csv::Error> {
        self.has_items = true;
        let view = &item.view;
        let cut_cell = |text: &Option<String>| maybe_text_cell(text.as_deref().map(cut));
        let compatible: [String; COMPATIBLE_ITEM_COLUMNS] = [
            text_cell(&view.item_id),
            cut_cell(&view.prompt),
            cut_cell(&view.response),
            cut_cell(&view.expected),
            bool_cell(view.is_correct).to_owned(),
            number_cell(view.score),
            integer_cell(view.latency_ms),
            maybe_text_cell(view.error.as_deref()),
        ];
        let ours: [String; ITEM_COLUMNS.len()] = [
            maybe_text_cell(view.item_hash.as_deref()),
            view.sample.to_string(),
            view.outcome.map(|outcome| outcome.to_string()).unwrap_or_default(),
            maybe_text_cell(view.reason.as_deref()),
            cut_cell(&view.extracted),
            bool_cell(Some(view.truncated)).to_owned(),
            maybe_text_cell(view.finish_reason.as_deref()),
            view.attempts.to_string(),
            integer_cell(view.input_tokens),
            integer_cell(view.output_tokens),
            maybe_text_cell(view.model_reported.as_deref()),
            view.outcome.map(|_| time_cell(view.created_at)).unwrap_or_default(),
        ];
        let reply = view.judge_output.as_ref().and_then(|output| output.get("reply")).and_then(Value::as_str);
        let judged = [cut_cell(&view.judge_prompt), maybe_text_cell(reply.map(cut))];
        let known = item.tokens_known.map(TokenSource::as_str).unwrap_or_default();
        let last = [maybe_text_cell(view.source_id.as_deref()), known.to_owned()];
        let code = view.error_code.map(|code| code.to_string()).unwrap_or_default();
        let detail = |name: &str| view.detail.as_ref()?.get(name);
        let text = |name: &str| maybe_text_cell(detail(name).and_then(Value::as_str));
        let turns = integer_cell(detail("turns").and_then(Value::as_u64));
        let episode = [text("agent"), turns, text("agent_end"), text("exception")];
        self.write(&compatible, &ours, &judged, &last, code, &episode)
    }

    /// Ends a benchmark. One without samples still gets one row.
    pub(crate) fn end_benchmark(&mut self) -> Result<(), csv::Error> {
        if self.has_items {
            return Ok(());
        }
        let none = |count| vec![String::new(); count];
        self.write(
            &none(COMPATIBLE_ITEM_COLUMNS),
            &none(ITEM_COLUMNS.len()),
            &none(JUDGE_COLUMNS.len()),
            &none(SOURCE_COLUMNS.len() + 1),
            String::new(),
            &none(EPISODE_COLUMNS.len()),
        )
    }

    /// Returns the bytes that were written since the last call.
    pub(crate) fn take(&mut self) -> Result<Vec<u8>, csv::Error> {
        let written = std::mem::replace(&mut self.writer, writer());
        written.into_inner().map_err(|error| csv::Error::from(error.into_error()))
    }

    fn write(
        &mut self,
        compatible: &[String],
        ours: &[String],
        judged: &[String],
        last: &[String],
        code: String,
        episode: &[String],
    ) -> Result<(), csv::Error> {
        let ours = self.after.iter().chain(ours).chain(&self.last).chain(judged);
        let ours =
            ours.chain(&self.origin).chain(last).chain(&self.estimates).chain([&code]).chain(&self.settings);
        let ours = ours.chain(episode.iter().filter(|_| self.has_episodes));
        self.writer.write_record(self.before.iter().chain(compatible).chain(ours))
    }
}

/// Returns true if an agent works on the items, which depends on the protocol.
fn has_agent(benchmark: &BenchmarkFacts) -> bool {
    let usual = bench_benchmarks::find(benchmark.record.name.as_str());
    let known =
        usual.map(|usual| bench_benchmarks::with_protocol(usual, protocol_name(benchmark)).unwrap_or(usual));
    known.is_some_and(|known| known.has_agent())
}

/// Describes the settings of a run that differ from the benchmark's own.
fn changed_settings(benchmark: &BenchmarkFacts) -> Vec<String> {
    benchmark.plan().map(Plan::changed_settings).unwrap_or_default()
}

fn writer() -> csv::Writer<Vec<u8>> {
    csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new())
}

/// Formats a time in UTC without a zone, as the compatible system does.
fn time_cell(time: Timestamp) -> String {
    time.to_string().trim_end_matches('Z').to_owned()
}
