//! Converts the checked instructions of a response to a verdict.

use bench_domain::{Answer, Code, Verdict};
use bench_items::Row;
use serde_json::{Map, Value, json};

use super::engine::{self, FollowedInstructions, Instructions};
use super::{CheckFactory, Problem};
use crate::grading::{self, ParserResult};

/// Kind of check that decides whether a response is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Headline {
    /// The unchanged response.
    Strict,
    /// The response or one of its variants.
    Loose,
}

/// Grades an answer, which is right if it follows all instructions of its item.
///
/// `detail` holds `instruction_id_list`, `strict` and `loose`, each with one entry per instruction, in the row's order.
pub(crate) fn grade(row: &Row, answer: &Answer, lookup: CheckFactory, headline: Headline) -> Verdict {
    let graded = Instructions::from_row(row, lookup)
        .and_then(|instructions| Ok((engine::ids(row)?, instructions.check(&answer.text))));
    let (ids, followed) = match graded {
        Ok(graded) => graded,
        Err(problem) => return ungraded(row, &problem),
    };
    let decides = match headline {
        Headline::Strict => &followed.strict,
        Headline::Loose => &followed.loose,
    };
    let missed: Vec<&str> =
        ids.iter().zip(decides).filter(|(_, follows)| !**follows).map(|(id, _)| *id).collect();
    let finding = ParserResult {
        // Nothing is extracted, but without a text here the answer would count as unparsed.
        extracted: Some(String::new()),
        correct: missed.is_empty(),
        reason: format!("Not followed: {}.", missed.join(", ")),
        detail: detail(&ids, &followed),
    };
    Verdict { extracted: None, ..grading::verdict_for(answer, finding) }
}

fn detail(ids: &[&str], followed: &FollowedInstructions) -> Map<String, Value> {
    let mut detail = Map::new();
    detail.insert("instruction_id_list".into(), json!(ids));
    detail.insert("strict".into(), json!(followed.strict));
    detail.insert("loose".into(), json!(followed.loose));
    detail
}

/// Returns the verdict for an item with invalid instructions, for which no answer can be graded.
fn ungraded(row: &Row, problem: &Problem) -> Verdict {
    let mut detail = Map::new();
    if let Some(ids) = row.get("instruction_id_list").filter(|ids| ids.is_array()) {
        detail.insert("instruction_id_list".into(), ids.clone());
    }
    let reason = format!("The item cannot be graded: {problem}.");
    Verdict { detail, ..Verdict::ungraded(Code::InvalidItem, reason) }
}
