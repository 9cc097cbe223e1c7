//! Tables of schedules and their history.

use bench_domain::Timestamp;

use super::{Difference, Firing, Schedule};
use crate::causes;
use crate::format;
use crate::page::Page;
use crate::run_ref::ShortIds;
use crate::show::{benchmark_name, benchmark_names};
use crate::table::{Column, Table};
use crate::views::model_label;

/// Builds a table of schedules.
pub(super) fn list(schedules: &[Schedule]) -> Table {
    let short = ShortIds::new(schedules.iter().map(|schedule| schedule.id.as_str()));
    let mut table = Table::new([
        Column::words("name"),
        Column::words("when"),
        Column::path("model"),
        Column::words("benchmarks"),
        Column::words("next (UTC)"),
        Column::words("last"),
        Column::text("id").drop_as(1),
    ]);
    for schedule in schedules {
        let next = match schedule.next_times.first() {
            Some(next) => format::minute(*next),
            None if schedule.enabled => "never".to_owned(),
            None => "disabled".to_owned(),
        };
        table.row([
            schedule.name.clone(),
            when(schedule),
            schedule.model.clone(),
            benchmarks(schedule),
            next,
            schedule.last.as_ref().map_or_else(|| "-".to_owned(), outcome),
            short.get(&schedule.id),
        ]);
    }
    table
}

/// Describes a schedule, one line per field.
pub(super) fn detail(schedule: &Schedule) -> Page {
    let mut page = Page::new(2, 13);
    page.heading(&schedule.name);
    let mut field = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            page.field(&format!("{name}:"), value);
        }
    };
    field("id", Some(schedule.id.clone()));
    field("when", Some(when(schedule)));
    if schedule.enabled {
        let mut name = "next";
        for time in &schedule.next_times {
            field(name, Some(local(*time, &schedule.time_zone)));
            name = "then";
        }
    } else {
        field("next", Some("never: the schedule is disabled".to_owned()));
    }
    let label = model_label(&schedule.model, schedule.benchmarks.iter().map(String::as_str));
    field(label, Some(schedule.model.clone()));
    field("benchmarks", Some(benchmarks(schedule)));
    field("tasks", (!schedule.tasks.is_empty()).then(|| schedule.tasks.join(", ")));
    let seed = schedule.subset_seed.as_ref().map_or_else(String::new, |seed| format!(", seed {seed}"));
    field(
        "items",
        match (schedule.items.len() as u64, schedule.subset_count, schedule.subset_pct) {
            (0, Some(count), _) => Some(format!("{}{seed}", format::count(count))),
            (0, None, pct @ 1..=99) => Some(format!("{pct}%{seed}")),
            (0, None, _) => None,
            (named, _, _) => Some(format::plural(named, "named item")),
        },
    );
    for (name, value) in schedule.settings.shown() {
        field(name, value);
    }
    let protocols = schedule.protocols.iter().map(|(name, protocol)| format!("{name}={protocol}"));
    let protocols: Vec<String> = protocols.collect();
    field("protocols", (!protocols.is_empty()).then(|| protocols.join(", ")));
    for (name, options) in &schedule.benchmark_options {
        field("options", Some(format!("{name}: {}", crate::commands::options::format_options(options))));
    }
    field("tags", (!schedule.tags.is_empty()).then(|| schedule.tags.join(", ")));
    field("visibility", (!schedule.visibility.is_public()).then(|| schedule.visibility.to_string()));
    field("notes", schedule.notes.as_ref().map(|notes| notes.replace('\n', "\n               ")));
    field("judge", schedule.judge.as_ref().map(|judge| judge.model.clone()));
    field("user model", schedule.user_model.as_ref().map(|user| user.model.clone()));
    let budget: Vec<String> = [
        schedule.budget_usd.map(format::dollars),
        schedule.budget_tokens.map(|tokens| format!("{} tokens", format::count(tokens))),
    ]
    .into_iter()
    .flatten()
    .collect();
    field("budget", (!budget.is_empty()).then(|| format!("{} per run", budget.join(", "))));
    field("key", Some(if schedule.own_key { "the caller's" } else { "the operator's" }.to_owned()));
    field(
        "webhook",
        match (&schedule.webhook_url, schedule.has_webhook) {
            (Some(url), _) => Some(url.clone()),
            (None, true) => Some("shown to the owner only".to_owned()),
            (None, false) => None,
        },
    );
    field("created", Some(format!("{} UTC", format::minute(schedule.created_at))));
    let is_changed = schedule.updated_at != schedule.created_at;
    field("changed", is_changed.then(|| format!("{} UTC", format::minute(schedule.updated_at))));
    field(
        "last",
        schedule
            .last
            .as_ref()
            .map(|last| format!("{} UTC: {}", format::minute(last.planned_at), outcome(last))),
    );
    page
}

/// Builds a table of planned times and their results.
pub(super) fn history(firings: &[Firing]) -> Table {
    let short = ShortIds::new(firings.iter().filter_map(|firing| firing.run_id.as_deref()));
    let mut table = Table::new([
        Column::text("planned (UTC)"),
        Column::words("result"),
        Column::number("score"),
        Column::words("difference to the run before (95% interval)"),
        Column::text("run"),
    ]);
    for firing in firings {
        table.row([
            format::minute(firing.planned_at),
            state(firing),
            format::percent(firing.score),
            differences(firing),
            firing.run_id.as_deref().map_or_else(|| "-".to_owned(), |run| short.get(run)),
        ]);
    }
    table
}

fn when(schedule: &Schedule) -> String {
    format!("{} {}", schedule.cron, schedule.time_zone)
}

fn benchmarks(schedule: &Schedule) -> String {
    let demo = if schedule.demo { " (DEMO)" } else { "" };
    format!("{}{demo}", benchmark_names(schedule.benchmarks.iter().map(String::as_str)))
}

/// Formats a time in a zone, with UTC beside it.
pub(super) fn local(time: Timestamp, zone: &str) -> String {
    let utc = format!("{} UTC", format::minute(time));
    let zoned = jiff::Timestamp::from_second(time.as_seconds()).ok().and_then(|time| time.in_tz(zone).ok());
    match zoned.filter(|_| zone != "UTC") {
        Some(zoned) => format!("{} {zone} ({utc})", zoned.strftime("%a %Y-%m-%d %H:%M")),
        None => utc,
    }
}

/// Summarizes a firing in a few words.
fn outcome(firing: &Firing) -> String {
    let regressed = firing.comparison.as_ref().is_some_and(|comparison| comparison.regressed);
    let score = firing.score.map_or_else(String::new, |score| format!(" {}", format::percent(Some(score))));
    let worse = if regressed { " REGRESSED" } else { "" };
    let state = match firing.status.as_str() {
        "ended" => firing.run_status.clone().unwrap_or_else(|| "run deleted".to_owned()),
        other => other.replace('_', " "),
    };
    format!("{state}{score}{worse}")
}

fn state(firing: &Firing) -> String {
    let mut text = match firing.status.as_str() {
        "ended" => firing.run_status.clone().unwrap_or_else(|| "run deleted".to_owned()),
        other => other.replace('_', " "),
    };
    if firing.missed_earlier > 0 {
        text.push_str(&format!(" (and {} earlier)", format::count(firing.missed_earlier)));
    }
    if firing.overdue_at.is_some() {
        text.push_str(", late");
    }
    if let Some(error) = &firing.error {
        text.push_str(&format!(": {}", causes::readable(error)));
    }
    if let Some(code) = firing.error_code {
        text.push_str(&format!(" ({code})"));
    }
    text
}

fn differences(firing: &Firing) -> String {
    let Some(comparison) = &firing.comparison else { return "-".to_owned() };
    let lines: Vec<String> = comparison.benchmarks.iter().map(difference).collect();
    lines.join("\n")
}

fn difference(found: &Difference) -> String {
    let regressed = if found.regressed { " REGRESSED" } else { "" };
    let interval = found.interval.map(|interval| (interval.low, interval.high));
    let numbers = found
        .difference
        .map_or_else(|| "no items in common".to_owned(), |difference| format::points(difference, interval));
    format!("{} {numbers}{regressed}", benchmark_name(&found.benchmark_name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn firing() -> Firing {
        serde_json::from_value(json!({
            "planned_at": "2026-03-01T01:30:00Z", "status": "ended", "run_status": "succeeded", "score": 0.5,
            "run_id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "error": null, "overdue_at": null,
            "comparison": { "regressed": true, "benchmarks": [{ "benchmark_name": "mmlu_pro", "items": 100,
                "difference": -0.12, "interval": { "low": -0.2, "high": -0.04 }, "regressed": true }] }
        }))
        .unwrap()
    }

    #[test]
    fn a_regression_is_marked() {
        let text = history(&[firing()]).to_string();
        for part in
            ["2026-03-01 01:30", "succeeded", "50.0%", "-12.0 pp (-20.0 to -4.0) REGRESSED", "3f2b8c1e"]
        {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert_eq!(outcome(&firing()), "succeeded 50.0% REGRESSED");
    }

    #[test]
    fn an_error_is_shown_with_its_code() {
        let state_with_code = |code| {
            let firing = serde_json::from_value(json!({
                "planned_at": "2026-03-01T01:30:00Z", "status": "not_started", "run_status": null, "score": null,
                "run_id": null, "error": "its own key is gone", "error_code": code, "overdue_at": null,
                "comparison": null
            }));
            state(&firing.unwrap())
        };
        assert_eq!(state_with_code(json!("key_required")), "not started: its own key is gone (key_required)");
        for without in [json!(null), json!("not_invented_yet")] {
            assert_eq!(state_with_code(without), "not started: its own key is gone");
        }
    }

    #[test]
    fn a_time_is_shown_in_its_zone() {
        let time: Timestamp = "2026-07-01T00:30:00Z".parse().unwrap();
        assert_eq!(local(time, "Europe/Berlin"), "Wed 2026-07-01 02:30 Europe/Berlin (2026-07-01 00:30 UTC)");
        assert_eq!(local(time, "UTC"), "2026-07-01 00:30 UTC");
    }

    fn schedule(name: &str, model: &str) -> Schedule {
        serde_json::from_value(json!({
            "id": "9a8b7c6d-7d4a-4f60-9b1e-0a5c6d7e8f90", "name": name, "cron": "30 2 * * *", "time_zone": "Europe/Berlin",
            "enabled": true, "next_times": ["2026-03-02T01:30:00Z"], "model": model,
            "benchmarks": ["mmlu_pro", "gpqa_diamond"], "subset_pct": 10, "subset_count": null, "subset_seed": "s",
            "items": [], "demo": false, "budget_usd": 5.0, "budget_tokens": null, "own_key": true, "has_webhook": false,
            "webhook_url": null, "created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:05Z", "last": null,
        }))
        .unwrap()
    }

    #[test]
    fn screen_of_schedules() {
        let mut other = schedule("nightly", "openai-compatible/qwen3");
        other.last = Some(firing());
        let all = [schedule("weekly comparison", "chutes/deepseek-ai/DeepSeek-V3-0324"), other];
        crate::screen_tests::check("schedules", |layout| list(&all).render(layout));
        crate::screen_tests::check("schedule", |layout| detail(&all[1]).render(layout));
        crate::screen_tests::check("history", |layout| history(&[firing(), firing()]).render(layout));
    }
}
