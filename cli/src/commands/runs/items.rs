//! Samples of a run, as a table.

use std::borrow::Cow;

use bench_domain::Outcome;
use serde::Deserialize;
use serde_json::Value;

use crate::client::encode;
use crate::commands::Api;
use crate::exit::Problem;
use crate::table::{Column, Table};
use crate::views::{Item, Run};
use crate::{causes, format, output, show};

/// Number of samples per page, the API's maximum.
pub(super) const ITEMS_PAGE: u64 = 500;
/// Maximum number of characters of a text in the table.
const PREVIEW_CHARS_MAX: usize = 60;
/// The same for the reason of an outcome, the last column: terminals cut it to their width.
const REASON_CHARS_MAX: usize = 400;

/// Samples to show.
#[derive(Debug, Clone, Default)]
pub(super) struct Filter {
    /// Outcomes; empty for all samples.
    pub(super) outcomes: Vec<Outcome>,
    /// Group of the item.
    pub(super) group: Option<String>,
}

impl Filter {
    /// Returns the parameters of a request, each with `&` in front.
    fn query(&self) -> String {
        let mut query = String::new();
        if !self.outcomes.is_empty() {
            let names: Vec<&str> = self.outcomes.iter().copied().map(Outcome::as_str).collect();
            query.push_str(&format!("&outcome={}", names.join(",")));
        }
        if let Some(group) = &self.group {
            query.push_str(&format!("&group={}", encode(group)));
        }
        query
    }

    /// Checks a sample, since older servers ignore the parameters.
    fn matches(&self, item: &Value) -> bool {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let outcome = text("outcome").and_then(Outcome::from_name);
        let is_outcome =
            self.outcomes.is_empty() || outcome.is_some_and(|outcome| self.outcomes.contains(&outcome));
        is_outcome
            && self.group.as_deref().is_none_or(|group| {
                text("group").is_some_and(|its| its.to_lowercase() == group.to_lowercase())
            })
    }
}

/// A page of `/api/runs/{id}/benchmarks/{name}`.
#[derive(Debug, Deserialize)]
pub(super) struct Details {
    pub(super) items: ItemsPage,
}

#[derive(Debug, Deserialize)]
pub(super) struct ItemsPage {
    pub(super) items: Vec<Value>,
    pub(super) total: u64,
}

/// Shows at most `limit` samples of these benchmarks.
pub(super) async fn show(
    api: &Api,
    run: &Run,
    benchmarks: &[String],
    filter: &Filter,
    limit: Option<u64>,
    json: bool,
) -> anyhow::Result<()> {
    let (mut found, mut matching) = (Vec::new(), 0);
    for name in benchmarks {
        let wanted = limit.map(|limit| limit.saturating_sub(found.len() as u64));
        matching += read(api, run, name, filter, wanted, &mut found).await?;
    }
    if found.is_empty()
        && let Some(group) = &filter.group
    {
        check_group(run, benchmarks, group)?;
        check_has_groups(api, run, benchmarks, group).await?;
    }
    let shown = found.len() as u64;
    if json {
        output::json(&found)?;
    } else if found.is_empty() {
        output::note("No sample matches");
    } else {
        let items: Vec<Item> = found.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
        output::print_table(&table(&items))?;
    }
    if matching > shown && !json {
        output::note(&format!(
            "{} of {}; see --limit",
            format::count(shown),
            format::plural(matching, "sample")
        ));
    }
    Ok(())
}

/// Reads at most `wanted` samples of a benchmark, and returns the number of all that match.
async fn read(
    api: &Api,
    run: &Run,
    name: &str,
    filter: &Filter,
    wanted: Option<u64>,
    found: &mut Vec<Value>,
) -> anyhow::Result<u64> {
    let (mut offset, mut taken) = (0, 0);
    let first = found.len();
    // The first samples of the dataset are only known to the server. All of them are sorted here, which spares it work.
    let order = if wanted.is_some() { "&order=dataset" } else { "" };
    loop {
        let limit = wanted.map_or(ITEMS_PAGE, |wanted| (wanted - taken).min(ITEMS_PAGE));
        let query = filter.query() + order;
        let path = format!("/api/runs/{}/benchmarks/{name}?limit={limit}&offset={offset}{query}", run.id);
        let page: Details = api.client.get(&path).await?;
        // A server may end a page early to limit its size.
        let read = page.items.items.len() as u64;
        offset += read;
        for mut item in page.items.items.into_iter().filter(|item| filter.matches(item)) {
            if let Value::Object(fields) = &mut item {
                fields.insert("benchmark".to_owned(), name.into());
            }
            found.push(item);
            taken += 1;
        }
        if read == 0 || offset >= page.items.total || wanted.is_some_and(|wanted| taken >= wanted) {
            if let Some(found) = found.get_mut(first..) {
                found.sort_by_cached_key(dataset_order);
            }
            return Ok(page.items.total);
        }
    }
}

/// Returns a key that sorts samples by the row of their item. Ids of items are indices of rows.
fn dataset_order(item: &Value) -> (bool, Option<u64>, String, Option<u64>) {
    let id = item.get("item_id").and_then(Value::as_str).unwrap_or_default();
    let row = id.parse().ok();
    (row.is_none(), row, id.to_owned(), item.get("sample").and_then(Value::as_u64))
}

/// Rejects a group that none of the benchmarks has, if their groups are known.
fn check_group(run: &Run, benchmarks: &[String], group: &str) -> anyhow::Result<()> {
    let named = run.benchmarks.iter().filter(|benchmark| benchmarks.contains(&benchmark.benchmark_name));
    let groups = named.filter_map(|benchmark| benchmark.metrics.as_ref()?.get("groups")?.as_object());
    let mut known: Vec<&str> = groups.flat_map(|groups| groups.keys()).map(String::as_str).collect();
    known.sort_unstable();
    known.dedup();
    if known.is_empty() || known.iter().any(|known| known.to_lowercase() == group.to_lowercase()) {
        return Ok(());
    }
    Err(Problem::usage(format!("no item is in the group `{group}`"))
        .hint(format!("the groups are {}", known.join(", ")))
        .into())
}

/// Rejects a group of benchmarks whose items are in none: their metrics have groups that overlap, such as kinds of
/// instructions of which an item has several.
async fn check_has_groups(api: &Api, run: &Run, benchmarks: &[String], group: &str) -> anyhow::Result<()> {
    let mut samples = Vec::new();
    for name in benchmarks {
        read(api, run, name, &Filter::default(), Some(1), &mut samples).await?;
    }
    if samples.is_empty() || samples.iter().any(|sample| sample.get("group").is_some_and(Value::is_string)) {
        return Ok(());
    }
    let names = show::benchmark_names(benchmarks.iter().map(String::as_str));
    Err(Problem::usage(format!("--group {group}: the items of {names} are not divided into groups"))
        .hint("the groups of its metrics overlap; leave --group out, or select by --outcome")
        .into())
}

/// Builds a table of samples.
fn table(items: &[Item]) -> Table {
    let has_several =
        |different: bool, column: Column, rank: u8| if different { column } else { column.drop_as(rank) };
    let benchmarks =
        items.iter().any(|item| item.benchmark != items.first().map_or("", |first| &first.benchmark));
    let samples = items.iter().any(|item| item.sample > 0);
    let mut table = Table::new([
        has_several(benchmarks, Column::text("benchmark"), 4),
        Column::number("item"),
        Column::text("source id").drop_as(2),
        has_several(samples, Column::number("sample"), 6),
        Column::words("group").drop_as(3),
        Column::text("outcome"),
        Column::number("score"),
        Column::preview("extracted"),
        Column::preview("expected"),
        Column::number("latency").drop_as(5),
        Column::preview("reason").drop_as(1),
    ]);
    for item in items {
        table.row([
            show::benchmark_name(&item.benchmark),
            item.item_id.clone(),
            item.source_id.clone().unwrap_or_else(|| "-".to_owned()),
            (item.sample + 1).to_string(),
            item.group.clone().unwrap_or_else(|| "-".to_owned()),
            item.outcome.clone().unwrap_or_else(|| "open".to_owned()),
            format::percent(item.score),
            preview(item.extracted.as_deref(), PREVIEW_CHARS_MAX),
            preview(item.expected.as_deref(), PREVIEW_CHARS_MAX),
            item.latency_ms.map_or_else(|| "-".to_owned(), |ms| format::milliseconds(ms as f64)),
            preview(reason(item).as_deref(), REASON_CHARS_MAX),
        ]);
    }
    table
}

/// Returns why a sample has its outcome, or why its agent ended early.
fn reason(item: &Item) -> Option<Cow<'_, str>> {
    let reason = item.reason.as_deref().filter(|reason| !reason.is_empty());
    let text = |name: &str| item.detail.as_ref()?.get(name)?.as_str();
    let end = || text("agent_end").filter(|end| *end != "completed").map(|end| end.replace('_', " "));
    let early = || {
        Some(format!("the agent ended: {}", end().or_else(|| text("exception").map(str::to_owned))?).into())
    };
    reason.or(item.error.as_deref()).map(causes::readable).or_else(early)
}

/// Returns the beginning of a text, on one line.
fn preview(text: Option<&str>, chars_max: usize) -> String {
    let line = text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    crate::table::wrap::cut(&line, chars_max, "…")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_filter_becomes_parameters_and_is_checked_again() {
        let filter =
            Filter { outcomes: vec![Outcome::Incorrect, Outcome::Unparsed], group: Some("a b".into()) };
        assert_eq!(filter.query(), "&outcome=incorrect,unparsed&group=a%20b");
        assert!(filter.matches(&json!({ "outcome": "unparsed", "group": "a b" })));
        for other in [
            json!({ "outcome": "correct", "group": "a b" }),
            json!({ "outcome": "unparsed", "group": null }),
            json!({ "outcome": null, "group": "a b" }),
        ] {
            assert!(!filter.matches(&other), "{other}");
        }
        assert_eq!(Filter::default().query(), "");
        assert!(Filter::default().matches(&json!({ "outcome": null })));
    }

    #[test]
    fn samples_that_have_not_ended_are_read() {
        let item = json!({ "item_id": "0", "score": null, "expected": null, "latency_ms": null, "error": null, "detail": null });
        let item: Item = serde_json::from_value(item).unwrap();
        assert_eq!(reason(&item), None);
        let early = json!({ "item_id": "0", "score": 0.0, "expected": null, "latency_ms": 1, "error": null,
            "detail": { "agent_end": "turn_limit" } });
        let early: Item = serde_json::from_value(early).unwrap();
        assert_eq!(reason(&early).as_deref(), Some("the agent ended: turn limit"));
    }

    #[test]
    fn samples_are_in_the_order_of_the_dataset() {
        let item = |id: &str, sample: u64| json!({ "item_id": id, "sample": sample });
        let mut items = [item("x", 0), item("10", 0), item("9", 1), item("9", 0), item("0", 0)];
        items.sort_by_cached_key(dataset_order);
        assert_eq!(items, [item("0", 0), item("9", 0), item("9", 1), item("10", 0), item("x", 0)]);
    }

    #[test]
    fn an_unknown_group_is_answered_with_the_known_ones() {
        let run: Run = serde_json::from_value(json!({
            "id": "r", "status": "succeeded", "model_slug": "m", "provider": "chutes",
            "created_at": "2026-01-02T03:04:05Z",
            "benchmarks": [{ "benchmark_name": "mmlu_pro", "status": "succeeded",
                "metrics": { "groups": { "math": {}, "law": {} } } }],
        }))
        .unwrap();
        let names = ["mmlu_pro".to_owned()];
        assert_eq!(
            check_group(&run, &names, "mth").unwrap_err().to_string(),
            "no item is in the group `mth`"
        );
        assert!(check_group(&run, &names, "math").is_ok() && check_group(&run, &[], "mth").is_ok());
    }

    #[test]
    fn screen_of_items() {
        let items: Vec<Item> = serde_json::from_value(json!([
            { "benchmark": "mmlu_pro", "item_id": "0", "source_id": "70", "sample": 0, "group": "computer science",
                "outcome": "correct", "score": 1.0, "extracted": "B", "expected": "B", "latency_ms": 1_234, "error": null },
            { "benchmark": "mmlu_pro", "item_id": "12031", "source_id": "12256", "sample": 0, "group": "math",
                "outcome": "incorrect", "score": 0.0, "extracted": "the answer is forty-two, since six times nine is that in base thirteen",
                "expected": "C", "latency_ms": 123_456, "reason": "the answer is B; the right answer is C", "error": null },
            { "benchmark": "mmlu_pro", "item_id": "7", "source_id": null, "sample": 0, "group": null,
                "outcome": "infrastructure-error", "score": null, "extracted": null, "expected": "\\\\frac{1}{2}",
                "latency_ms": null, "reason": "the provider closed the connection before the answer was complete", "error": null },
            { "benchmark": "mmlu_pro", "item_id": "8", "source_id": "a", "sample": 0, "group": "math",
                "outcome": "partial", "score": 0.518, "extracted": "答案是四十二", "expected": "x", "latency_ms": 99, "error": null },
        ]))
        .unwrap();
        crate::screen_tests::check("items", |layout| table(&items).render(layout));
    }
}
