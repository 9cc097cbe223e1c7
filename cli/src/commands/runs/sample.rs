//! One sample of a run, to read.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::items::{Details, ITEMS_PAGE};
use crate::client::encode;
use crate::commands::Api;
use crate::exit::Problem;
use crate::page::Page;
use crate::views::{Item, Run};
use crate::{causes, format, output, show};

/// A sample with its texts.
#[derive(Debug, Default, Deserialize)]
struct Sample {
    #[serde(flatten)]
    item: Item,
    prompt: Option<String>,
    response: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    steps: Option<Vec<Step>>,
    #[serde(default)]
    judge_prompt: Option<String>,
    #[serde(default)]
    judge_output: Option<Map<String, Value>>,
    #[serde(default)]
    test_code: Option<String>,
    #[serde(default)]
    detail: Option<Map<String, Value>>,
    #[serde(default)]
    item_metadata: Option<Map<String, Value>>,
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    model_reported: Option<String>,
    #[serde(default)]
    hidden: bool,
    #[serde(default)]
    cut: Vec<String>,
    #[serde(default)]
    body_url: Option<String>,
}

/// A question of an item with several.
#[derive(Debug, Deserialize)]
struct Step {
    name: String,
    prompt: String,
    response: String,
    reasoning: Option<String>,
}

/// Shows a sample of the item that `named` names.
pub(super) async fn show(
    api: &Api,
    run: &Run,
    benchmarks: &[String],
    named: &str,
    sample: Option<u32>,
    json: bool,
) -> anyhow::Result<()> {
    let named = named.trim();
    let mut found = find(api, run, benchmarks, named).await?;
    if found.is_empty() && !named.starts_with('#') && named.bytes().all(|c| c.is_ascii_digit()) {
        // No item has this id of the dataset. Tables also show the index of the row.
        found = find(api, run, benchmarks, &format!("#{named}")).await?;
    }
    let mut names: Vec<&str> = found.iter().filter_map(|item| item.get("benchmark")?.as_str()).collect();
    names.dedup();
    match names.as_slice() {
        [] => {
            return Err(Problem::usage(format!("run {} has no item `{named}`", run.id))
                .hint(format!(
                    "`bench runs {} --items` lists its items; write a row's index, from 0, as `#5`",
                    run.id
                ))
                .into());
        }
        [_] => {}
        several => {
            return Err(Problem::usage(format!(
                "item `{named}` is in several benchmarks: {}",
                show::benchmark_names(several.iter().copied())
            ))
            .hint("add --benchmark NAME")
            .into());
        }
    }
    let count = found.len() as u64;
    let number = sample.unwrap_or(1);
    let index = u64::from(number.saturating_sub(1));
    let chosen = found.into_iter().find(|item| item.get("sample").and_then(Value::as_u64) == Some(index));
    let Some(chosen) = chosen else {
        return Err(Problem::usage(format!("item `{named}` has no sample {number}"))
            .hint(format!("it has {}", format::plural(count, "sample")))
            .into());
    };
    if json {
        return output::json(&chosen);
    }
    output::print_page(&page(run, &serde_json::from_value(chosen)?, count))?;
    if count > 1 && sample.is_none() {
        output::note(&format!("The item has {}; see --sample", format::plural(count, "sample")));
    }
    Ok(())
}

/// Returns the samples of the item in these benchmarks.
async fn find(api: &Api, run: &Run, benchmarks: &[String], named: &str) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    for name in benchmarks {
        let mut offset = 0;
        loop {
            let query = format!("limit={ITEMS_PAGE}&offset={offset}&item={}", encode(named));
            let page: Details =
                api.client.get(&format!("/api/runs/{}/benchmarks/{name}?{query}", run.id)).await?;
            let read = page.items.items.len() as u64;
            offset += read;
            // Older servers ignore the parameter.
            for mut item in page.items.items.into_iter().filter(|item| is_named(item, named)) {
                if let Value::Object(fields) = &mut item {
                    fields.insert("benchmark".to_owned(), name.as_str().into());
                }
                found.push(item);
            }
            if read == 0 || offset >= page.items.total {
                break;
            }
        }
    }
    Ok(found)
}

/// Returns true if the name is the dataset's own id of the item, or `#` and the index of its row.
fn is_named(item: &Value, named: &str) -> bool {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    match named.strip_prefix('#') {
        Some(index) => text("item_id") == Some(index),
        None => text("source_id").or_else(|| text("item_id")) == Some(named),
    }
}

/// Describes a sample: its verdict, and all texts that led to it.
fn page(run: &Run, sample: &Sample, samples_of_item: u64) -> Page {
    let item = &sample.item;
    let mut page = Page::new(0, 12);
    let source = item.source_id.as_ref().map_or_else(String::new, |id| format!(" (source id {id})"));
    let number = match samples_of_item {
        1 => String::new(),
        several => format!(", sample {} of {several}", item.sample + 1),
    };
    page.heading(format!("{}: item {}{source}{number}", show::benchmark_name(&item.benchmark), item.item_id));
    let mut field = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            page.field(&format!("{name}:"), value);
        }
    };
    let metadata = |name: &str| sample.item_metadata.as_ref()?.get(name).filter(|value| !value.is_null());
    field("run", Some(run.id.clone()));
    field(run.model_label(), Some(run.located_model()));
    field("answered by", sample.model_reported.clone().filter(|reported| *reported != run.model_slug()));
    field("group", item.group.clone());
    let outcome = item.outcome.clone().unwrap_or_else(|| "open".to_owned());
    field(
        "outcome",
        Some(match item.score {
            Some(score) => format!("{outcome}, score {}", format::percent(Some(score))),
            None => outcome,
        }),
    );
    let readable = |text: &String| causes::readable(text).into_owned();
    field("reason", item.reason.as_ref().filter(|reason| !reason.is_empty()).map(readable));
    field("error", item.error.as_ref().filter(|error| Some(*error) != item.reason.as_ref()).map(readable));
    field("extracted", short(item.extracted.as_deref()));
    field("expected", short(item.expected.as_deref()));
    let tokens = sample.input_tokens.zip(sample.output_tokens);
    field(
        "tokens",
        tokens.map(|(input, output)| format!("{} in, {} out", format::count(input), format::count(output))),
    );
    field("latency", item.latency_ms.map(|ms| format::milliseconds(ms as f64)));
    field("finish", metadata("finish_reason").and_then(Value::as_str).map(str::to_owned));
    field(
        "attempts",
        metadata("worker_attempts").and_then(Value::as_u64).filter(|n| *n > 1).map(format::count),
    );
    if sample.hidden {
        field(
            "hidden",
            Some("the dataset is gated: its texts are shown to the run's owner and the operator".to_owned()),
        );
    }
    if !sample.cut.is_empty() {
        let whole = sample.body_url.as_ref().map_or_else(String::new, |url| format!("; whole: {url}"));
        field("cut", Some(format!("{}{whole}", sample.cut.join(", "))));
    }
    texts(&mut page, sample);
    page
}

fn texts(page: &mut Page, sample: &Sample) {
    let mut section = |title: &str, text: Option<&str>| {
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            page.blank();
            page.heading(format!("--- {title}"));
            page.verbatim(text.trim_end());
        }
    };
    match sample.steps.as_deref() {
        Some(steps) if !steps.is_empty() => {
            for (index, step) in steps.iter().enumerate() {
                let title = format!("step {} of {} ({})", index + 1, steps.len(), step.name);
                section(&format!("{title}: prompt"), Some(&step.prompt));
                section(&format!("{title}: reasoning"), step.reasoning.as_deref());
                section(&format!("{title}: response"), Some(&step.response));
            }
        }
        _ => {
            section("prompt", sample.prompt.as_deref());
            section("reasoning", sample.reasoning.as_deref());
            section("response", sample.response.as_deref());
        }
    }
    let long = |text: &Option<String>| text.clone().filter(|text| short(Some(text)).is_none());
    let extracted = long(&sample.item.extracted).filter(|text| Some(text) != sample.test_code.as_ref());
    section("extracted answer", extracted.as_deref());
    section("expected answer", long(&sample.item.expected).as_deref());
    section("code that was run", sample.test_code.as_deref());
    section("judge's prompt", sample.judge_prompt.as_deref());
    for (title, text) in outputs(sample.judge_output.as_ref()) {
        section(&title, Some(&text));
    }
    let detail = sample.detail.as_ref().and_then(|detail| serde_json::to_string_pretty(detail).ok());
    section("details of the grader", detail.as_deref());
}

/// Returns the judge's reply, or the output of a program, in named parts.
fn outputs(output: Option<&Map<String, Value>>) -> Vec<(String, String)> {
    let Some(output) = output else { return Vec::new() };
    let text = |name: &str| output.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut parts = Vec::new();
    if let Some(reply) = text("reply") {
        let judge = text("judge").map_or_else(String::new, |judge| format!(" ({judge})"));
        parts.extend(
            text("reasoning").map(|reasoning| ("judge's reasoning".to_owned(), reasoning.to_owned())),
        );
        parts.push((format!("judge's reply{judge}"), reply.to_owned()));
        return parts;
    }
    if let Some(end) = text("end") {
        let code = output
            .get("exit_code")
            .and_then(Value::as_i64)
            .map_or_else(String::new, |code| format!(", exit code {code}"));
        let time = output.get("elapsed_ms").and_then(Value::as_u64);
        let time = time.map_or_else(String::new, |ms| format!(", {}", format::milliseconds(ms as f64)));
        parts.push(("program".to_owned(), format!("{}{code}{time}", end.replace('-', " "))));
    }
    for name in ["stdout", "stderr"] {
        parts.extend(text(name).map(|text| (format!("program's {name}"), text.to_owned())));
    }
    let files = output.get("files").and_then(Value::as_object).filter(|files| !files.is_empty());
    let files = files.and_then(|files| serde_json::to_string_pretty(files).ok());
    parts.extend(files.map(|files| ("program's files".to_owned(), files)));
    parts
}

/// Returns an answer that fits into a field: one line that isn't long.
fn short(text: Option<&str>) -> Option<String> {
    const CHARS_MAX: usize = 200;
    text.filter(|text| !text.trim().contains('\n') && text.chars().count() <= CHARS_MAX)
        .map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::layout::Layout;

    fn shown(sample: Value, samples: u64) -> String {
        let sample: Sample = serde_json::from_value(sample).unwrap();
        let run = crate::show::tests::run(false);
        page(&run, &sample, samples).render(Layout { width: 80, is_terminal: false, has_unicode: true })
    }

    #[test]
    fn a_sample_has_its_verdict_and_all_texts() {
        let text = shown(
            json!({
                "benchmark": "mmlu_pro", "item_id": "0", "source_id": "70", "sample": 1, "group": "math",
                "outcome": "incorrect", "score": 0.0, "reason": "the answer is B, expected C", "error": null,
                "extracted": "B", "expected": "C", "latency_ms": 1_234, "input_tokens": 1_200, "output_tokens": 34,
                "prompt": "Question?\n  A. x", "response": "The answer is (B).", "reasoning": "Hm.",
                "item_metadata": { "finish_reason": "stop", "worker_attempts": 2 },
            }),
            4,
        );
        for part in [
            "mmlu_pro: item 0 (source id 70), sample 2 of 4\n",
            "outcome:    incorrect, score 0.0%\n",
            "reason:     the answer is B, expected C\n",
            "extracted:  B\n",
            "expected:   C\n",
            "tokens:     1,200 in, 34 out\n",
            "latency:    1.2 s\n",
            "attempts:   2\n",
            "--- prompt\nQuestion?\n  A. x\n",
            "--- reasoning\nHm.\n",
            "--- response\nThe answer is (B).",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn programs_and_judges_show_what_they_said() {
        let program = shown(
            json!({
                "benchmark": "livecodebench", "item_id": "3", "outcome": "incorrect", "score": 0.0, "extracted": "print(1)\nx",
                "expected": null, "latency_ms": null, "error": null, "prompt": "p", "response": "r", "test_code": "print(1)\nx",
                "judge_output": { "end": "timed-out", "exit_code": null, "elapsed_ms": 6_000, "stdout": "1\n", "stderr": "", "files": {} },
            }),
            1,
        );
        for part in [
            "--- code that was run\nprint(1)\nx\n",
            "--- program\ntimed out, 6.0 s\n",
            "--- program's stdout\n1",
        ] {
            assert!(program.contains(part), "{part}\n{program}");
        }
        assert!(!program.contains("extracted answer") && !program.contains("stderr"), "{program}");
        let judged = shown(
            json!({
                "benchmark": "hle", "item_id": "3", "outcome": "correct", "score": 1.0, "extracted": null, "expected": "x",
                "latency_ms": null, "error": null, "prompt": "p", "response": "r", "judge_prompt": "Is it right?",
                "judge_output": { "judge": "openrouter/j", "reply": "yes", "reasoning": null },
                "detail": { "confidence": 90 },
            }),
            1,
        );
        for part in [
            "--- judge's prompt\nIs it right?\n",
            "--- judge's reply (openrouter/j)\nyes\n",
            "\"confidence\": 90",
        ] {
            assert!(judged.contains(part), "{part}\n{judged}");
        }
    }

    #[test]
    fn steps_replace_the_last_prompt_and_response() {
        let step = |n: u32| json!({ "name": format!("7.{n}"), "prompt": format!("p{n}"), "response": format!("r{n}"), "reasoning": null });
        let text = shown(
            json!({
                "benchmark": "scicode", "item_id": "7", "outcome": null, "score": null, "expected": null, "latency_ms": null,
                "error": null, "prompt": "p2", "response": "r2", "steps": [step(1), step(2)],
            }),
            1,
        );
        assert!(text.contains("outcome:    open\n"), "{text}");
        assert!(
            text.contains("--- step 1 of 2 (7.1): prompt\np1\n")
                && text.contains("--- step 2 of 2 (7.2): response\nr2"),
            "{text}"
        );
        assert_eq!(text.matches("r2").count(), 1, "{text}");
    }

    #[test]
    fn items_are_named_by_their_own_id_or_by_row() {
        let item = json!({ "item_id": "2", "source_id": "72" });
        assert!(is_named(&item, "72") && is_named(&item, "#2"));
        assert!(!is_named(&item, "2") && !is_named(&item, "#72"));
        assert!(is_named(&json!({ "item_id": "2", "source_id": null }), "2"));
    }
}
