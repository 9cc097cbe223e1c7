//! The part of a report about one benchmark.

use bench_benchmarks::{Metadata, find_for_run};
use bench_domain::budget::grouped;
use bench_domain::report::BenchmarkReport;
use bench_domain::run::Plan;
use bench_domain::{BenchmarkName, Generation};
use bench_report::content::{Benchmark, Fact, Figure, Score, Table};
use bench_web::views::IntervalView;
use serde_json::{Map, Value};

use super::numbers::{dollars, duration, metric, percent, tokens};
use crate::file::facts::{BenchmarkFacts, RunFacts};
use crate::file::results::protocol_name;
use crate::file::wording::{self, quoted};

/// Maximum number of additional results that are listed.
const EXTRAS_MAX: usize = 40;

pub(super) fn benchmark(found: &BenchmarkFacts, facts: &RunFacts) -> Benchmark {
    let metadata = known(facts, &found.record.name).map(|known| known.metadata());
    let report = found.record.state.report();
    let name = metadata.map_or_else(|| found.record.name.to_string(), Metadata::listed_name);
    let interval = report.and_then(IntervalView::from_report);
    let score =
        found.score().map(|value| Score { value, interval: interval.map(|range| (range.low, range.high)) });
    let outcomes = found.tally.outcomes.iter().filter(|(_, count)| *count > 0);
    Benchmark {
        heading: metadata.map_or_else(|| name.clone(), |metadata| metadata.display_name.to_owned()),
        description: metadata.map(|metadata| quoted(metadata.description)).unwrap_or_default(),
        name,
        status: found.record.state.status().as_str().to_owned(),
        score,
        problem: found.record.state.error().map(quoted),
        items: format!("{}/{}", grouped(found.items_planned()), grouped(found.tally.items_done)),
        samples: facts
            .has_several_samples()
            .then(|| format!("{}/{}", grouped(found.samples_planned()), grouped(found.tally.samples_done))),
        coverage: found.coverage().map_or_else(|| "-".to_owned(), percent),
        figures: figures(found, interval),
        facts: facts_of(found, metadata),
        outcomes: outcomes.map(|(outcome, count)| (outcome.to_string(), count)).collect(),
        tables: report.map(|report| groups(report, metadata)).into_iter().flatten().collect(),
        lists: lists(found, metadata),
    }
}

/// Returns a benchmark as the run ordered it; `None` if this version of the program doesn't know it.
pub(super) fn known(
    facts: &RunFacts,
    name: &BenchmarkName,
) -> Option<&'static dyn bench_benchmarks::Benchmark> {
    find_for_run(&facts.run.spec, name).or_else(|| bench_benchmarks::find(name.as_str()))
}

fn figures(found: &BenchmarkFacts, interval: Option<IntervalView>) -> Vec<Figure> {
    let figure =
        |label: &str, value: String, detail: String| Figure { label: label.to_owned(), value, detail };
    let none = || "–".to_owned();
    let report = found.record.state.report();
    let interval = interval.map_or_else(
        || "no interval".to_owned(),
        |range| format!("95% interval {} – {}", percent(range.low), percent(range.high)),
    );
    let cost = report.and_then(|report| report.cost).map(|cost| cost.total_usd());
    let used = report.map_or(0, |report| report.usage.total());
    let in_dataset = found.plan().map_or(0, |plan| plan.dataset_items);
    let graded = found.tally.outcomes.graded();
    vec![
        figure("Score", found.score().map_or_else(none, percent), interval),
        figure(
            "Coverage",
            found.coverage().map_or_else(none, percent),
            format!("{} of {} samples graded", grouped(graded), grouped(found.samples_planned())),
        ),
        figure(
            "Items",
            grouped(found.items_planned()),
            match found.plan().map_or(1, |plan| plan.samples_per_item) {
                0 | 1 => format!("of {} in the dataset", grouped(in_dataset)),
                several => format!("of {} in the dataset, {several} samples of each", grouped(in_dataset)),
            },
        ),
        figure("Cost of answers", cost.map_or_else(none, dollars), tokens(used)),
    ]
}

fn facts_of(found: &BenchmarkFacts, metadata: Option<&Metadata>) -> Vec<(String, Vec<Fact>)> {
    let report = found.record.state.report();
    let parts = [
        ("Protocol", found.plan().map(|plan| protocol(found, plan, metadata))),
        ("Dataset", found.plan().map(dataset)),
        ("Judge", found.plan().and_then(judge)),
        ("Statistics", report.map(statistics)),
        ("Usage and cost", report.map(usage)),
        ("Further results", report.map(|report| extras(&report.extra))),
    ];
    let parts = parts.into_iter().filter_map(|(heading, facts)| Some((heading.to_owned(), facts?)));
    parts.filter(|(_, facts)| !facts.is_empty()).collect()
}

fn protocol(found: &BenchmarkFacts, plan: &Plan, metadata: Option<&Metadata>) -> Vec<Fact> {
    let mut lines = vec![Fact::new("Protocol", quoted(&plan.protocol))];
    lines.extend(protocol_name(found).map(|name| Fact::new("Short name", name)));
    lines.extend(metadata.map(|metadata| Fact::new("Parser", quoted(metadata.parser))));
    lines.push(Fact::new("Samples per item", plan.samples_per_item.to_string()));
    if !plan.options.is_empty() {
        let options: Vec<String> =
            plan.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        lines.push(Fact::new("Options", options.join(", ")));
    }
    lines.push(Fact::new("Model settings", settings(&plan.generation)));
    lines.extend(template(&plan.prompt_source, &plan.prompt_digest));
    lines
}

fn dataset(plan: &Plan) -> Vec<Fact> {
    let used = &plan.dataset;
    let source = match used.is_demo() {
        true => "demo data that came with the program".to_owned(),
        false => used.source.clone(),
    };
    let mut lines = vec![
        Fact::new("Dataset", &used.id),
        Fact::code("Revision", &used.revision),
        Fact::new("Source", source),
        Fact::code("SHA-256 of the items", &used.digest),
        Fact::new(
            "Items",
            format!("{} of {} were evaluated", grouped(plan.items), grouped(plan.dataset_items)),
        ),
    ];
    lines.extend(used.note.as_ref().map(|note| Fact::new("Note", quoted(note))));
    lines
}

fn judge(plan: &Plan) -> Option<Vec<Fact>> {
    let judge = plan.judge.as_ref()?;
    let note = wording::judge_note(&judge.model);
    let model = note.map_or_else(|| judge.model.clone(), |note| format!("{} ({note})", judge.model));
    let mut lines = vec![Fact::new("Model", model)];
    lines.extend(judge.endpoint_host.as_ref().map(|host| Fact::new("Endpoint", host)));
    if judge.version > 1 {
        lines.push(Fact::new("Judging", format!("number {}", judge.version)));
    }
    // Without a model, there are no settings and no prompt.
    if note.is_none() {
        lines.push(Fact::new("Model settings", settings(&judge.generation)));
        lines.extend(template(&judge.prompt_source, &judge.prompt_digest));
    }
    Some(lines)
}

/// Describes the texts of a prompt, with their digest below if there are any.
fn template(source: &str, digest: &str) -> Vec<Fact> {
    match wording::prompt(source, digest) {
        (texts, None) => vec![Fact::new("Prompt template", texts)],
        (texts, Some(digest)) => vec![
            Fact::new("Prompt template", format!("{texts}, with this digest:")),
            // Without a label, so that it stays with the line above.
            Fact::code("", digest),
        ],
    }
}

/// Describes generation settings in a line. Those that are missing are the provider's.
fn settings(generation: &Generation) -> String {
    let set = generation.facts().into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?)));
    let set: Vec<String> = set.collect();
    if set.is_empty() { "those of the provider".to_owned() } else { set.join(", ") }
}

fn statistics(report: &BenchmarkReport) -> Vec<Fact> {
    let mut lines = Vec::new();
    if report.score.is_none() {
        let graded = report.score_of_graded.map(|score| Fact::new("Mean of graded", percent(score)));
        lines.extend(graded);
    }
    lines.push(Fact::new("Correct of all planned", percent(report.accuracy_all)));
    if let Some(interval) = IntervalView::from_report(report) {
        let method = match interval.method {
            "wilson" => "Wilson score interval of a share, 95%",
            _ => "Student's t with standard errors clustered by item, 95%",
        };
        lines.push(Fact::new("Interval", method));
    }
    if report.samples_per_item > 1 {
        lines.extend(report.mean_of_items.map(|mean| Fact::new("Mean of items", percent(mean))));
    }
    for (name, estimates) in [("pass@k", &report.pass_at), ("pass^k", &report.pass_hat)] {
        if estimates.len() > 1 {
            let values =
                estimates.iter().map(|(k, estimate)| format!("{} for k = {k}", percent(estimate.value)));
            lines.push(Fact::new(name, values.collect::<Vec<_>>().join(", ")));
        }
    }
    if report.truncated_answers > 0 {
        let count = format!("{} cut off by the token limit", grouped(report.truncated_answers));
        lines.push(Fact::new("Answers", count));
    }
    lines
}

fn usage(report: &BenchmarkReport) -> Vec<Fact> {
    let in_and_out = |usage: &bench_domain::Usage| {
        let reasoning = match usage.reasoning_tokens {
            0 => String::new(),
            reasoning => format!(", {} of them reasoning", grouped(reasoning)),
        };
        format!("{} in, {} out{reasoning}", grouped(usage.input_tokens), grouped(usage.output_tokens))
    };
    let mut lines = vec![Fact::new("Tokens of answers", in_and_out(&report.usage))];
    if report.without_usage > 0 {
        let count = format!("{} answers, whose tokens aren't included", grouped(report.without_usage));
        lines.push(Fact::new("Not counted", count));
    }
    lines.extend(report.cost.map(|cost| Fact::new("Cost of answers", dollars(cost.total_usd()))));
    lines
        .extend(report.judge_usage.as_ref().map(|usage| Fact::new("Tokens of the judge", in_and_out(usage))));
    lines.extend(report.judge_cost.map(|cost| Fact::new("Cost of the judge", dollars(cost.total_usd()))));
    lines.extend(
        report.user_spent.as_ref().map(|usage| Fact::new("Tokens of the user model", in_and_out(usage))),
    );
    lines.extend(report.user_cost.map(|cost| Fact::new("Cost of the user model", dollars(cost.total_usd()))));
    if let Some(latency) = report.latency_ms {
        let text =
            format!("{} median, {} for 95% of the answers", duration(latency.p50), duration(latency.p95));
        lines.push(Fact::new("Time per answer", text));
    }
    lines
}

/// Returns additional results that are single numbers, texts or Booleans.
fn extras(extra: &Map<String, Value>) -> Vec<Fact> {
    let text = |name: &str, value: &Value| match value {
        Value::Number(number) => metric(name, number),
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(if *flag { "yes" } else { "no" }.to_owned()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let listed =
        extra.iter().filter_map(|(name, value)| Some(Fact::new(name.replace('_', " "), text(name, value)?)));
    listed.take(EXTRAS_MAX).collect()
}

/// Returns the table of scores by group, if there are several groups.
fn groups(report: &BenchmarkReport, metadata: Option<&Metadata>) -> Option<Table> {
    if report.groups.len() < 2 {
        return None;
    }
    let noun = metadata.map_or("groups", |metadata| metadata.group_noun).replace('_', " ");
    let row = |(name, group): (&String, &bench_domain::report::GroupReport)| {
        vec![
            if name.is_empty() { "(none)".to_owned() } else { name.clone() },
            grouped(group.graded),
            grouped(group.correct),
            group.score.map_or_else(|| "-".to_owned(), percent),
        ]
    };
    Some(Table {
        heading: format!("Scores by {noun}"),
        columns: ["Group", "Graded", "Correct", "Score"].map(str::to_owned).to_vec(),
        rows: report.groups.iter().map(row).collect(),
    })
}

fn lists(found: &BenchmarkFacts, metadata: Option<&Metadata>) -> Vec<(String, Vec<String>)> {
    let changed = found.plan().map(Plan::changed_settings).unwrap_or_default();
    // The report has no causes if the dataset is gated, since an error text may quote an item.
    let causes = found.record.state.report().map(|report| report.error_causes.as_slice()).unwrap_or_default();
    let causes =
        causes.iter().map(|cause| format!("{} × {}", grouped(cause.count), quoted(&cause.message))).collect();
    let deviations = metadata.map(|metadata| metadata.deviations).unwrap_or_default();
    let mut deviations: Vec<String> = deviations.iter().map(|text| quoted(text)).collect();
    if deviations.is_empty() && metadata.is_some() {
        deviations.push("None are known.".to_owned());
    }
    vec![
        ("Settings that differ from the benchmark's own".to_owned(), changed),
        ("Causes of infrastructure-errors".to_owned(), causes),
        ("Deviations from the authors’ program".to_owned(), deviations),
    ]
}
