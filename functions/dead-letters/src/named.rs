//! Guesses the run and the sample that an unreadable message concerns.

use bench_domain::RunId;
use serde_json::Value;

/// Number of characters of a run's id.
const ID_CHARS: usize = 36;
/// Maximum number of characters of the description of a sample.
const SAMPLE_CHARS_MAX: usize = 200;

/// Returns the run and the sample that a text seems to name: from its JSON fields, or else the first thing in it that
/// looks like a run's id.
pub(crate) fn named(text: &str) -> (Option<RunId>, Option<String>) {
    let json: Option<Value> = serde_json::from_str(text).ok();
    let run = json.as_ref().and_then(|json| json.get("run")?.as_str()?.parse().ok());
    (run.or_else(|| first_id(text)), json.as_ref().and_then(sample))
}

fn first_id(text: &str) -> Option<RunId> {
    (0..text.len()).find_map(|start| text.get(start..start + ID_CHARS)?.parse().ok())
}

/// Returns the benchmark and the position, as far as they are present.
fn sample(json: &Value) -> Option<String> {
    let benchmark = json.get("benchmark")?.as_str()?;
    let place = json.get("position").map(Value::to_string).unwrap_or_default();
    Some(format!("{benchmark} {place}").trim().chars().take(SAMPLE_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use bench_domain::{Position, SampleRef};
    use bench_queue::Message;

    use super::*;

    fn sample_ref() -> SampleRef {
        SampleRef {
            run: RunId::random(),
            benchmark: "mmlu_pro".parse().unwrap(),
            plan: 1,
            shards: 4,
            position: Position { item: 17, sample: 2 },
        }
    }

    #[test]
    fn a_damaged_message_still_names_its_run_and_sample() {
        let sample = sample_ref();
        let whole = Message::Sample { sample: sample.clone(), generation: 1 }.to_body();
        let (run, found) = named(&whole);
        assert_eq!(run, Some(sample.run));
        assert!(found.as_ref().is_some_and(|found| found.starts_with("mmlu_pro ") && found.contains("17")));
        let cut = whole.get(..whole.len() - 5).unwrap();
        assert_eq!(named(cut), (Some(sample.run), None));
        assert_eq!(named(&format!("ärger mit {} und mehr", sample.run)), (Some(sample.run), None));
    }

    #[test]
    fn a_text_about_nothing_names_nothing() {
        for text in ["", "{}", "ä", "[1]", r#"{"run":7,"benchmark":{}}"#, &"é".repeat(100), &"-".repeat(36)]
        {
            assert_eq!(named(text), (None, None), "{text}");
        }
    }
}
