//! Figures over all verdicts: the share of prompts and of instructions that were followed.

use std::collections::BTreeMap;

use bench_domain::Verdict;
use serde_json::{Map, Value, json};

use crate::metrics::{FinishedSample, Metrics};

/// Counts of followed instructions or prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Tally {
    strict: u64,
    loose: u64,
    all: u64,
}

impl Tally {
    fn add(&mut self, strict: bool, loose: bool) {
        self.strict += u64::from(strict);
        self.loose += u64::from(loose);
        self.all += 1;
    }

    /// Returns the share; `null` if the count is zero.
    #[allow(clippy::cast_precision_loss)] // counts stay far below 2^53
    fn share(self, part: u64) -> Value {
        if self.all == 0 { Value::Null } else { json!(part as f64 / self.all as f64) }
    }

    fn to_json(self) -> Value {
        json!({"strict": self.share(self.strict), "loose": self.share(self.loose), "instructions": self.all})
    }
}

/// Accuracy by prompt and by instruction, strict and loose. The accuracy by instruction is also broken down by family
/// and type.
///
/// A prompt counts as followed if all of its instructions are. Ungraded samples don't count. A refusal without an
/// answer has no recorded instructions and counts only as a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Figures {
    prompts: Tally,
    instructions: Tally,
    families: BTreeMap<String, Tally>,
    types: BTreeMap<String, Tally>,
}

impl Figures {
    fn count(&mut self, verdict: &Verdict) {
        if verdict.score.is_none() {
            return;
        }
        let list =
            |name: &str| verdict.detail.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let (ids, strict, loose) = (list("instruction_id_list"), list("strict"), list("loose"));
        let mut all = (!ids.is_empty(), !ids.is_empty());
        for ((id, strict), loose) in ids.iter().zip(strict).zip(loose) {
            let id = id.as_str().unwrap_or_default();
            let (strict, loose) = (*strict == Value::Bool(true), *loose == Value::Bool(true));
            let family = id.split(':').next().unwrap_or_default();
            self.instructions.add(strict, loose);
            self.families.entry(family.to_owned()).or_default().add(strict, loose);
            self.types.entry(id.to_owned()).or_default().add(strict, loose);
            all = (all.0 && strict, all.1 && loose);
        }
        self.prompts.add(all.0, all.1);
    }
}

impl Metrics for Figures {
    fn add(&mut self, sample: &FinishedSample<'_>) {
        self.count(sample.verdict);
    }

    fn finish(&self, _planned: u64) -> Map<String, Value> {
        let Self { prompts, instructions, families, types } = self;
        let by_name = |tallies: &BTreeMap<String, Tally>| -> Map<String, Value> {
            tallies.iter().map(|(name, tally)| (name.clone(), tally.to_json())).collect()
        };
        let mut figures = Map::new();
        figures.insert("prompt_level_strict".into(), prompts.share(prompts.strict));
        figures.insert("instruction_level_strict".into(), instructions.share(instructions.strict));
        figures.insert("prompt_level_loose".into(), prompts.share(prompts.loose));
        figures.insert("instruction_level_loose".into(), instructions.share(instructions.loose));
        figures.insert("instruction_families".into(), Value::Object(by_name(families)));
        figures.insert("instruction_types".into(), Value::Object(by_name(types)));
        figures
    }
}

#[cfg(test)]
mod tests {
    use bench_domain::{Code, Outcome};

    use super::*;

    fn verdict(ids: &[&str], strict: &[bool], loose: &[bool]) -> Verdict {
        let mut verdict = Verdict::wrong(Outcome::Incorrect, "Not followed.");
        verdict.detail.insert("instruction_id_list".into(), json!(ids));
        verdict.detail.insert("strict".into(), json!(strict));
        verdict.detail.insert("loose".into(), json!(loose));
        verdict
    }

    #[test]
    fn prompts_and_instructions_are_counted() {
        let mut figures = Figures::default();
        for verdict in [
            verdict(&["a:x", "b:y"], &[true, false], &[true, true]),
            verdict(&["a:x"], &[true], &[true]),
            verdict(&["a:z"], &[false], &[false]),
            Verdict::wrong(Outcome::Refused, "Refused."),
            Verdict::ungraded(Code::InvalidItem, "Broken."),
        ] {
            figures.add(&FinishedSample { item: 0, group: None, verdict: &verdict });
        }
        assert_eq!(
            Value::Object(figures.finish(5)),
            json!({
                "prompt_level_strict": 0.25,
                "prompt_level_loose": 0.5,
                "instruction_level_strict": 0.5,
                "instruction_level_loose": 0.75,
                "instruction_families": {
                    "a": {"strict": 2.0 / 3.0, "loose": 2.0 / 3.0, "instructions": 3},
                    "b": {"strict": 0.0, "loose": 1.0, "instructions": 1},
                },
                "instruction_types": {
                    "a:x": {"strict": 1.0, "loose": 1.0, "instructions": 2},
                    "a:z": {"strict": 0.0, "loose": 0.0, "instructions": 1},
                    "b:y": {"strict": 0.0, "loose": 1.0, "instructions": 1},
                },
            })
        );
        assert_eq!(Figures::default().finish(0)["prompt_level_strict"], Value::Null);
    }
}
