//! Drives an agent as an episode does, through saved states, and delivers each observation twice.

use bench_agents::terminus2::{ReplyFormat, Terminus2, Terminus2Settings, Terminus2State, Terminus2Texts};
use bench_agents::{
    Act, End, ModelFailure, ModelFailureKind, ModelReply, Observation, Role, Seen, StepError, TerminalState,
    Transcript, Usage,
};
use serde_json::Value;

/// Instruction of the tests' task.
pub(crate) const INSTRUCTION: &str = "Make {it} work.";

/// Episode of `terminus-2`.
pub(crate) struct Episode {
    pub(crate) agent: Terminus2,
    pub(crate) state: Terminus2State,
    pub(crate) transcript: Transcript,
    pub(crate) elapsed_ms: u64,
    /// Bytes of parts that were stored.
    pub(crate) stored_bytes: usize,
    /// Everything that was typed.
    pub(crate) typed: Vec<String>,
}

impl Episode {
    pub(crate) fn new(settings: Terminus2Settings) -> Self {
        let texts = Terminus2Texts::own(settings.format);
        Self::with(Terminus2::new(settings, &texts, INSTRUCTION).unwrap())
    }

    pub(crate) fn with(agent: Terminus2) -> Self {
        let state = agent.start().state;
        Self {
            agent,
            state,
            transcript: Transcript::default(),
            elapsed_ms: 0,
            stored_bytes: 0,
            typed: Vec::new(),
        }
    }

    /// Continues an episode from its saved state.
    pub(crate) fn resume(agent: &Terminus2, state: &Terminus2State, transcript: &Transcript) -> Self {
        let (state, transcript) = (state.clone(), transcript.clone());
        Self { state, transcript, ..Self::with(agent.clone()) }
    }

    /// Starts an episode whose terminal shows a prompt.
    pub(crate) fn open(settings: Terminus2Settings) -> Self {
        let mut episode = Self::new(settings);
        assert_eq!(episode.act(), Act::Type(Vec::new()));
        episode.give(screen("$ "));
        episode
    }

    pub(crate) fn json() -> Self {
        Self::open(Terminus2Settings::default())
    }

    pub(crate) fn xml() -> Self {
        Self::open(Terminus2Settings { format: ReplyFormat::Xml, ..Terminus2Settings::default() })
    }

    pub(crate) fn act(&self) -> Act {
        self.agent.act(&self.state, &self.transcript).unwrap()
    }

    /// Returns the messages of the request that the agent waits for.
    pub(crate) fn request(&self) -> Vec<(Role, String)> {
        let Act::AskModel(call) = self.act() else { panic!("no request: {:?}", self.act()) };
        let messages = self.transcript.request(&call);
        messages.iter().map(|message| (message.role, message.content.to_owned())).collect()
    }

    /// Returns the text of the last message of the request.
    pub(crate) fn question(&self) -> String {
        self.request().pop().unwrap().1
    }

    pub(crate) fn end(&self) -> End {
        let Act::End(end) = self.act() else { panic!("not over: {:?}", self.act()) };
        assert_eq!(self.state.end(), Some(&end));
        end
    }

    /// Gives the agent an observation, after a delivery of which nothing was saved.
    pub(crate) fn give(&mut self, seen: Seen) {
        if let Act::Type(keystrokes) = self.act() {
            self.typed.extend(keystrokes.into_iter().map(|keystrokes| keystrokes.keys));
        }
        let observation = self.observation(seen);
        let lost = self.agent.step(&self.state, &self.transcript, observation.clone()).unwrap();
        let step = self.agent.step(&self.state, &self.transcript, observation.clone()).unwrap();
        assert_eq!(step, lost);
        let saved = serde_json::to_string(&step.state).unwrap();
        assert!(saved.len() < 6_000, "{} bytes: {saved}", saved.len());
        let parts = serde_json::to_string(&step.parts).unwrap();
        self.stored_bytes += parts.len();
        self.state = serde_json::from_str(&saved).unwrap();
        assert_eq!(self.state, step.state);
        let parts: Vec<_> = serde_json::from_str(&parts).unwrap();
        assert_eq!(parts, step.parts);
        self.transcript.extend(parts);
        // The message arrives again after the step was saved.
        let again = self.agent.step(&self.state, &self.transcript, observation.clone());
        assert_eq!(again, Err(StepError::OtherStep { given: observation.step, expected: self.state.step() }));
    }

    pub(crate) fn observation(&self, seen: Seen) -> Observation {
        let at = Some(format!("2026-11-25T12:00:{:02}Z", self.state.step() % 60));
        Observation { step: self.state.step(), elapsed_ms: self.elapsed_ms, at, seen }
    }

    /// Lets the model reply, and shows the same screen after its commands.
    pub(crate) fn turn(&mut self, text: &str) {
        self.give(reply(text));
        if matches!(self.act(), Act::Type(_)) {
            self.give(screen("$ "));
        }
    }
}

pub(crate) fn screen(text: &str) -> Seen {
    Seen::Terminal(TerminalState { is_alive: true, history: text.to_owned(), screen: text.to_owned() })
}

pub(crate) fn dead() -> Seen {
    Seen::Terminal(TerminalState::default())
}

pub(crate) fn reply(text: &str) -> Seen {
    reply_with(text, 100)
}

/// Returns a reply to a request with a number of tokens.
pub(crate) fn reply_with(text: &str, input_tokens: u64) -> Seen {
    let usage = Usage { input_tokens, cached_tokens: input_tokens / 2, output_tokens: 10, cost_usd: 0.25 };
    Seen::Reply(ModelReply { text: text.to_owned(), usage, latency_ms: 1_500, ..ModelReply::default() })
}

pub(crate) fn cut(text: &str) -> Seen {
    let Seen::Reply(reply) = reply(text) else { panic!() };
    Seen::Reply(ModelReply { is_cut: true, ..reply })
}

pub(crate) fn failure(kind: ModelFailureKind) -> Seen {
    Seen::ModelFailed(ModelFailure { kind, message: "no model".to_owned(), latency_ms: 5 })
}

pub(crate) fn overflow() -> Seen {
    failure(ModelFailureKind::ContextExceeded)
}

/// Returns a reply in JSON.
pub(crate) fn json_reply(keystrokes: &[&str], is_complete: bool) -> String {
    let command = |keys: &&str| serde_json::json!({ "keystrokes": keys, "duration": 0.1 });
    let commands: Vec<Value> = keystrokes.iter().map(command).collect();
    let commands = serde_json::to_string(&commands).unwrap();
    format!(r#"{{"analysis":"a","plan":"p","commands":{commands},"task_complete":{is_complete}}}"#)
}
