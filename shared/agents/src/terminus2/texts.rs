//! Messages of `terminus-2` to the model.

mod official;

use super::ReplyFormat;
use crate::template::{Template, TemplateError};
use crate::texts::TextSource;

pub use official::{OFFICIAL_PROGRAM, OfficialFile, OfficialTextError, official_template};

/// Templates of all messages, in the notation of Python's `str.format`. The fields of each are named here, and all of
/// them are required.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terminus2Texts {
    /// Origin of the texts.
    pub source: TextSource,
    /// First message: `{instruction}`, `{terminal_state}`.
    pub task: String,
    /// Request for a valid reply: `{feedback}`.
    pub format_error: String,
    /// Result of a turn whose reply had warnings: `{feedback}`, `{terminal_state}`.
    pub warnings: String,
    /// Question whether the task is complete: `{terminal_state}`.
    pub confirmation: String,
    /// Request for shorter replies: `{limit}`.
    pub output_cut: String,
    /// Warnings after it: `{warnings}`.
    pub cut_warnings: String,
    /// Limit in it, if it isn't a known number of tokens.
    pub unknown_limit: String,
    /// Request for a summary: `{instruction}`.
    pub summary: String,
    /// Request for questions: `{instruction}`, `{summary}`, `{terminal_state}`.
    pub questions: String,
    /// Request for answers: `{questions}`.
    pub answers: String,
    /// Continuation with answers: `{answers}`.
    pub hand_over: String,
    /// Request for a short summary: `{instruction}`, `{terminal_state}`.
    pub short_summary: String,
    /// Continuation with a short summary: `{instruction}`, `{summary}`.
    pub short_hand_over: String,
    /// Continuation without a summary: `{instruction}`, `{terminal_state}`.
    pub last_hand_over: String,
}

impl Terminus2Texts {
    /// Returns our own wording.
    pub fn own(format: ReplyFormat) -> Self {
        let (task, kind, confirmation) = match format {
            ReplyFormat::Json => {
                (include_str!("texts/own/task_json.txt"), "JSON object", "`\"task_complete\": true`")
            }
            ReplyFormat::Xml => (
                include_str!("texts/own/task_xml.txt"),
                "`<response>` element",
                "`<task_complete>true</task_complete>`",
            ),
        };
        Self {
            source: TextSource::Own,
            task: task.to_owned(),
            format_error: include_str!("texts/own/format_error.txt").replace("{kind}", kind),
            warnings: "Previous response had warnings:\n{feedback}\n\n{terminal_state}".to_owned(),
            confirmation: include_str!("texts/own/confirmation.txt").replace("{confirmation}", confirmation),
            output_cut: include_str!("texts/own/output_cut.txt").to_owned(),
            cut_warnings: "\n\nThe part that arrived also has these problems:\n{warnings}".to_owned(),
            unknown_limit: "the maximum output length".to_owned(),
            summary: include_str!("texts/own/summary.txt").to_owned(),
            questions: include_str!("texts/own/questions.txt").to_owned(),
            answers: include_str!("texts/own/answers.txt").to_owned(),
            hand_over: include_str!("texts/own/hand_over.txt").to_owned(),
            short_summary: include_str!("texts/own/short_summary.txt").to_owned(),
            short_hand_over: "{instruction}\n\nSummary of the work so far: {summary}".to_owned(),
            last_hand_over: "{instruction}\n\nEnd of the terminal screen:\n{terminal_state}".to_owned(),
        }
    }

    /// Returns all texts, in a fixed order.
    pub fn parts(&self) -> [&str; 14] {
        [
            &self.task,
            &self.format_error,
            &self.warnings,
            &self.confirmation,
            &self.output_cut,
            &self.cut_warnings,
            &self.unknown_limit,
            &self.summary,
            &self.questions,
            &self.answers,
            &self.hand_over,
            &self.short_summary,
            &self.short_hand_over,
            &self.last_hand_over,
        ]
    }
}

/// Parsed templates.
#[derive(Debug, Clone)]
pub(super) struct Templates {
    pub(super) task: Template,
    pub(super) format_error: Template,
    pub(super) warnings: Template,
    pub(super) confirmation: Template,
    pub(super) output_cut: Template,
    pub(super) cut_warnings: Template,
    pub(super) unknown_limit: String,
    pub(super) summary: Template,
    pub(super) questions: Template,
    pub(super) answers: Template,
    pub(super) hand_over: Template,
    pub(super) short_summary: Template,
    pub(super) short_hand_over: Template,
    pub(super) last_hand_over: Template,
}

impl Templates {
    pub(super) fn new(texts: &Terminus2Texts) -> Result<Self, TemplateError> {
        Ok(Self {
            task: Template::new("task", &texts.task, &["instruction", "terminal_state"])?,
            format_error: Template::new("format_error", &texts.format_error, &["feedback"])?,
            warnings: Template::new("warnings", &texts.warnings, &["feedback", "terminal_state"])?,
            confirmation: Template::new("confirmation", &texts.confirmation, &["terminal_state"])?,
            output_cut: Template::new("output_cut", &texts.output_cut, &["limit"])?,
            cut_warnings: Template::new("cut_warnings", &texts.cut_warnings, &["warnings"])?,
            unknown_limit: texts.unknown_limit.clone(),
            summary: Template::new("summary", &texts.summary, &["instruction"])?,
            questions: Template::new(
                "questions",
                &texts.questions,
                &["instruction", "summary", "terminal_state"],
            )?,
            answers: Template::new("answers", &texts.answers, &["questions"])?,
            hand_over: Template::new("hand_over", &texts.hand_over, &["answers"])?,
            short_summary: Template::new(
                "short_summary",
                &texts.short_summary,
                &["instruction", "terminal_state"],
            )?,
            short_hand_over: Template::new(
                "short_hand_over",
                &texts.short_hand_over,
                &["instruction", "summary"],
            )?,
            last_hand_over: Template::new(
                "last_hand_over",
                &texts.last_hand_over,
                &["instruction", "terminal_state"],
            )?,
        })
    }
}
