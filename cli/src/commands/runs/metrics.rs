//! Tables of the metrics of a benchmark: by group, over several samples per item, and those of its protocol.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::format;
use crate::page::Page;
use crate::run_ref::ShortIds;
use crate::table::{Column, Table};
use crate::views::Benchmark;

/// Maximum number of rows of a table to show. `--json` has all of them.
const ROWS_MAX: usize = 40;
/// Fields of every report, which are shown elsewhere, and the fields of the compatible system.
const COMMON: [&str; 35] = [
    "accuracy",
    "accuracy_all",
    "clustered",
    "correct",
    "cost",
    "coverage",
    "coverage_min",
    "error_causes",
    "graded",
    "groups",
    "items",
    "judge_cost",
    "judge_spent",
    "judge_usage",
    "latency_ms",
    "mean_of_items",
    "outcomes",
    "pass_at",
    "pass_hat",
    "planned",
    "sampled_items",
    "sampled_pct",
    "samples_per_item",
    "score",
    "score_of_graded",
    "spent",
    "subset_count",
    "subset_seed",
    "total_items",
    "truncated_answers",
    "usage",
    "user_cost",
    "user_spent",
    "wilson_95",
    "without_usage",
];
/// Metrics that official programs state in percent.
const PERCENTAGES: [&str; 4] =
    ["accuracy_official", "half_width", "calibration_error", "calibration_error_all_bins"];
/// Metrics that are neither shares nor percentages.
const POINTS: [&str; 1] = ["omniscience_index"];
/// Fields of groups that come first.
const FIRST: [&str; 5] = ["score", "omniscience_index", "accuracy", "strict", "loose"];

/// Table that may have more rows than are shown.
struct Rows {
    title: String,
    table: Table,
    /// Number of all rows.
    total: usize,
}

/// Adds the metrics of a benchmark of the run `id` to the run's page.
pub(super) fn add(page: &mut Page, id: &str, benchmark: &Benchmark) {
    let Some(metrics) = &benchmark.metrics else { return };
    let own = || metrics.iter().filter(|(name, _)| !COMMON.contains(&name.as_str()));
    let by_group = own().filter_map(|(name, value)| Some((name.as_str(), groups(value)?)));
    let mut by_group: Vec<(&str, &Map<String, Value>)> = by_group.collect();
    if by_group.is_empty() {
        by_group.extend(metrics.get("groups").and_then(groups).map(|found| ("groups", found)));
    }
    let rows = |name: &str, (table, total)| Rows {
        title: format!("{}: {name}", benchmark.listed_name()),
        table,
        total,
    };
    let mut tables = Vec::new();
    tables.extend(pass_table(benchmark).map(|table| rows("several samples per item", table)));
    let figures = own().filter(|(_, value)| groups(value).is_none());
    tables.extend(figures_table(figures).map(|table| rows("metrics", table)));
    tables.extend(by_group.into_iter().map(|(name, found)| rows(&words(name), group_table(found))));
    for Rows { title, table, total } in tables {
        page.blank();
        page.heading(title);
        page.table(table);
        if total > ROWS_MAX {
            let id = ShortIds::new([id]).get(id);
            page.text("", format!("the first {ROWS_MAX} of {total} rows; `bench runs {id} --json` has all"));
        }
    }
}

/// Returns the groups of a metric that has an object of figures for each.
fn groups(value: &Value) -> Option<&Map<String, Value>> {
    value.as_object().filter(|groups| !groups.is_empty() && groups.values().all(Value::is_object))
}

/// Builds a table of pass@k and pass^k, and counts its rows.
fn pass_table(benchmark: &Benchmark) -> Option<(Table, usize)> {
    let sampled = benchmark.sampled()?;
    let ks: BTreeSet<u32> = sampled.pass_at.iter().chain(&sampled.pass_hat).map(|(k, _)| *k).collect();
    if ks.is_empty() {
        return None;
    }
    let total = ks.len();
    let value = |values: &[(u32, f64)], k: u32| {
        format::percent(values.iter().find(|(of, _)| *of == k).map(|(_, value)| *value))
    };
    let mut table = Table::new(["k", "pass@k", "pass^k"].map(Column::number));
    for k in ks.into_iter().take(ROWS_MAX) {
        table.row([k.to_string(), value(&sampled.pass_at, k), value(&sampled.pass_hat, k)]);
    }
    Some((table, total))
}

/// Builds a table of single figures, and counts its rows. Figures of an object are named after it.
fn figures_table<'a>(figures: impl Iterator<Item = (&'a String, &'a Value)>) -> Option<(Table, usize)> {
    let mut rows = Vec::new();
    for (name, value) in figures {
        match value {
            // Shown with the other values of k.
            Value::Number(_) if name.starts_with("pass@") => {}
            Value::Object(fields) => {
                rows.extend(
                    fields
                        .iter()
                        .map(|(field, value)| [format!("{}: {field}", words(name)), cell(field, value)]),
                );
            }
            value => rows.push([words(name), cell(name, value)]),
        }
    }
    if rows.is_empty() {
        return None;
    }
    let total = rows.len();
    let mut table = Table::new([Column::words("metric"), Column::words("value").aligned_right()]);
    rows.into_iter().take(ROWS_MAX).for_each(|row| table.row(row));
    Some((table, total))
}

/// Builds a table with a row for each group and a column for each figure, and counts its rows.
fn group_table(groups: &Map<String, Value>) -> (Table, usize) {
    let all: BTreeSet<&str> =
        groups.values().filter_map(Value::as_object).flat_map(Map::keys).map(String::as_str).collect();
    let rest = all.iter().copied().filter(|name| !FIRST.contains(name));
    let names: Vec<&str> = FIRST.into_iter().filter(|name| all.contains(name)).chain(rest).collect();
    let columns = names.iter().map(|name| Column::words(words(name)).aligned_right());
    let mut table = Table::new([Column::words("group")].into_iter().chain(columns));
    for (group, figures) in groups.iter().take(ROWS_MAX) {
        let cells = names.iter().map(|name| cell(name, figures.get(*name).unwrap_or(&Value::Null)));
        table.row([group.clone()].into_iter().chain(cells));
    }
    (table, groups.len())
}

/// Formats a figure: a share or percentage as `51.9%`, a count as `1,200`.
fn cell(name: &str, value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(count), _) if !number.is_f64() => format::count(count),
            (_, Some(value)) if PERCENTAGES.contains(&name) => format::percent(Some(value / 100.0)),
            (_, Some(value)) if POINTS.contains(&name) => format!("{value:.1}"),
            (_, value) => format::percent(value),
        },
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(field, value)| format!("{field} {}", cell(field, value)));
            fields.collect::<Vec<_>>().join(", ")
        }
        Value::Bool(_) | Value::Array(_) => value.to_string(),
    }
}

/// Formats the name of a metric.
fn words(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::layout::Layout;

    fn shown(name: &str, samples_per_item: u32, metrics: Value) -> String {
        let benchmark = Benchmark {
            benchmark_name: name.into(),
            samples_per_item: Some(samples_per_item),
            metrics: metrics.as_object().cloned(),
            ..Benchmark::default()
        };
        let mut page = Page::new(0, 0);
        add(&mut page, "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", &benchmark);
        page.render(Layout { width: 80, is_terminal: true, has_unicode: true })
    }

    #[test]
    fn categories_have_score_counts_and_coverage() {
        let group = |correct: u64, graded: u64| json!({ "accuracy": 0.519, "correct": correct, "graded": graded, "planned": 1_200, "coverage": 1.0 });
        let text = shown(
            "mmlu_pro",
            1,
            json!({
                "score": 0.5, "accuracy": 0.5, "categories": { "law": group(600, 1_200), "math": group(5, 9) },
                "groups": { "law": { "ended": 9 } },
            }),
        );
        assert_eq!(
            text.trim_start(),
            "mmlu_pro: categories\n\
             group  accuracy  correct  coverage  graded  planned\n\
             ─────  ────────  ───────  ────────  ──────  ───────\n\
             law       51.9%      600    100.0%   1,200    1,200\n\
             math      51.9%        5    100.0%       9    1,200"
        );
    }

    #[test]
    fn groups_of_the_report_are_shown_if_the_protocol_has_none() {
        let text = shown(
            "x",
            1,
            json!({ "groups": { "a": { "ended": 3, "graded": 3, "correct": 2, "score": 2.0 / 3.0 } } }),
        );
        assert!(text.contains("x: groups") && text.contains("66.7%"), "{text}");
    }

    #[test]
    fn the_four_figures_of_instruction_following_are_percentages() {
        let text = shown(
            "ifbench",
            1,
            json!({
                "prompt_level_strict": 0.25, "instruction_level_strict": 0.5, "prompt_level_loose": 1.0,
                "instruction_level_loose": 0.75,
                "instruction_families": { "a": { "strict": 0.5, "loose": 1.0, "instructions": 3 } },
            }),
        );
        for part in [
            "prompt level strict",
            "25.0%",
            "50.0%",
            "100.0%",
            "75.0%",
            "ifbench (IFEval): instruction families",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn pass_at_k_is_a_row_for_each_k() {
        let text = shown(
            "livecodebench",
            4,
            json!({
                "clustered": { "mean": 0.5 }, "pass_at": { "1": { "value": 0.5 }, "4": { "value": 0.75 } },
                "pass_hat": { "4": { "value": 0.25 } }, "pass@3": 0.625, "pass@3_by_difficulty": { "easy": 0.625 },
            }),
        );
        for row in ["1   50.0%       -", "3   62.5%       -", "4   75.0%   25.0%"] {
            assert!(text.lines().any(|line| line.trim() == row), "{row}\n{text}");
        }
        assert!(text.contains("pass@3 by difficulty: easy"), "{text}");
    }

    #[test]
    fn percentages_of_official_programs_and_indices_keep_their_unit() {
        let text = shown(
            "hle",
            1,
            json!({ "accuracy_official": 25.0, "half_width": 42.44, "judged": 1_200, "calibration_error": null }),
        );
        for part in ["25.0%", "42.4%", "1,200", "calibration error"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let text = shown(
            "aa_omniscience",
            1,
            json!({ "domains": { "Law": { "omniscience_index": -12.5, "grades": { "A": 5, "B": 2 } } } }),
        );
        assert!(text.contains("-12.5 ") && text.contains("A 5, B 2") && !text.contains("-1250"), "{text}");
    }

    #[test]
    fn long_tables_are_cut_and_say_so() {
        let many = |count: u32| -> Map<String, Value> {
            (0..count).map(|n| (format!("t{n:02}"), json!({ "strict": 0.5 }))).collect()
        };
        let text = shown("ifbench", 1, json!({ "instruction_types": many(50) }));
        assert!(text.contains("\nt39 ") && !text.contains("\nt40"), "{text}");
        assert!(text.ends_with("\nthe first 40 of 50 rows; `bench runs 3f2b8c1e --json` has all"), "{text}");
        let whole = shown("ifbench", 1, json!({ "instruction_types": many(40) }));
        assert!(whole.contains("\nt39 ") && !whole.contains("--json"), "{whole}");
        let figures: Map<String, Value> = (0..50).map(|n| (format!("f{n:02}"), json!(0.5))).collect();
        let text = shown("x", 1, Value::Object(figures));
        assert!(text.contains("f39") && !text.contains("f40") && text.contains("40 of 50 rows"), "{text}");
    }
}
