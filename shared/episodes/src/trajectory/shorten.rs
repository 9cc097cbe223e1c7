//! Steps of trajectories with long texts cut.

use bench_agents::AtifStep;
use serde_json::Value;

/// Maximum number of actions in a step that is cut.
const CALLS_MAX: usize = 200;
/// Field of a step with the number of actions that were left out.
const OMITTED_CALLS: &str = "omitted_tool_calls";

/// Room for the texts of a step.
#[derive(Debug, Clone, Copy)]
pub struct StepRoom {
    /// Maximum length of a text in bytes.
    pub text: usize,
    /// Maximum length of all texts of the step together in bytes.
    pub all: usize,
}

/// Returns a step with its texts cut to the room: what was said, done and seen. A cut text ends with the number of characters
/// that are missing. Names, ids and times stay as they are; of very many actions, the first are kept, and `extra` has the number
/// of the others.
pub fn shortened_step(step: &AtifStep, room: StepRoom) -> AtifStep {
    let mut step = step.clone();
    let mut left = Left { text: room.text, all: room.all };
    left.cut(&mut step.message);
    if let Some(reasoning) = &mut step.reasoning_content {
        left.cut(reasoning);
    }
    let omitted = step.tool_calls.len().saturating_sub(CALLS_MAX);
    if omitted > 0 {
        step.tool_calls.truncate(CALLS_MAX);
        step.extra.insert(OMITTED_CALLS.to_owned(), omitted.into());
    }
    for call in &mut step.tool_calls {
        call.arguments.values_mut().for_each(|value| left.cut_value(value));
    }
    for result in step.observation.iter_mut().flat_map(|observation| &mut observation.results) {
        if let Some(content) = &mut result.content {
            left.cut(content);
        }
        let is_kept = |id: &String| step.tool_calls.iter().any(|call| call.tool_call_id == *id);
        result.source_call_id = result.source_call_id.take().filter(is_kept);
    }
    step
}

/// Room that is left.
struct Left {
    text: usize,
    all: usize,
}

impl Left {
    fn cut(&mut self, text: &mut String) {
        let room = self.text.min(self.all);
        if text.len() > room {
            let end = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let omitted = text.split_off(end).chars().count();
            text.push_str(&format!("\n[{omitted} more characters]"));
        }
        self.all = self.all.saturating_sub(text.len());
    }

    /// Cuts an argument. Those of our agents are texts and numbers.
    fn cut_value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => self.cut(text),
            Value::Array(_) | Value::Object(_) if value.to_string().len() > self.text.min(self.all) => {
                *value = Value::Null;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_agents::{AtifObservation, AtifResult, AtifSource, ToolCall};
    use serde_json::{Map, json};

    use super::*;

    const ROOM: StepRoom = StepRoom { text: 1_000, all: 4_000 };

    fn step(message: &str, calls: usize, keys: &str, seen: &str) -> AtifStep {
        let call = |number: usize| ToolCall {
            tool_call_id: format!("call_{number}"),
            function_name: "bash_command".to_owned(),
            arguments: Map::from_iter([
                ("keystrokes".to_owned(), keys.into()),
                ("duration".to_owned(), json!(0.1)),
            ]),
        };
        let result = AtifResult {
            source_call_id: Some(format!("call_{}", calls.saturating_sub(1))),
            content: Some(seen.to_owned()),
            ..AtifResult::default()
        };
        AtifStep {
            step_id: 2,
            timestamp: Some("2026-01-02T03:04:05Z".to_owned()),
            source: AtifSource::Agent,
            message: message.to_owned(),
            model_name: None,
            reasoning_content: Some(message.to_owned()),
            tool_calls: (0..calls).map(call).collect(),
            observation: Some(AtifObservation { results: vec![result] }),
            metrics: None,
            llm_call_count: None,
            extra: Map::new(),
        }
    }

    #[test]
    fn short_steps_stay_as_they_are() {
        let step = step("I look.", 3, "ls\n", "a\nb");
        assert_eq!(shortened_step(&step, ROOM), step);
    }

    #[test]
    fn texts_are_cut_and_names_are_not() {
        let long = "é".repeat(100_000);
        let whole = step(&long, 8, &long, &long);
        let cut = shortened_step(&whole, ROOM);
        assert!(cut.message.ends_with("é\n[99500 more characters]"), "{}", cut.message);
        assert!(serde_json::to_string(&cut).unwrap().len() < 3 * ROOM.all);
        let names = |step: &AtifStep| -> Vec<(String, String)> {
            step.tool_calls
                .iter()
                .map(|call| (call.tool_call_id.clone(), call.function_name.clone()))
                .collect()
        };
        assert_eq!((names(&cut), &cut.timestamp), (names(&whole), &whole.timestamp));
        assert_eq!(cut.tool_calls[7].arguments["duration"], 0.1);
        assert_eq!(cut.observation.unwrap().results[0].source_call_id.as_deref(), Some("call_7"));
    }

    #[test]
    fn of_very_many_actions_the_first_are_kept() {
        let cut = shortened_step(&step("m", 100_000, "ls\n", "seen"), ROOM);
        assert_eq!(
            (cut.tool_calls.len(), &cut.extra[OMITTED_CALLS]),
            (CALLS_MAX, &json!(100_000 - CALLS_MAX))
        );
        // Its action isn't there.
        assert_eq!(cut.observation.unwrap().results[0].source_call_id, None);
    }
}
