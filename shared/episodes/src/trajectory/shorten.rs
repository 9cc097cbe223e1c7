//! Steps of trajectories with long texts cut.

use bench_agents::AtifStep;
use serde_json::Value;

/// Room for the texts of a step.
#[derive(Debug, Clone, Copy)]
pub struct StepRoom {
    /// Maximum length of a text in bytes.
    pub text: usize,
    /// Maximum length of all texts of the step together in bytes. Lists end where nothing is left.
    pub all: usize,
}

/// Returns a step as JSON, with texts cut to the room. A cut text ends with the number of characters that are missing.
pub fn shortened_step(step: &AtifStep, room: StepRoom) -> Value {
    let mut value = serde_json::to_value(step).unwrap_or_default();
    let mut left = room.all;
    shorten(&mut value, room.text, &mut left);
    value
}

fn shorten(value: &mut Value, text_max: usize, left: &mut usize) {
    match value {
        Value::String(text) => {
            let room = text_max.min(*left);
            if text.len() > room {
                let end = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                let omitted = text.split_off(end);
                text.push_str(&format!("\n[{} more characters]", omitted.chars().count()));
            }
            *left = left.saturating_sub(text.len());
        }
        Value::Array(values) => {
            let mut kept = 0;
            for value in values.iter_mut() {
                if *left == 0 {
                    break;
                }
                shorten(value, text_max, left);
                kept += 1;
            }
            values.truncate(kept);
        }
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                *left = left.saturating_sub(name.len());
                shorten(value, text_max, left);
            }
        }
        // A number takes a few bytes, so that a list of them has an end, too.
        Value::Null | Value::Bool(_) | Value::Number(_) => *left = left.saturating_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ROOM: StepRoom = StepRoom { text: 1_000, all: 4_000 };

    fn cut(mut value: Value) -> Value {
        shorten(&mut value, ROOM.text, &mut { ROOM.all });
        value
    }

    #[test]
    fn every_value_gets_an_end() {
        let long = "x".repeat(100_000);
        let many: Vec<Value> =
            (0..20_000).map(|n| json!({ "keystrokes": format!("{n}\n"), "n": [n] })).collect();
        for value in [
            json!({ "message": long, "reasoning_content": long, "calls": vec![long.clone(); 50] }),
            json!({ "message": "short", "calls": many }),
            json!({ "message": "ä".repeat(100_000), "calls": vec![0; 100_000] }),
        ] {
            let bytes = cut(value).to_string().len();
            assert!(bytes <= 4 * ROOM.all, "{bytes}");
        }
    }

    #[test]
    fn short_steps_stay_as_they_are() {
        let step =
            json!({ "step_id": 3, "message": "ls", "observation": { "results": [{ "content": "a\nb" }] } });
        assert_eq!(cut(step.clone()), step);
    }

    #[test]
    fn a_cut_text_says_how_much_is_missing() {
        let value = cut(json!("é".repeat(ROOM.text)));
        let text = value.as_str().unwrap();
        assert!(text.ends_with("é\n[500 more characters]"), "{text}");
    }
}
