//! Agents that ask a model, as callers of an episode see them.

use std::collections::BTreeMap;

use bench_agents::terminus2::{ReplyFormat, Terminus2Settings, Terminus2Texts};
use bench_agents::{Part, Seen, TextSource, Transcript};
use bench_domain::{Agent, AgentRecord};
use serde_json::Value;

/// Names of the official texts of `terminus-2`, as the benchmark lists them.
const TEMPLATE: &str = "terminus_2_template";
const PROGRAM: &str = "terminus_2_program";

/// Beginning of the message of a failure by which the model refused the request.
pub const REFUSED: &str = "the model refused: ";

/// An agent that asks a model, with the transcript of the task's step on which it works.
#[derive(Debug, Clone)]
pub struct Thinker {
    /// Options of the agent by name.
    pub options: BTreeMap<String, String>,
    /// Official texts that were loaded, by name.
    pub texts: BTreeMap<String, String>,
    /// Context window of the model in tokens, if known.
    pub context_tokens: Option<u64>,
    /// Transcript of all stored records.
    pub transcript: Transcript,
    /// Answer to the model call of an agent's step that hasn't been stored yet.
    pub answer: Option<ModelAnswer>,
    /// Time of day for the transcript, as ISO 8601 text.
    pub at: Option<String>,
}

/// Answer to a model call.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAnswer {
    /// Number of the agent's step that asked.
    pub step: u32,
    /// Reply or failure.
    pub seen: Seen,
    /// Tokens of the call.
    pub paid: bench_domain::Usage,
}

/// Request of an agent for a model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRequest {
    /// Number of the agent's step that asks.
    pub step: u32,
    /// Messages of the conversation.
    pub prompt: bench_domain::Prompt,
}

impl Thinker {
    /// Creates an agent without a transcript.
    pub fn new(options: BTreeMap<String, String>, texts: BTreeMap<String, String>) -> Self {
        Self {
            options,
            texts,
            context_tokens: None,
            transcript: Transcript::default(),
            answer: None,
            at: None,
        }
    }

    /// Adds the parts of a stored record to the transcript. The first record of a step of the task begins a new transcript.
    ///
    /// # Errors
    /// If a part can't be read.
    pub fn add(&mut self, record: &AgentRecord) -> Result<(), serde_json::Error> {
        let parts = record.parts.iter().map(|part| serde_json::from_value::<Part>(part.clone()));
        let parts: Vec<Part> = parts.collect::<Result<_, _>>()?;
        // The same agent may have worked on the step before.
        if record.progress.records <= 1 {
            self.transcript = Transcript::default();
        }
        self.transcript.extend(parts);
        Ok(())
    }

    /// Returns the texts of `terminus-2`: the official ones if all were loaded, otherwise our own.
    pub(crate) fn terminus2_texts(&self, format: ReplyFormat) -> Terminus2Texts {
        let official = self.texts.get(TEMPLATE).zip(self.texts.get(PROGRAM));
        let official =
            official.and_then(|(template, program)| Terminus2Texts::official(format, template, program).ok());
        official.unwrap_or_else(|| Terminus2Texts::own(format))
    }

    /// Returns the origin of the agent's texts.
    pub fn text_source(&self, agent: Agent) -> TextSource {
        match (agent, Terminus2Settings::parse(&self.options)) {
            (Agent::Terminus2, Ok(settings)) => self.terminus2_texts(settings.format).source,
            _ => TextSource::Own,
        }
    }
}

/// Returns the parts of a step as the record keeps them.
pub(crate) fn parts_as_json(parts: &[Part]) -> Vec<Value> {
    parts.iter().filter_map(|part| serde_json::to_value(part).ok()).collect()
}

#[cfg(test)]
mod tests {
    use bench_domain::AgentProgress;
    use serde_json::json;

    use super::*;

    fn record(task_step: usize, number: u32, text: &str) -> AgentRecord {
        let progress = AgentProgress { records: number, ..AgentProgress::new(task_step) };
        let parts = vec![json!({ "part": "message", "purpose": "task", "text": text })];
        AgentRecord { progress, parts, paid: None, user_paid: None }
    }

    #[test]
    fn each_step_of_a_task_has_a_transcript_of_its_own() {
        let mut thinker = Thinker::new(BTreeMap::new(), BTreeMap::new());
        thinker.add(&record(0, 1, "first")).unwrap();
        thinker.add(&record(0, 2, "second")).unwrap();
        assert_eq!(thinker.transcript.parts().len(), 2);
        thinker.add(&record(1, 1, "third")).unwrap();
        let [Part::Message(message)] = thinker.transcript.parts() else {
            panic!("{:?}", thinker.transcript.parts())
        };
        assert_eq!(message.text, "third");
    }
}
