//! From the pieces of a response to an [`Answer`].

use bench_domain::{Answer, Finish, TextRepairs, Usage};

use super::classify::classify_in_body;
use super::error_body::ErrorBody;
use super::images::with_images;
use super::piece::{Choice, Message, Piece, Text};
use super::usage_object::{ReportedUsage, parse_usage};
use crate::Keys;
use crate::failure::{quote, quote_bytes};
use crate::protocols::{AnswerReader, ReportedError, Stop};
use crate::sse::Event;
use crate::tokens::estimate_tokens;
use crate::unicode::{self, Assembler};

/// Most bytes of an answer, reasoning included.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most bytes of a `usage` object that is kept as it came.
const USAGE_BYTES_MAX: usize = 8 * 1024;
/// Most characters of an id or a model's name.
const NAME_CHARS_MAX: usize = 200;

/// The status of an error in a response that names none.
const INTERNAL_ERROR: u16 = 500;

/// What has come so far.
#[derive(Debug, Default)]
pub(super) struct Collector {
    /// Whether the prompt has images, which a model may not be able to take.
    has_images: bool,
    /// Removed from what is quoted of the response: a quotation may be cut within a key.
    keys: Keys,
    content: Assembler,
    reasoning: Assembler,
    refusal: Assembler,
    repairs: TextRepairs,
    finish: Option<String>,
    usage_raw: String,
    /// Number of keys that were removed from names.
    keys_redacted: u64,
    model: Option<String>,
    id: Option<String>,
    has_choices: bool,
    is_done: bool,
}

impl Collector {
    /// A collector for a response to a request with these keys.
    pub(super) fn new(keys: Keys, has_images: bool) -> Self {
        Self { has_images, keys, ..Self::default() }
    }

    fn into_answer(self, request_id: Option<String>) -> Answer {
        let mut repairs = self.repairs;
        let [content, reasoning, refusal] =
            [self.content, self.reasoning, self.refusal].map(|text| text.finish(&mut repairs));
        let refused = !refusal.is_empty();
        let text = match (content.is_empty(), refused) {
            (false, true) => format!("{content}\n\n{refusal}"),
            (true, true) => refusal,
            _ => content,
        };
        let said = parse_usage(&self.usage_raw);
        Answer {
            reasoning: Some(reasoning).filter(|reasoning| !reasoning.is_empty()),
            finish: if refused { Finish::Refused } else { Finish::from_wire(self.finish.as_deref()) },
            usage: said.counted(),
            usage_rejected: said == ReportedUsage::Impossible,
            repairs,
            usage_raw: Some(self.usage_raw).filter(|raw| !raw.is_empty()),
            model: self.model,
            keys_redacted: self.keys_redacted,
            request_id: request_id.or(self.id),
            ..Answer::local(text)
        }
    }

    /// Several objects in one event: servers that forget the empty line between two.
    fn pieces(&mut self, data: &[u8], form: Form) -> Option<Result<(), Stop>> {
        let ends = data.ends_with(b"[DONE]");
        let data = data.strip_suffix(b"[DONE]").unwrap_or(data);
        let mut pieces = Vec::new();
        for piece in serde_json::Deserializer::from_slice(data).into_iter::<Piece<'_>>() {
            pieces.push(piece.ok()?);
        }
        let result = pieces.iter().try_for_each(|piece| self.piece(piece, data, form));
        self.is_done |= ends;
        (!pieces.is_empty()).then_some(result)
    }

    fn piece(&mut self, piece: &Piece<'_>, data: &[u8], form: Form) -> Result<(), Stop> {
        // An error after the end of the answer does not undo the answer.
        if self.finish.is_none() {
            let choices = piece.choices.iter().flatten();
            if let Some(error) = piece.error.or_else(|| choices.filter_map(|choice| choice.error).next()) {
                return Err(self.reported(error.get().as_bytes()));
            }
            if piece.object.as_ref().is_some_and(|object| object.0 == "error") {
                return Err(self.reported(data));
            }
        }
        for (slot, text) in [(&mut self.id, &piece.id), (&mut self.model, &piece.model)] {
            if let (None, Some(text)) = (&slot, text.as_ref().filter(|text| !text.0.is_empty())) {
                *slot = Some(form.name(&text.0, &self.keys, &mut self.keys_redacted));
            }
        }
        if let Some(usage) =
            piece.usage.map(|usage| usage.get()).filter(|usage| usage.len() <= USAGE_BYTES_MAX)
        {
            self.usage_raw.clear();
            self.usage_raw.push_str(usage);
        }
        match piece.choices.iter().flatten().find(|choice| choice.index.unwrap_or(0) == 0) {
            Some(choice) => self.choice(choice, form),
            None => Ok(()),
        }
    }

    fn choice(&mut self, choice: &Choice<'_>, form: Form) -> Result<(), Stop> {
        self.has_choices = true;
        if let Some(message) = choice.delta.as_ref().or(choice.message.as_ref()) {
            self.message(message, form);
        } else if let Some(text) = &choice.text {
            form.append(&mut self.content, &text.0, &mut self.repairs);
        }
        if self.bytes() > ANSWER_BYTES_MAX {
            return Err(Stop::TooLarge("the answer is larger than 16 MiB"));
        }
        match choice.finish_reason.as_ref().map(|reason| reason.0.as_ref()) {
            None | Some("") => Ok(()),
            // The server stopped the model; it did not come to its end.
            Some(reason @ ("error" | "abort")) => {
                Err(Stop::Garbage(format!("the answer broke off with finish_reason={reason}")))
            }
            Some(reason) => {
                self.finish = Some(form.name(reason, &self.keys, &mut self.keys_redacted));
                Ok(())
            }
        }
    }

    fn message(&mut self, message: &Message<'_>, form: Form) {
        let repairs = &mut self.repairs;
        let mut append = |to: &mut Assembler, text: &Option<Text<'_>>| {
            let text = text.as_ref().map_or("", |text| text.0.as_ref());
            form.append(to, text, repairs);
            !text.is_empty()
        };
        append(&mut self.content, &message.content);
        append(&mut self.refusal, &message.refusal);
        // Servers in transition send the same text under both names.
        if !append(&mut self.reasoning, &message.reasoning_content) {
            append(&mut self.reasoning, &message.reasoning);
        }
    }

    /// An error object, by its message where it has one.
    fn reported(&self, data: &[u8]) -> Stop {
        let data = self.keys.redact_beginning(data);
        let error = ErrorBody::parse(&data);
        let text = if error.message.is_empty() { quote_bytes(&data) } else { quote(&error.message) };
        let (status, mut kind) = classify_in_body(&error);
        if self.has_images {
            kind = with_images(kind, status.unwrap_or(INTERNAL_ERROR), &error.message);
        }
        Stop::Error(ReportedError { status, kind }, text)
    }

    fn garbage(&self, error: &serde_json::Error, data: &[u8]) -> Stop {
        Stop::Garbage(format!("Invalid JSON response ({error}): {}", self.quote_bytes(data)))
    }

    fn quote_bytes(&self, data: &[u8]) -> String {
        quote_bytes(&self.keys.redact_beginning(data))
    }
}

impl AnswerReader for Collector {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        let data = event.data.trim_ascii();
        if data == b"[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        if data.is_empty() || self.is_done {
            return Ok(());
        }
        if event.is_error && self.finish.is_none() {
            return Err(self.reported(data));
        }
        let error = match serde_json::from_slice::<Piece<'_>>(data) {
            Ok(piece) => return self.piece(&piece, data, Form::Plain),
            Err(error) => error,
        };
        if let Some(result) = self.pieces(data, Form::Plain) {
            return result;
        }
        let marked = unicode::mark(data);
        let result = marked.and_then(|marked| self.pieces(&marked, Form::Marked));
        result.unwrap_or_else(|| Err(self.garbage(&error, data)))
    }

    fn whole(&mut self, body: &[u8]) -> Result<(), Stop> {
        let body = body.trim_ascii();
        match serde_json::from_slice::<Piece<'_>>(body) {
            Ok(piece) => self.piece(&piece, body, Form::Plain)?,
            Err(error) => {
                let marked = unicode::mark(body);
                let piece = marked.as_deref().and_then(|marked| serde_json::from_slice(marked).ok());
                match piece {
                    Some(piece) => self.piece(&piece, body, Form::Marked)?,
                    // Some gateways put an error into an array.
                    None if ErrorBody::parse(body).is_empty() => return Err(self.garbage(&error, body)),
                    None => return Err(self.reported(body)),
                }
            }
        }
        if !self.has_choices {
            return Err(match ErrorBody::parse(body) {
                said if said.is_empty() => {
                    Stop::Garbage(format!("No choices in response: {}", self.quote_bytes(body)))
                }
                _ => self.reported(body),
            });
        }
        self.is_done = true;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some() || self.is_done
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn has_begun(&self) -> bool {
        self.has_choices
    }

    fn bytes(&self) -> usize {
        self.content.len() + self.reasoning.len() + self.refusal.len()
    }

    fn usage_so_far(&self) -> Option<Usage> {
        let texts = [&self.content, &self.reasoning, &self.refusal];
        let output_tokens = texts.into_iter().map(|text| estimate_tokens(text.as_str())).sum();
        let estimated = Usage::counted(0, output_tokens, 0).estimated();
        parse_usage(&self.usage_raw).counted().or_else(|| (self.bytes() > 0).then_some(estimated))
    }

    fn finish(self: Box<Self>, request_id: Option<String>) -> Answer {
        self.into_answer(request_id)
    }
}

/// How a piece came to be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As it came.
    Plain,
    /// With marks where its texts were broken.
    Marked,
}

impl Form {
    fn append(self, to: &mut Assembler, text: &str, repairs: &mut TextRepairs) {
        match self {
            Self::Plain => to.push(text, repairs),
            Self::Marked => to.push_marked(text, repairs),
        }
    }

    /// A name, of which no other part will come. Keys are removed before it is cut.
    fn name(self, text: &str, keys: &Keys, redacted: &mut u64) -> String {
        let (mut name, mut repairs) = (Assembler::default(), TextRepairs::default());
        self.append(&mut name, text, &mut repairs);
        let mut name = name.finish(&mut repairs);
        *redacted += keys.redact_in(&mut name);
        name.chars().take(NAME_CHARS_MAX).collect()
    }
}

#[cfg(test)]
#[path = "collect/tests.rs"]
mod tests;
