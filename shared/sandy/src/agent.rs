//! A coding agent that the service runs inside a sandbox, and the events that it tells of.

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::{Map, Value, json};

use crate::client::{Call, broken};
use crate::id::check_id;
use crate::{Sandy, SandyError};

/// Longest line that is an event, in bytes. A longer one is passed over.
const LINE_BYTES_MAX: usize = 4 << 20;
/// All that is read of one run, in bytes.
const STREAM_BYTES_MAX: usize = 256 << 20;

/// What an agent is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRequest {
    /// Which agent, such as `codex`.
    pub agent: String,
    /// The model that it asks.
    pub model: String,
    /// The task.
    pub prompt: String,
    /// How long it may work, in whole seconds.
    pub max_duration: Duration,
}

/// Something that an agent tells.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// Text that it wrote.
    Output(String),
    /// It is done; the event as it came.
    Complete(Map<String, Value>),
    /// Anything else; its type.
    Other(String),
}

/// What is left of an agent's run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentRun {
    /// The last text that it wrote.
    pub output: Option<String>,
    /// The last event that said it was done. Without one it is unknown whether it was.
    pub summary: Option<Map<String, Value>>,
}

/// The events of an agent that is at work.
#[derive(Debug)]
pub struct AgentEvents {
    response: Response,
    lines: Lines,
    timeout: Duration,
    bytes: usize,
    is_over: bool,
}

impl Sandy {
    /// Sets an agent to work; gives its events as they come. Never repeated. Time limit in all: the agent's own and
    /// 60 s.
    pub async fn agent_events(&self, sandbox: &str, agent: &AgentRequest) -> Result<AgentEvents, SandyError> {
        check_id(sandbox)?;
        let body = json!({
            "agent": agent.agent, "model": agent.model, "prompt": agent.prompt,
            "maxDuration": agent.max_duration.as_secs(),
        });
        let timeout = agent.max_duration.saturating_add(self.timing.agent_margin);
        let path = ["sandboxes", sandbox, "agent", "run"];
        let body = Some(body.to_string().into_bytes());
        let call = Call { method: Method::POST, path: &path, query: &[], body, timeout };
        let response = self.send_to_sandbox(&call).await.map_err(|failed| failed.error)?;
        Ok(AgentEvents { response, lines: Lines::default(), timeout, bytes: 0, is_over: false })
    }

    /// Sets an agent to work and waits until it is done, as [`Sandy::agent_events`].
    pub async fn agent_run(&self, sandbox: &str, agent: &AgentRequest) -> Result<AgentRun, SandyError> {
        let mut events = self.agent_events(sandbox, agent).await?;
        let mut run = AgentRun::default();
        while let Some(event) = events.next().await? {
            match event {
                AgentEvent::Output(text) => run.output = Some(text),
                AgentEvent::Complete(summary) => run.summary = Some(summary),
                AgentEvent::Other(_) => {}
            }
        }
        Ok(run)
    }
}

impl AgentEvents {
    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// When the stream breaks off, its time is up, or it is longer than 256 MiB.
    pub async fn next(&mut self) -> Result<Option<AgentEvent>, SandyError> {
        loop {
            while let Some(line) = self.lines.next() {
                if let Some(event) = event(&line) {
                    return Ok(Some(event));
                }
            }
            if self.is_over {
                return Ok(None);
            }
            match self.response.chunk().await.map_err(|error| broken(error, self.timeout).error)? {
                Some(piece) => {
                    self.bytes += piece.len();
                    if self.bytes > STREAM_BYTES_MAX {
                        return Err(SandyError::TooLong);
                    }
                    self.lines.take(&piece);
                }
                None => {
                    self.is_over = true;
                    self.lines.take(b"\n");
                }
            }
        }
    }
}

/// Pieces of a stream, cut into lines.
#[derive(Debug, Default)]
struct Lines {
    held: Vec<u8>,
    /// How much of it is known to have no line end.
    seen: usize,
    is_too_long: bool,
}

impl Lines {
    fn take(&mut self, piece: &[u8]) {
        self.held.extend_from_slice(piece);
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let end = self.held.iter().skip(self.seen).position(|byte| *byte == b'\n');
            let Some(end) = end.map(|end| end + self.seen) else {
                self.seen = self.held.len();
                if self.seen > LINE_BYTES_MAX {
                    (self.is_too_long, self.seen) = (true, 0);
                    self.held.clear();
                }
                return None;
            };
            let rest = self.held.split_off(end + 1);
            let line = std::mem::replace(&mut self.held, rest);
            self.seen = 0;
            let is_whole = !std::mem::take(&mut self.is_too_long);
            if is_whole && end <= LINE_BYTES_MAX {
                return Some(line);
            }
        }
    }
}

fn event(line: &[u8]) -> Option<AgentEvent> {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b"data:").map_or(line, <[u8]>::trim_ascii);
    let Value::Object(event) = serde_json::from_slice(line).ok()? else { return None };
    let kind = event.get("type")?.as_str()?.to_owned();
    match kind.as_str() {
        "output" => Some(AgentEvent::Output(event.get("text")?.as_str()?.to_owned())),
        "complete" => Some(AgentEvent::Complete(event)),
        _ => Some(AgentEvent::Other(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<AgentEvent> {
        let mut lines = Lines::default();
        let mut events = Vec::new();
        for piece in pieces {
            lines.take(piece);
            while let Some(line) = lines.next() {
                events.extend(event(&line));
            }
        }
        events
    }

    #[test]
    fn lines_are_events_with_or_without_a_prefix() {
        let output = |text: &str| AgentEvent::Output(text.to_owned());
        let told = events(&[
            b"\r\n\nnot json\n[1]\n{}\n{\"type\":1}\n{\"type\":\"output\"}\n{\"type\":\"output\",\"te",
            b"xt\":\"one\"}\r\ndata: {\"type\":\"output\",\"text\":\"two\"}\n\ndata:{\"type\":\"start\"}\n\xff\n",
            b"{\"type\":\"complete\",\"ok\":true}\n{\"type\":\"output\",\"text\":\"cut",
        ]);
        let summary = json!({ "type": "complete", "ok": true }).as_object().cloned().unwrap();
        let start = AgentEvent::Other("start".to_owned());
        assert_eq!(told, [output("one"), output("two"), start, AgentEvent::Complete(summary)]);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_not_held() {
        let mut lines = Lines::default();
        for _ in 0..5 {
            lines.take(&vec![b'x'; 1 << 20]);
            assert_eq!(lines.next(), None);
            assert!(lines.held.len() <= LINE_BYTES_MAX);
        }
        lines.take(b"end\nnext\n");
        assert_eq!(lines.next(), Some(b"next\n".to_vec()));
    }
}
