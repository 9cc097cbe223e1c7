//! A sample in an export: the view of API pages with additional fields.

use bench_benchmarks::executed_code;
use bench_domain::sample::{AttemptHistory, SampleState};
use bench_domain::{Code, Position, SampleBody, Timestamp, Usage};
use bench_state::{BenchmarkRecord, RunRecord, SampleRecord};
use bench_web::views::{ItemView, item_view};
use serde::Serialize;

use crate::file::samples::{Body, Slot};

const NO_RECORD: &str = "The sample's record is missing";

/// A row of the table, or an entry of `items`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ItemRow {
    #[serde(flatten)]
    pub(crate) view: ItemView,
    /// Reasoning tokens among the answer's tokens.
    pub(crate) reasoning_tokens: Option<u64>,
    /// Source of the answer's token counts; `None` without an answer. For the table only: in the archive,
    /// `metadata` names rejected counts.
    #[serde(skip)]
    pub(crate) tokens_known: Option<TokenSource>,
}

/// Source of an answer's token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenSource {
    /// Counted by the provider.
    Counted,
    /// Counted by the provider in part; the rest is an estimate.
    Estimated,
    /// Estimated, because the provider's counts were impossible.
    Rejected,
}

impl TokenSource {
    /// Returns the name in the table.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Estimated => "estimated",
            Self::Rejected => "rejected",
        }
    }

    /// Returns the source of the token counts of an answer, for all of its steps together.
    fn from_body(run: &RunRecord, body: &SampleBody, usage: Option<Usage>) -> Option<Self> {
        let steps = || body.steps.iter().map(|step| &step.answer);
        if steps().chain([&body.answer]).any(|answer| answer.usage_rejected) {
            return Some(Self::Rejected);
        }
        let is_counted = usage.is_some_and(|usage| usage.total() > 0);
        if is_counted && steps().all(|answer| answer.usage.is_some()) {
            return Some(Self::Counted);
        }
        // The oracle, custom agents, stored responses and rejudged answers cost nothing, so none of their tokens are
        // estimates.
        let is_asked = run.spec.rejudges.is_none()
            && !matches!(run.spec.model.provider.as_str(), "oracle" | "custom" | "replay");
        is_asked.then_some(Self::Estimated)
    }
}

impl ItemRow {
    /// Creates the row of a slot. Every slot has one.
    pub(crate) fn new(run: &RunRecord, benchmark: &BenchmarkRecord, slot: Slot, body: &Body) -> Self {
        let is_missing = slot.record.is_none();
        let record = slot.record.unwrap_or_else(|| placeholder_record(slot.position));
        let stored = match body {
            Body::Stored(body) => Some(&**body),
            Body::None | Body::Lost(_) => None,
        };
        let mut view = item_view(run, benchmark, &record, stored);
        view.set_executed_code(stored.and_then(|body| executed_code(&run.spec, &benchmark.name, body)));
        view.created_at = view.created_at.whole_seconds();
        if is_missing {
            view.error = Some(NO_RECORD.to_owned());
            view.error_code = Some(Code::StoredDataMissing);
        }
        if let Body::Lost(problem) = body {
            view.add_error(problem);
        }
        let usage = match record.unjudged_answer() {
            Some(answer) => answer.usage,
            None => record.finished.as_ref().and_then(|finished| finished.usage),
        };
        Self {
            view,
            reasoning_tokens: usage.map(|usage| usage.reasoning_tokens),
            tokens_known: stored.and_then(|body| TokenSource::from_body(run, body, usage)),
        }
    }
}

/// Returns a placeholder for a record that the database table lost. The item's id is lost with it.
fn placeholder_record(position: Position) -> SampleRecord {
    SampleRecord {
        position,
        item_id: String::new(),
        source_id: None,
        group: None,
        offset: 0,
        length: 0,
        state: SampleState::Open { due_at: Timestamp::default() },
        history: AttemptHistory::default(),
        cleared: 0,
        resends: 0,
        due_at: Timestamp::default(),
        counted: None,
        turn: None,
        finished: None,
    }
}
