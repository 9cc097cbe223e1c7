//! The report of a run as a PDF: everything about the run except prompts and answers.
//!
//! The file needs no stored answers, so callers who may see the run may have it, also if its dataset is gated.

mod benchmark;
mod numbers;
mod write;

use bench_benchmarks::{Benchmark, Metadata};
use bench_domain::budget::grouped;
use bench_domain::run::Plan;
use bench_domain::{Outcome, Timestamp};
use bench_report::Report;
use bench_report::content::{Date, Fact, Figure};

use self::benchmark::{benchmark, known};
pub(super) use self::numbers::percent;
pub(crate) use self::write::NamedKey;

use self::numbers::{dollars, time, tokens};
use crate::context::ExportsConfig;
use crate::file::facts::RunFacts;
use crate::file::results::DEMO_NOTICE;
use crate::file::wording::quoted;

/// Title, as in the compatible system.
const TITLE: &str = "Benchmark Run Report";
/// Maximum length of the changed settings in the summary, in characters.
const CHANGED_CHARS_MAX: usize = 350;
/// Maximum number of reported model ids that are listed.
const MODELS_LISTED_MAX: usize = 5;

/// Returns the content of a report. `fingerprint` is that of the key which signs archives of the run, if there is one.
fn report(facts: &RunFacts, config: &ExportsConfig, fingerprint: Option<&str>) -> Report {
    let spec = &facts.run.spec;
    Report {
        title: TITLE.to_owned(),
        model: spec.model.qualified(),
        run_id: spec.id.to_string(),
        warning: facts.is_demo().then(|| quoted(DEMO_NOTICE)),
        figures: figures(facts),
        facts: run_facts(facts),
        chart_legend: legend(facts),
        benchmarks: facts.benchmarks.iter().map(|found| benchmark(found, facts)).collect(),
        notes: notes(facts),
        environment: environment(facts, config),
        verification: verification(config),
        signature: signature(fingerprint),
        verify_url: config.verify_url.clone(),
        created: date(facts.completed_at),
        producer: format!("bench-runner {}", config.software_version),
    }
}

/// Explains the marks of the chart.
fn legend(facts: &RunFacts) -> String {
    let mut legend =
        "Dot: score. Bar: 95% confidence interval, whose method is on the page of the benchmark.".to_owned();
    if facts.benchmarks.iter().any(|found| found.score().is_none()) {
        legend.push_str(" No score: too few samples were graded.");
    }
    legend
}

fn figures(facts: &RunFacts) -> Vec<Figure> {
    let figure =
        |label: &str, value: String, detail: String| Figure { label: label.to_owned(), value, detail };
    let planned: u64 = facts.benchmarks.iter().map(|found| found.samples_planned()).sum();
    let graded: u64 = facts.benchmarks.iter().map(|found| found.tally.outcomes.graded()).sum();
    let done: u64 = facts.benchmarks.iter().map(|found| found.tally.samples_done).sum();
    let score = facts.run.state.overall_score();
    let score_detail = match score {
        Some(_) => facts.overall_score_label.clone(),
        None => {
            let missing = facts.benchmarks.iter().filter(|found| found.score().is_none());
            let missing: Vec<&str> = missing.map(|found| found.record.name.as_str()).collect();
            missing_score(&missing, facts.benchmarks.len(), facts.run.state.status().as_str())
        }
    };
    let none = || "–".to_owned();
    let (cost, cost_detail) = cost(facts);
    vec![
        figure("Overall score", score.map_or_else(none, percent), score_detail),
        figure(
            "Coverage",
            facts.coverage().map_or_else(none, percent),
            format!("{} of {} samples graded", grouped(graded), grouped(planned)),
        ),
        figure("Samples", grouped(done), format!("of {} planned", grouped(planned))),
        figure("Cost", cost, cost_detail),
    ]
}

/// Explains why a run has no overall score, by the names of its benchmarks without a score.
fn missing_score(missing: &[&str], benchmarks: usize, status: &str) -> String {
    match missing {
        [] => format!("none: the run has status {status}"),
        [only] => format!("none: {only} has no score"),
        several => format!("none: {} of {benchmarks} benchmarks have no score", several.len()),
    }
}

/// Returns the cost of all benchmarks, and what it includes. Without any known price, there is none.
fn cost(facts: &RunFacts) -> (String, String) {
    let reports = || facts.benchmarks.iter().filter_map(|found| found.record.state.report());
    let sum = |costs: Vec<f64>| (!costs.is_empty()).then(|| costs.iter().sum::<f64>());
    let answers = sum(reports().filter_map(|report| report.cost).map(|cost| cost.total_usd()).collect());
    let judge = sum(reports().filter_map(|report| report.judge_cost).map(|cost| cost.total_usd()).collect());
    let user = sum(reports().filter_map(|report| report.user_cost).map(|cost| cost.total_usd()).collect());
    let used: u64 = reports().map(|report| report.usage.total()).sum();
    let parts: Vec<String> = [("answers", answers), ("judge", judge), ("user", user)]
        .into_iter()
        .filter_map(|(name, usd)| usd.map(|usd| format!("{name} {}", dollars(usd))))
        .collect();
    let total = [answers, judge, user].into_iter().flatten().reduce(|sum, usd| sum + usd);
    match total {
        Some(total) if parts.len() > 1 && total > 0.0 => (dollars(total), parts.join(", ")),
        Some(total) => (dollars(total), tokens(used)),
        None if used == 0 => ("–".to_owned(), tokens(used)),
        None => ("–".to_owned(), format!("price unknown, {}", tokens(used))),
    }
}

fn run_facts(facts: &RunFacts) -> Vec<Fact> {
    let spec = &facts.run.spec;
    let state = &facts.run.state;
    let mut lines = vec![
        Fact::code("Run ID", spec.id.to_string()),
        Fact::new("Model", &spec.model.slug),
        Fact::new("Provider", &spec.model.provider),
    ];
    lines.extend(spec.model.endpoint_host.as_ref().map(|host| Fact::new("Endpoint", host)));
    lines.push(Fact::new("Subset", subset(facts)));
    lines.extend(spec.subset.seed.as_ref().map(|seed| Fact::code("Subset Seed", seed)));
    lines.push(Fact::new("Status", state.status().as_str()));
    lines.extend(state.started_at().map(|started| Fact::new("Started", time(started))));
    lines.push(Fact::new("Completed", time(facts.completed_at)));
    lines.extend(state.overall_score().map(|score| Fact::new("Overall Score", percent(score))));
    lines.extend(state.error().map(|error| Fact::new("Error", quoted(error))));
    let changed: Vec<(&str, Vec<String>)> = facts
        .benchmarks
        .iter()
        .map(|found| {
            (found.record.name.as_str(), found.plan().map(Plan::changed_settings).unwrap_or_default())
        })
        .filter(|(_, changed)| !changed.is_empty())
        .collect();
    lines.extend(changed_settings(&changed).map(|text| Fact::new("Changed settings", text)));
    lines
}

/// Describes the settings that differ from the benchmarks' own. If they are too many for the summary, it refers to the
/// parts of the benchmarks.
fn changed_settings(changed: &[(&str, Vec<String>)]) -> Option<String> {
    let listed: Vec<String> =
        changed.iter().map(|(name, settings)| format!("{name}: {}", settings.join(", "))).collect();
    let listed = listed.join("; ");
    match (changed.len(), listed.chars().count()) {
        (0, _) => None,
        (_, ..=CHANGED_CHARS_MAX) => Some(listed),
        (1, _) => Some("see “Settings that differ from the benchmark's own”".to_owned()),
        (several, _) => Some(format!(
            "of {several} benchmarks, see “Settings that differ from the benchmark's own” of each"
        )),
    }
}

/// Describes the evaluated part of each benchmark.
fn subset(facts: &RunFacts) -> String {
    let spec = &facts.run.spec;
    match (spec.items.len() as u64, spec.subset.count) {
        (0, None) => format!("{}%", spec.subset.pct),
        (0, Some(count)) => format!("{} {}", grouped(count), if count == 1 { "item" } else { "items" }),
        (chosen, _) => format!("{} chosen {}", grouped(chosen), if chosen == 1 { "item" } else { "items" }),
    }
}

fn notes(facts: &RunFacts) -> Vec<String> {
    let count = facts.benchmarks.len();
    let benchmarks = if count == 1 { "benchmark" } else { "benchmarks" };
    let mut notes = vec![format!(
        "This report describes the run as completed on {}: {count} {benchmarks}, subset {}.",
        time(facts.completed_at),
        subset(facts),
    )];
    let is_part = |planned: u64, dataset: u64| planned > 0 && planned < dataset;
    let is_sample = facts
        .benchmarks
        .iter()
        .any(|found| found.plan().is_some_and(|plan| is_part(plan.items, plan.dataset_items)));
    if is_sample {
        notes.push(
            "The metrics come from a sample of the items. The intervals show how far the score of the whole dataset may \
             be from them."
                .to_owned(),
        );
    }
    let errors: u64 =
        facts.benchmarks.iter().map(|found| found.tally.outcomes.get(Outcome::InfrastructureError)).sum();
    if errors > 0 {
        notes.push(format!(
            "{} samples ended with an infrastructure-error. They say nothing about the model's answers, so they lower the \
             coverage instead of the score.",
            grouped(errors)
        ));
    }
    let known = facts.benchmarks.iter().map(|found| known(facts, &found.record.name));
    notes.extend(score_notes(known));
    notes.push("Coverage is the share of planned samples that were graded.".to_owned());
    notes.push("This report contains no prompts, answers or gold answers.".to_owned());
    notes
}

/// Explains the scores: those that are means of samples, and those that are an index.
fn score_notes(benchmarks: impl Iterator<Item = Option<&'static dyn Benchmark>>) -> Vec<String> {
    let (mut has_means, mut indices) = (false, Vec::new());
    for known in benchmarks {
        let index = known.filter(|known| !known.scores_are_shares());
        match index.map(|known| known.metadata()) {
            Some(Metadata { name, metrics: [metric, ..], .. }) => indices.push(format!(
                "The score of {name} is its {}, from -100% to 100%: right answers count for it, wrong ones against it.",
                metric.replace('_', " ")
            )),
            _ => has_means = true,
        }
    }
    let means = match indices.is_empty() {
        true => "The score of a benchmark is the mean over its graded samples.",
        false => "The score of every other benchmark is the mean over its graded samples.",
    };
    indices.extend(has_means.then(|| means.to_owned()));
    indices
}

fn environment(facts: &RunFacts, config: &ExportsConfig) -> Vec<Fact> {
    let spec = &facts.run.spec;
    let mut lines = vec![Fact::new("Program", format!("bench-runner {}", config.software_version))];
    lines.extend(config.git_sha.as_ref().map(|sha| Fact::code("Commit", sha)));
    lines.push(Fact::new("Run ordered with", format!("bench-runner {}", spec.software)));
    lines.push(Fact::new("Ordered", time(spec.created_at)));
    if let Some(rejudged) = &spec.rejudges {
        let text = format!("answers of run {}, judged as version {}", rejudged.run, rejudged.version);
        lines.push(Fact::new("Rejudges", text));
    }
    if facts.run.generation > 1 {
        lines.push(Fact::new("Generation", format!("{} (the run was requeued)", facts.run.generation)));
    }
    let models: Vec<&str> = facts.models().into_iter().collect();
    if !models.is_empty() {
        let listed = models.get(..models.len().min(MODELS_LISTED_MAX)).unwrap_or_default().join(", ");
        let more = models.len().saturating_sub(MODELS_LISTED_MAX);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        lines.push(Fact::new("Models as reported", format!("{listed}{more}")));
    }
    lines.push(Fact::new("Minimum coverage", percent(spec.coverage_min)));
    if let Some(price) = spec.price {
        let text = format!(
            "${} per million input tokens, ${} per million output tokens",
            price.input_per_million_usd, price.output_per_million_usd
        );
        lines.push(Fact::new("Price", text));
    }
    let budget = [
        spec.budget.usd.map(dollars),
        spec.budget.tokens.map(|tokens| format!("{} tokens", grouped(tokens))),
    ];
    let budget: Vec<String> = budget.into_iter().flatten().collect();
    if !budget.is_empty() {
        lines.push(Fact::new("Budget", budget.join(", ")));
    }
    if let Some(user) = &spec.user {
        lines.push(Fact::new("User model", user.model.qualified()));
    }
    let limits = &spec.limits;
    let limits = [
        limits.requests_per_minute.map(|limit| format!("{} requests per minute", grouped(limit.into()))),
        limits.timeout_seconds.map(|limit| format!("{} s for one answer", grouped(limit.into()))),
        limits.max_failures.map(|limit| format!("{} failures", grouped(limit.into()))),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    if !limits.is_empty() {
        lines.push(Fact::new("Limits", limits.join(", ")));
    }
    lines
}

fn verification(config: &ExportsConfig) -> Vec<String> {
    let check = match &config.verify_url {
        Some(_) => "Readers can check an archive on the page below, or with “bench verify FILE”.",
        None => "Readers can check an archive with “bench verify FILE”, or on the page Verify of the server.",
    };
    vec![
        "This PDF is for reading and isn't signed. The signed archive of the same run (“bench export RUN”, or \
         “format=zip”) has every sample with its prompt, answer and verdict, and the results above follow from it."
            .to_owned(),
        format!("{check} The archive is genuine if its manifest has this run's id and is signed by the key below."),
    ]
}

fn signature(fingerprint: Option<&str>) -> Vec<Fact> {
    match fingerprint {
        Some(fingerprint) => {
            vec![Fact::new("Algorithm", "Ed25519"), Fact::code("Key fingerprint", fingerprint)]
        }
        None => vec![Fact::new("Key", "none: this server has no usable signing key")],
    }
}

fn date(time: Timestamp) -> Date {
    let instant = jiff::Timestamp::from_second(time.as_seconds()).unwrap_or_default();
    let civil = instant.to_zoned(jiff::tz::TimeZone::UTC).datetime();
    let small = |number: i8| u8::try_from(number).unwrap_or(0);
    Date {
        year: u16::try_from(civil.year()).unwrap_or(0),
        month: small(civil.month()),
        day: small(civil.day()),
        hour: small(civil.hour()),
        minute: small(civil.minute()),
        second: small(civil.second()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_overall_score_is_explained() {
        assert_eq!(missing_score(&["aime_2025"], 2, "failed"), "none: aime_2025 has no score");
        assert_eq!(missing_score(&["a", "b"], 5, "failed"), "none: 2 of 5 benchmarks have no score");
        assert_eq!(missing_score(&[], 1, "cancelled"), "none: the run has status cancelled");
    }

    #[test]
    fn the_summary_names_changed_settings() {
        assert_eq!(changed_settings(&[]), None);
        let one = (
            "mmlu_pro",
            vec!["temperature 0.6 (benchmark: 0)".to_owned(), "samples 4 (benchmark: 1)".to_owned()],
        );
        let listed = "mmlu_pro: temperature 0.6 (benchmark: 0), samples 4 (benchmark: 1)";
        assert_eq!(changed_settings(std::slice::from_ref(&one)).as_deref(), Some(listed));
        let long = ("aime_2025", vec!["x".repeat(350)]);
        let text = changed_settings(&[one, long]).unwrap();
        assert!(text.starts_with("of 2 benchmarks, see “Settings that differ"), "{text}");
    }

    #[test]
    fn an_index_is_not_called_a_mean() {
        let notes = |names: &[&str]| score_notes(names.iter().map(|name| bench_benchmarks::find(name)));
        assert_eq!(notes(&["mmlu_pro"]), ["The score of a benchmark is the mean over its graded samples."]);
        let index = "The score of aa_omniscience is its omniscience index, from -100% to 100%: right answers count for \
                     it, wrong ones against it.";
        assert_eq!(notes(&["aa_omniscience"]), [index]);
        let others = "The score of every other benchmark is the mean over its graded samples.";
        assert_eq!(notes(&["mmlu_pro", "aa_omniscience"]), [index, others]);
    }
}
