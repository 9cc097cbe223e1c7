//! Comparison of three or more runs with the first.

use std::collections::BTreeMap;

use bench_domain::{Code, RunId};
use serde_json::{Value, json};

use super::{Comparison, difference, p_value};
use crate::client::Client;
use crate::exit::plain;
use crate::page::Page;
use crate::refusal::Refusal;
use crate::run_ref::ShortIds;
use crate::table::{Column, Table};
use crate::views::Run;
use crate::{format, output, show};

/// A run with its comparison with the first one, which has none.
struct Compared {
    letter: char,
    run: Run,
    /// `None` for the first run, and without a common benchmark.
    comparison: Option<Comparison>,
}

/// Shows each run's scores, and their differences to the first run's.
pub(super) async fn show(client: &Client, runs: &[RunId], json: bool) -> anyhow::Result<()> {
    let (mut all, mut answers) = (Vec::new(), Vec::new());
    for (letter, id) in ('A'..='Z').zip(runs) {
        let run: Run = client.get(&format!("/api/runs/{id}")).await?;
        let answer = match runs.first().filter(|first| *first != id) {
            Some(first) => answer(client, *first, *id).await?,
            None => None,
        };
        let comparison = answer.clone().map(serde_json::from_value).transpose()?;
        all.push(Compared { letter, run, comparison });
        answers.extend(answer);
    }
    let adjusted = adjusted(&all);
    if json {
        add_adjusted(&mut answers, &all, &adjusted);
        output::json(&json!({ "baseline": runs.first(), "comparisons": answers }))?;
    } else {
        output::print_page(&page(&all, &adjusted))?;
        for Compared { letter, comparison, .. } in &all {
            for benchmark in comparison.iter().flat_map(|comparison| &comparison.benchmarks) {
                for warning in &benchmark.warnings {
                    output::warn(&format!(
                        "{letter}, {}: {}",
                        show::benchmark_name(&benchmark.benchmark_name),
                        plain(warning)
                    ));
                }
            }
        }
    }
    let benchmarks = all.iter().filter_map(|compared| compared.comparison.as_ref());
    super::check_common(benchmarks.flat_map(|comparison| &comparison.benchmarks), runs)
}

/// Returns the API's comparison, or `None` for runs without a common benchmark.
async fn answer(client: &Client, first: RunId, other: RunId) -> anyhow::Result<Option<Value>> {
    match client.get(&format!("/api/runs/{first}/compare/{other}")).await {
        Ok(answer) => Ok(Some(answer)),
        Err(error) => match error.downcast_ref::<Refusal>().and_then(Refusal::code) {
            Some(Code::NothingToCompare) => Ok(None),
            // Its sentence names the run.
            Some(Code::RunNotOver) => Err(error),
            _ => Err(error.context(format!("run {other}"))),
        },
    }
}

/// Adjusted p values, by the letter of the run and the benchmark.
type Adjusted<'a> = BTreeMap<(char, &'a str), f64>;

/// Adjusts the p values of all comparisons together.
fn adjusted(all: &[Compared]) -> Adjusted<'_> {
    let tests: Vec<((char, &str), f64)> = all
        .iter()
        .flat_map(|compared| {
            let benchmarks = compared.comparison.iter().flat_map(|comparison| &comparison.benchmarks);
            benchmarks.filter_map(|benchmark| {
                Some(((compared.letter, benchmark.benchmark_name.as_str()), benchmark.paired.mcnemar_p?))
            })
        })
        .collect();
    let values = holm(&tests.iter().map(|(_, p)| *p).collect::<Vec<_>>());
    tests.iter().map(|(test, _)| *test).zip(values).collect()
}

/// Adjusts p values for their number by Holm's method: the chance that any of the comparisons without a difference is
/// below a limit is at most that limit.
fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let (mut adjusted, mut highest) = (vec![1.0; values.len()], 0.0_f64);
    for (rank, index) in order.into_iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a small number of comparisons")]
        let left = (values.len() - rank) as f64;
        highest = highest.max((values[index] * left).min(1.0));
        adjusted[index] = highest;
    }
    adjusted
}

/// Adds the adjusted p values to the API's comparisons.
fn add_adjusted(answers: &mut [Value], all: &[Compared], adjusted: &Adjusted<'_>) {
    let letters = all.iter().filter(|compared| compared.comparison.is_some()).map(|compared| compared.letter);
    for (answer, letter) in answers.iter_mut().zip(letters) {
        let benchmarks = answer.get_mut("benchmarks").and_then(Value::as_array_mut).into_iter().flatten();
        for benchmark in benchmarks {
            let name = benchmark.get("benchmark_name").and_then(Value::as_str).unwrap_or_default();
            let p = adjusted.get(&(letter, name)).copied();
            if let Some(fields) = benchmark.as_object_mut() {
                fields.insert("mcnemar_p_holm".to_owned(), json!(p));
            }
        }
    }
}

fn page(all: &[Compared], adjusted: &Adjusted<'_>) -> Page {
    let short = ShortIds::new(all.iter().map(|compared| compared.run.id.as_str()));
    let mut page = Page::new(0, 0);
    for Compared { letter, run, .. } in all {
        let model = run.located_model();
        page.text(&format!("{letter}: "), format!("{model} ({}, {})", short.get(&run.id), show::status(run)));
    }
    page.table(table(all, adjusted));
    let tests = format::plural(adjusted.len() as u64, "comparison");
    page.text(
        "",
        format!(
            "Differences to A, on the items that both runs have graded; positive if the run is better than A. p: exact \
             McNemar test, corrected for {tests} by Holm's method."
        ),
    );
    page
}

fn table(all: &[Compared], adjusted: &Adjusted<'_>) -> Table {
    let mut table = Table::new([
        Column::words("benchmark"),
        Column::text("run"),
        Column::path("model").drop_as(2),
        Column::text("score (95% interval)"),
        Column::number("coverage"),
        Column::number("difference to A (95% interval)"),
        Column::number("p (Holm)"),
        Column::number("items").drop_as(1),
    ]);
    let mut names: Vec<&str> = Vec::new();
    for benchmark in all.iter().flat_map(|compared| &compared.run.benchmarks) {
        if !names.contains(&benchmark.benchmark_name.as_str()) {
            names.push(&benchmark.benchmark_name);
        }
    }
    for name in names {
        for Compared { letter, run, comparison } in all {
            let Some(benchmark) = run.benchmarks.iter().find(|benchmark| benchmark.benchmark_name == name)
            else {
                continue;
            };
            let paired = comparison.iter().flat_map(|comparison| &comparison.benchmarks);
            let paired = paired.map(|benchmark| (benchmark.benchmark_name.as_str(), &benchmark.paired));
            let paired = paired.filter(|(of, _)| *of == name).map(|(_, paired)| paired).next();
            let none = || "-".to_owned();
            table.row([
                show::benchmark_name(name),
                letter.to_string(),
                run.leveled_model(),
                show::score(benchmark),
                format::percent(benchmark.coverage),
                paired.map_or_else(none, difference),
                adjusted.get(&(*letter, name)).map_or_else(none, |p| p_value(*p)),
                paired.map_or_else(none, |paired| format::count(paired.items)),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_are_adjusted_by_holms_method() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (found, expected) in holm(&[0.01, 0.04, 0.03, 0.005]).into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert_eq!(holm(&[0.25]), [0.25]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn screen_of_several_comparisons() {
        let compared = |letter: char, p: Option<f64>| {
            let mut run = crate::show::tests::run(false);
            run.id = format!("{}f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", letter.to_ascii_lowercase());
            let side = json!({ "id": run.id, "model": "m", "status": "succeeded" });
            let paired = bench_domain::statistics::compare_paired(Vec::new(), Vec::new());
            let mut benchmark = serde_json::to_value(paired).unwrap();
            for (field, value) in [
                ("benchmark_name", json!("mmlu_pro")),
                ("coverage_a", json!(1.0)),
                ("coverage_b", json!(1.0)),
                ("items", json!(1_200)),
                ("difference", json!(0.031)),
                ("interval", json!({ "low": -0.004, "high": 0.066 })),
                ("mcnemar_p", json!(p)),
            ] {
                benchmark[field] = value;
            }
            let comparison = json!({ "a": side, "b": side, "benchmarks": [benchmark] });
            let comparison = p.map(|_| serde_json::from_value(comparison).unwrap());
            Compared { letter, run, comparison }
        };
        let all = [compared('A', None), compared('B', Some(0.04)), compared('C', Some(0.0001))];
        let adjusted = adjusted(&all);
        assert!((adjusted[&('B', "mmlu_pro")] - 0.04).abs() < 1e-12);
        assert!((adjusted[&('C', "mmlu_pro")] - 0.0002).abs() < 1e-12);
        crate::screen_tests::check("compare_several", |layout| page(&all, &adjusted).render(layout));
    }
}
