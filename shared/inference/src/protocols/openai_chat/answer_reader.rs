//! Assembles an answer from the pieces of a response.

use bench_domain::Finish;

use super::piece::{Choice, Message, Piece, Text};
use super::usage_object::parse_usage;
use crate::protocols::AnswerReader;
use crate::response::{
    AnswerDraft, CallPiece, ErrorBody, Event, Part, SseParser, Stop, TextForm, mark, read_json,
};

/// Reads events, or a single object.
#[derive(Debug, Default)]
pub(super) struct Reader {
    events: SseParser,
}

impl AnswerReader for Reader {
    fn push(&mut self, chunk: &[u8], draft: &mut AnswerDraft) -> Result<(), Stop> {
        self.events.push(chunk, |event| read_event(&event, draft))
    }

    fn end(&mut self, draft: &mut AnswerDraft) -> Result<(), Stop> {
        self.events.finish(|event| read_event(&event, draft))
    }

    fn read_whole(&mut self, body: &[u8], draft: &mut AnswerDraft) -> Result<(), Stop> {
        let body = body.trim_ascii();
        let mut marked = None;
        match read_json::<Piece<'_>>(body, &mut marked) {
            Ok((piece, form)) => read_piece(&piece, body, form, draft)?,
            // Some gateways wrap an error in an array.
            Err(error) if ErrorBody::parse(body).is_empty() => return Err(garbage(&error, body)),
            Err(_) => return Err(Stop::Error(body.to_vec())),
        }
        if !draft.has_begun() {
            return Err(match ErrorBody::parse(body) {
                message if message.is_empty() => {
                    Stop::Garbage("No choices in response".to_owned(), body.to_vec())
                }
                _ => Stop::Error(body.to_vec()),
            });
        }
        draft.end();
        Ok(())
    }
}

fn read_event(event: &Event<'_>, draft: &mut AnswerDraft) -> Result<(), Stop> {
    let data = event.data.trim_ascii();
    if data == b"[DONE]" {
        draft.end();
        return Ok(());
    }
    if data.is_empty() || draft.is_done() {
        return Ok(());
    }
    if event.is_error && !draft.has_finish() {
        return Err(Stop::Error(data.to_vec()));
    }
    let error = match serde_json::from_slice::<Piece<'_>>(data) {
        Ok(piece) => return read_piece(&piece, data, TextForm::Plain, draft),
        Err(error) => error,
    };
    if let Some(result) = read_pieces(data, TextForm::Plain, draft) {
        return result;
    }
    let marked = mark(data);
    let result = marked.and_then(|marked| read_pieces(&marked, TextForm::Marked, draft));
    result.unwrap_or_else(|| Err(garbage(&error, data)))
}

/// Reads several objects in one event, from servers that omit the empty line between two events.
fn read_pieces(data: &[u8], form: TextForm, draft: &mut AnswerDraft) -> Option<Result<(), Stop>> {
    let ends = data.ends_with(b"[DONE]");
    let data = data.strip_suffix(b"[DONE]").unwrap_or(data);
    let mut pieces = Vec::new();
    for piece in serde_json::Deserializer::from_slice(data).into_iter::<Piece<'_>>() {
        pieces.push(piece.ok()?);
    }
    let result = pieces.iter().try_for_each(|piece| read_piece(piece, data, form, draft));
    if ends {
        draft.end();
    }
    (!pieces.is_empty()).then_some(result)
}

fn read_piece(piece: &Piece<'_>, data: &[u8], form: TextForm, draft: &mut AnswerDraft) -> Result<(), Stop> {
    // An error after the end of the answer doesn't invalidate the answer.
    if !draft.has_finish() {
        let choices = piece.choices.iter().flatten();
        if let Some(error) = piece.error.or_else(|| choices.filter_map(|choice| choice.error).next()) {
            return Err(Stop::Error(error.get().into()));
        }
        if piece.object.as_ref().is_some_and(|object| object.0 == "error") {
            return Err(Stop::Error(data.to_vec()));
        }
    }
    if let Some(id) = &piece.id {
        draft.set_id(&id.0, form);
    }
    if let Some(model) = &piece.model {
        draft.set_model(&model.0, form);
    }
    if let Some(usage) = piece.usage {
        draft.set_usage(usage.get(), parse_usage(usage.get()));
    }
    match piece.choices.iter().flatten().find(|choice| choice.index.unwrap_or(0) == 0) {
        Some(choice) => read_choice(choice, form, draft),
        None => Ok(()),
    }
}

fn read_choice(choice: &Choice<'_>, form: TextForm, draft: &mut AnswerDraft) -> Result<(), Stop> {
    draft.begin();
    if let Some(message) = choice.delta.as_ref().or(choice.message.as_ref()) {
        read_message(message, choice.delta.is_none(), form, draft)?;
    } else if let Some(text) = &choice.text {
        draft.append(Part::Content, &text.0, form)?;
    }
    match choice.finish_reason.as_ref().map(|reason| reason.0.as_ref()) {
        None | Some("") => Ok(()),
        // The server interrupted the model before its end.
        Some(reason @ ("error" | "abort")) => {
            Err(Stop::Garbage(format!("the answer broke off with finish_reason={reason}"), Vec::new()))
        }
        Some(reason) => {
            draft.set_finish(reason, form, |name| Finish::from_wire(Some(name)));
            Ok(())
        }
    }
}

fn read_message(
    message: &Message<'_>,
    is_whole: bool,
    form: TextForm,
    draft: &mut AnswerDraft,
) -> Result<(), Stop> {
    fn text<'a>(text: &'a Option<Text<'_>>) -> &'a str {
        text.as_ref().map_or("", |text| text.0.as_ref())
    }
    draft.append(Part::Content, text(&message.content), form)?;
    draft.append(Part::Refusal, text(&message.refusal), form)?;
    // Servers in transition send the same text under both names.
    let reasoning = match text(&message.reasoning_content) {
        "" => text(&message.reasoning),
        reasoning => reasoning,
    };
    draft.append(Part::Reasoning, reasoning, form)?;
    for (at, call) in message.tool_calls.iter().flat_map(|calls| &calls.0).enumerate() {
        let function = call.function.as_ref();
        let piece = CallPiece {
            // Whole answers, and some servers' chunks, number no calls.
            index: call.index.or_else(|| is_whole.then_some(at as u64)),
            id: text(&call.id),
            name: function.map_or("", |function| text(&function.name)),
            arguments: function.and_then(|function| function.arguments.as_ref()).map_or("", |text| &text.0),
        };
        draft.append_call(piece, form)?;
    }
    Ok(())
}

fn garbage(error: &serde_json::Error, data: &[u8]) -> Stop {
    Stop::Garbage(format!("Invalid JSON response ({error})"), data.to_vec())
}

#[cfg(test)]
mod tests;
