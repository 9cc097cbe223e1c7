//! Builds an answer while its response is read.

use bench_domain::{Answer, Finish, TextRepairs, ToolCall, Usage};

use super::unicode::Assembler;
use super::{ReportedUsage, Stop, TextForm};
use crate::Keys;
use crate::tokens::estimate_tokens;

/// Maximum size of an answer in bytes, reasoning included.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum size in bytes of a usage report to keep.
const USAGE_BYTES_MAX: usize = 8 * 1024;
/// Maximum length of an id or a model's name in characters.
const NAME_CHARS_MAX: usize = 200;

/// Part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The answer itself.
    Content,
    /// The model's reasoning before it.
    Reasoning,
    /// The model's explanation of why it does not answer.
    Refusal,
}

/// Call of a tool, or an addition to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallPiece<'a> {
    /// Number of the call in the answer; `None` if the server sends none.
    pub(crate) index: Option<u64>,
    /// Id of the call; empty if this piece has none.
    pub(crate) id: &'a str,
    /// Name of the tool; empty if this piece has none.
    pub(crate) name: &'a str,
    /// Next part of the arguments.
    pub(crate) arguments: &'a str,
}

/// Call of a tool that is being read.
#[derive(Debug, Default)]
struct CallDraft {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: Assembler,
}

impl CallDraft {
    /// Size of a call without text, so that calls without any have a limit, too.
    const EMPTY_BYTES: usize = 256;

    const fn bytes(&self) -> usize {
        Self::EMPTY_BYTES + self.id.len() + self.name.len() + self.arguments.len()
    }
}

/// An answer that is built while its response is read. The readers of all protocols fill it. It joins broken
/// characters across chunks, limits sizes and removes keys from names before they are cut.
#[derive(Debug)]
pub(crate) struct AnswerDraft {
    keys: Keys,
    content: Assembler,
    reasoning: Assembler,
    refusal: Assembler,
    calls: Vec<CallDraft>,
    /// Size of all calls in bytes.
    calls_bytes: usize,
    repairs: TextRepairs,
    finish: Option<Finish>,
    usage: ReportedUsage,
    usage_raw: String,
    keys_redacted: u64,
    model: Option<String>,
    id: Option<String>,
    has_begun: bool,
    is_done: bool,
}

impl AnswerDraft {
    /// Creates the draft for a response to a request with these keys.
    pub(crate) fn new(keys: Keys) -> Self {
        Self {
            keys,
            content: Assembler::default(),
            reasoning: Assembler::default(),
            refusal: Assembler::default(),
            calls: Vec::new(),
            calls_bytes: 0,
            repairs: TextRepairs::default(),
            finish: None,
            usage: ReportedUsage::Nothing,
            usage_raw: String::new(),
            keys_redacted: 0,
            model: None,
            id: None,
            has_begun: false,
            is_done: false,
        }
    }

    /// Records that the server has sent a part of an answer, even an empty one.
    pub(crate) const fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Appends text.
    ///
    /// # Errors
    /// Returns [`Stop::TooLarge`] beyond 16 MiB over all parts.
    pub(crate) fn append(&mut self, part: Part, text: &str, form: TextForm) -> Result<(), Stop> {
        let to = match part {
            Part::Content => &mut self.content,
            Part::Reasoning => &mut self.reasoning,
            Part::Refusal => &mut self.refusal,
        };
        form.append(to, text, &mut self.repairs);
        if self.bytes() > ANSWER_BYTES_MAX {
            return Err(Stop::TooLarge("the answer is larger than 16 MiB"));
        }
        Ok(())
    }

    /// Adds to a call of a tool: the one with the piece's number; without numbers, the one with its id, or the last one. The first
    /// id and name of a call count.
    ///
    /// # Errors
    /// Returns [`Stop::TooLarge`] beyond 16 MiB over all parts.
    pub(crate) fn append_call(&mut self, piece: CallPiece<'_>, form: TextForm) -> Result<(), Stop> {
        let CallPiece { index, id, name, arguments } = piece;
        let known = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|call| call.id == id),
        };
        let at = known.unwrap_or(self.calls.len());
        let [id, name] = [id, name].map(|text| match text {
            "" => String::new(),
            text => self.name(text, form),
        });
        if at == self.calls.len() {
            self.calls.push(CallDraft { index, ..CallDraft::default() });
            self.calls_bytes += CallDraft::EMPTY_BYTES;
        }
        if let Some(call) = self.calls.get_mut(at) {
            let before = call.bytes();
            if call.id.is_empty() {
                call.id = id;
            }
            if call.name.is_empty() {
                call.name = name;
            }
            form.append(&mut call.arguments, arguments, &mut self.repairs);
            self.calls_bytes += call.bytes() - before;
        }
        if self.bytes() > ANSWER_BYTES_MAX {
            return Err(Stop::TooLarge("the answer is larger than 16 MiB"));
        }
        Ok(())
    }

    /// Sets the reason why the model stopped. The last one counts. `read` converts the protocol's name for it.
    pub(crate) fn set_finish(&mut self, name: &str, form: TextForm, read: fn(&str) -> Finish) {
        self.finish = Some(read(&self.name(name, form)));
    }

    /// Sets the provider's token counts and the text that reported them. The last report counts. A text above 8 KiB
    /// is ignored.
    pub(crate) fn set_usage(&mut self, raw: &str, usage: ReportedUsage) {
        if raw.len() <= USAGE_BYTES_MAX {
            self.usage = usage;
            self.usage_raw.clear();
            self.usage_raw.push_str(raw);
        }
    }

    /// Sets the name of the answering model. The first name counts.
    pub(crate) fn set_model(&mut self, name: &str, form: TextForm) {
        if self.model.is_none() && !name.is_empty() {
            self.model = Some(self.name(name, form));
        }
    }

    /// Sets the answer's id, which replaces the request id if the server doesn't send one. The first one counts.
    pub(crate) fn set_id(&mut self, id: &str, form: TextForm) {
        if self.id.is_none() && !id.is_empty() {
            self.id = Some(self.name(id, form));
        }
    }

    /// Records the end of the response.
    pub(crate) const fn end(&mut self) {
        self.is_done = true;
    }

    /// Returns true if the server has sent a part of an answer, even an empty one.
    pub(crate) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns true if the model has reported why it stopped.
    pub(crate) const fn has_finish(&self) -> bool {
        self.finish.is_some()
    }

    /// Returns true if the model has reported why it stopped, or the server has reported the end of the response.
    pub(crate) const fn is_complete(&self) -> bool {
        self.has_finish() || self.is_done
    }

    /// Returns true if the server has reported the end of the response.
    pub(crate) const fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns the size of all texts in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.content.len() + self.reasoning.len() + self.refusal.len() + self.calls_bytes
    }

    /// Returns the tokens so far: as the provider counted them, else estimated without the prompt. `None` before any
    /// output of the model.
    pub(crate) fn usage_so_far(&self) -> Option<Usage> {
        let texts = [&self.content, &self.reasoning, &self.refusal];
        let texts = texts.into_iter().chain(self.calls.iter().map(|call| &call.arguments));
        let output_tokens = texts.map(|text| estimate_tokens(text.as_str())).sum();
        let estimated = Usage::counted(0, output_tokens, 0).estimated();
        self.usage.counted().or_else(|| (self.bytes() > 0).then_some(estimated))
    }

    /// Converts the draft to the answer. Times are left at zero.
    pub(crate) fn into_answer(self, request_id: Option<String>) -> Answer {
        let mut repairs = self.repairs;
        let [content, reasoning, refusal] =
            [self.content, self.reasoning, self.refusal].map(|text| text.finish(&mut repairs));
        let calls = self.calls.into_iter().map(|call| ToolCall {
            id: call.id,
            name: call.name,
            arguments: call.arguments.finish(&mut repairs),
        });
        let tool_calls = calls.collect();
        let refused = !refusal.is_empty();
        let text = match (content.is_empty(), refused) {
            (false, true) => format!("{content}\n\n{refusal}"),
            (true, true) => refusal,
            _ => content,
        };
        Answer {
            reasoning: Some(reasoning).filter(|reasoning| !reasoning.is_empty()),
            finish: if refused { Finish::Refused } else { self.finish.unwrap_or(Finish::Unknown) },
            usage: self.usage.counted(),
            usage_rejected: self.usage == ReportedUsage::Impossible,
            repairs,
            usage_raw: Some(self.usage_raw).filter(|raw| !raw.is_empty()),
            model: self.model,
            keys_redacted: self.keys_redacted,
            request_id: request_id.or(self.id),
            tool_calls,
            ..Answer::local(text)
        }
    }

    /// Returns a name that arrived in one part. Keys are removed before it is cut.
    fn name(&mut self, text: &str, form: TextForm) -> String {
        let (mut name, mut repairs) = (Assembler::default(), TextRepairs::default());
        form.append(&mut name, text, &mut repairs);
        let mut name = name.finish(&mut repairs);
        self.keys_redacted += self.keys.redact_in(&mut name);
        name.chars().take(NAME_CHARS_MAX).collect()
    }
}
