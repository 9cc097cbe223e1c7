//! Expert questions: our own questions with short answers, from six categories.
//!
//! The format of the dataset (`number`, `prompt`, `answer`) is that of a public set of 100 such questions, which can take the
//! place of ours. Answers are compared as texts, or left to a judge (protocol `judge`).

mod judge;
mod matching;

use bench_domain::{Answer, ChatMessage, Generation, Prompt, Role};
use bench_items::{DatasetSpec, DemoData, Item, Layout, Row, RowError};
use serde_json::{Map, Value};

use crate::benchmark::Benchmark;
use crate::columns::{text, text_or_number};
use crate::grading::{self, Grading, ParserResult};
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Link, Metadata, Template, TemplateSource};
use crate::scorers::{JudgeScorer, Scorer, judged};
use judge::ExpertJudge;

/// Maximum number of characters of an answer that a verdict quotes.
const SHOWN_CHARS_MAX: usize = 100;

const SYSTEM: &str = "You answer questions whose answers are short. Reply with the answer only: no explanation, no introduction.";
const REQUEST: &str = "Give the answer on one line, in the form that the question asks for.";
const GAP: &str = "\n\n";

/// Expert questions.
pub struct ExpertQuestions {
    metadata: &'static Metadata,
    scorer: &'static dyn Scorer,
}

/// Answers are compared as texts.
pub static EXPERT_QUESTIONS: ExpertQuestions = ExpertQuestions { metadata: &METADATA, scorer: &StringMatch };
/// Answers are left to a judge.
static JUDGED: ExpertQuestions = ExpertQuestions { metadata: &METADATA_JUDGED, scorer: &JUDGE_SCORER };

static JUDGE_SCORER: JudgeScorer = JudgeScorer {
    judge: &ExpertJudge,
    empty: |_, answer| judged::empty(answer, Map::new()),
    format_answer: str::to_owned,
    group: "category",
};

static METADATA: Metadata = Metadata {
    name: "expert_questions",
    display_name: "Expert questions",
    description: "72 questions of six kinds with short answers.",
    protocol_name: "string-match",
    protocol: "own: the reply's last line is compared with the right answers",
    parser: "the last line",
    sources: &[Link {
        title: "Description",
        url: "https://github.com/bench-runner/bench-runner/blob/main/docs/benchmarks.md",
    }],
    metrics: &["accuracy", "categories"],
    generation: || Generation { temperature: Some(0.5), max_tokens: Some(32_768), ..Generation::default() },
    item_id: "row index from 0; number is the dataset's own id",
    group_noun: "categories",
    ..Metadata::DEFAULT
};

static METADATA_JUDGED: Metadata = Metadata {
    protocol_name: "judge",
    protocol: "own: a judge compares the reply with the right answer",
    parser: "PASS or FAIL",
    setup_notes: "Choose a judge.",
    ..METADATA
};

static SPEC: DatasetSpec = DatasetSpec {
    license: "MIT OR Apache-2.0",
    items: 72,
    demo: DemoData { items: include_str!("expert_questions/questions.jsonl"), support: &[] },
    ..DatasetSpec::DEFAULT
};

impl Layout for ExpertQuestions {
    fn name(&self) -> &'static str {
        self.metadata.name
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &["number"]
    }

    fn question_columns(&self) -> &'static [&'static str] {
        &["prompt"]
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        text(&row, "prompt")?;
        text_or_number(&row, "answer")?;
        let group = row.get("category").and_then(Value::as_str).map(str::to_owned);
        Ok(Some(Item::new(index.to_string(), group, row)))
    }
}

impl Benchmark for ExpertQuestions {
    fn metadata(&self) -> &'static Metadata {
        self.metadata
    }

    fn other_protocols(&self) -> &'static [&'static dyn Benchmark] {
        static OTHERS: [&dyn Benchmark; 1] = [&JUDGED];
        &OTHERS
    }

    fn template(&self, _templates: &Templates) -> Template {
        Template::new(TemplateSource::Own, &[SYSTEM, GAP, REQUEST])
    }

    fn prompt(&self, item: &Item, _material: &Material) -> Result<Prompt, ItemProblem> {
        let question = format!("{}{GAP}{REQUEST}", text(&item.row, "prompt")?.trim());
        let messages = vec![ChatMessage::new(Role::System, SYSTEM), ChatMessage::new(Role::User, question)];
        Ok(Prompt { messages })
    }

    fn scorer(&self) -> &dyn Scorer {
        self.scorer
    }
}

/// Compares answers as texts.
struct StringMatch;

impl Scorer for StringMatch {
    fn expected(&self, item: &Item) -> String {
        text_or_number(&item.row, "answer").unwrap_or_default()
    }

    fn oracle(&self, item: &Item) -> String {
        self.expected(item)
    }

    fn grade(&self, item: &Item, answer: &Answer) -> Grading {
        let Ok(gold) = text_or_number(&item.row, "answer") else {
            return grading::missing_gold_verdict().into();
        };
        let others = item.row.get("accept").and_then(Value::as_array).into_iter().flatten();
        let others = others.filter_map(Value::as_str);
        let found = matching::extract(&answer.text);
        let correct = found.as_deref().is_some_and(|found| {
            std::iter::once(gold.as_str()).chain(others).any(|right| matching::is_equal(found, right))
        });
        let shown = |text: &str| grading::shorten(text, SHOWN_CHARS_MAX);
        let reason = match &found {
            Some(found) => format!("The answer is {}; right is {}.", shown(found), shown(&gold)),
            None => String::new(),
        };
        let extracted = found.as_deref().map(shown);
        grading::verdict_for(answer, ParserResult { extracted, correct, reason, detail: Map::new() }).into()
    }

    fn score_row(&self, row: &Row) -> Result<Item, RowError> {
        let mut fields = Row::new();
        fields.insert("answer".into(), Value::String(text_or_number(row, "answer")?));
        fields.extend(row.get("accept").map(|accept| ("accept".to_owned(), accept.clone())));
        Ok(Item::new("", None, fields))
    }
}
