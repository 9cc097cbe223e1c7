//! Grades stored responses, one line at a time.

use std::borrow::Cow;

use bench_domain::run::SAMPLES_PER_ITEM_MAX;
use bench_domain::{Answer, Outcome};
use bench_items::{Item, Row, RowError};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::benchmark::Benchmark;
use crate::grading::Grading;

/// Verdict on one stored response.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScoreLine {
    /// Id of the line, as given.
    pub id: Value,
    /// Extracted answer; `null` if the parser found none.
    pub extracted: Option<String>,
    /// True if the answer is right.
    pub correct: bool,
    /// Score from 0 to 1; `null` if not graded.
    pub score: Option<f64>,
    /// Outcome of the sample.
    pub outcome: Outcome,
    /// Additional values from the grader, and the `reason` if the answer isn't right.
    pub detail: Map<String, Value>,
}

/// Grades one line, which has an `id` and a `response`. The item is either given or made from the line's grading
/// fields.
///
/// # Errors
/// Returns a [`RowError`] that names the field that is missing or of the wrong type.
pub fn score_line(benchmark: &dyn Benchmark, row: &Row, item: Option<&Item>) -> Result<ScoreLine, RowError> {
    let id = match row.get("id") {
        Some(id @ (Value::String(_) | Value::Number(_))) => id.clone(),
        Some(_) => return Err(RowError::column("id", "is neither a text nor a number")),
        None => return Err(RowError::column("id", "is missing")),
    };
    let response = match row.get("response") {
        Some(Value::String(response)) => response.as_str(),
        // The model gave no answer.
        Some(Value::Null) => "",
        Some(_) => return Err(RowError::column("response", "is not a string")),
        None => return Err(RowError::column("response", "is missing")),
    };
    let made;
    let item = match item {
        Some(item) => item,
        None => {
            made = benchmark.score_row(row)?;
            &made
        }
    };
    let sample = sample_of(row);
    let item = benchmark.item_for_sample(item, sample.as_ref().copied().unwrap_or(0));
    if matches!(item, Cow::Owned(_)) {
        // The item depends on the sample, so the sample index must be valid.
        sample?;
    }
    let verdict = match benchmark.grade(&item, &Answer::local(response)) {
        Grading::Done(verdict) => verdict,
        Grading::NeedsTurn(stage) => {
            return Err(RowError::column("response", format!("needs {}", stage.offline_requirement())));
        }
    };
    let mut detail = verdict.detail;
    if !verdict.reason.is_empty() {
        detail.insert("reason".into(), Value::String(verdict.reason));
    }
    if let Some(code) = verdict.code {
        detail.insert("code".into(), Value::String(code.to_string()));
    }
    Ok(ScoreLine {
        id,
        extracted: verdict.extracted,
        correct: verdict.outcome == Outcome::Correct,
        score: verdict.score,
        outcome: verdict.outcome,
        detail,
    })
}

/// Returns the index of the sample that the response belongs to; 0 if the line has none.
fn sample_of(row: &Row) -> Result<u32, RowError> {
    match row.get("sample") {
        Some(Value::Null) | None => Ok(0),
        Some(sample) => sample
            .as_u64()
            .and_then(|sample| u32::try_from(sample).ok())
            .filter(|sample| *sample < SAMPLES_PER_ITEM_MAX)
            .ok_or_else(|| {
                let last = SAMPLES_PER_ITEM_MAX - 1;
                RowError::column("sample", format!("is not the index of a sample, from 0 to {last}"))
            }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::find;

    fn score(benchmark: &str, line: Value) -> Result<Value, String> {
        let Value::Object(row) = line else { return Err("not an object".into()) };
        score_line(find(benchmark).unwrap(), &row, None)
            .map(|line| serde_json::to_value(line).unwrap())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn grading_fields_are_enough() {
        let line = score("aime_2025", json!({"id": "a", "response": "\\boxed{070}", "gold": "70"})).unwrap();
        assert_eq!(
            (&line["extracted"], &line["correct"], &line["score"]),
            (&json!("70"), &json!(true), &json!(1.0))
        );
        let line = score("aime_2025", json!({"id": 3, "response": "\\boxed{16}", "answer": 70})).unwrap();
        assert_eq!((&line["id"], &line["outcome"]), (&json!(3), &json!("incorrect")));
        assert!(line["detail"]["reason"].is_string());
        let line = score("mmlu_pro", json!({"id": "m", "response": "the answer is (C)", "answer_index": 2}))
            .unwrap();
        assert_eq!(line["outcome"], "correct");
        let line = score("mmlu_pro", json!({"id": "m", "response": null, "answer": "C"})).unwrap();
        assert_eq!((&line["outcome"], &line["score"]), (&json!("no-answer"), &json!(0.0)));
        let unusable = json!({"id": "i", "response": "x", "prompt": "p", "instruction_id_list": ["no:such"], "kwargs": [{}]});
        let line = score("ifbench", unusable).unwrap();
        assert_eq!(
            (&line["outcome"], &line["detail"]["code"]),
            (&json!("infrastructure-error"), &json!("invalid_item"))
        );
        let line = score("mmlu_pro", json!({"id": "m", "response": "none", "answer": "C"})).unwrap();
        assert_eq!((&line["extracted"], &line["outcome"]), (&Value::Null, &json!("unparsed")));
    }

    #[test]
    fn the_field_at_fault_is_named() {
        for (line, field) in [
            (json!({"response": "x", "gold": 1}), "id"),
            (json!({"id": [1], "response": "x", "gold": 1}), "id"),
            (json!({"id": "a", "gold": 1}), "response"),
            (json!({"id": "a", "response": 7, "gold": 1}), "response"),
            (json!({"id": "a", "response": "x"}), "answer"),
            (json!({"id": "a", "response": "x", "gold": "seven"}), "gold"),
        ] {
            let error = score("aime_2025", line).unwrap_err();
            assert!(error.starts_with(&format!("column `{field}`: ")), "{error}");
        }
        let error = score("mmlu_pro", json!({"id": "a", "response": "x", "answer": "K"})).unwrap_err();
        assert!(error.starts_with("column `answer`: "), "{error}");
    }
}
