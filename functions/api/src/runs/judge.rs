//! The judge, read from orders.

use bench_domain::Generation;
use bench_runs::{JudgeOrder, UserOrder};
use bench_web::FieldReader;
use serde::Serialize;
use utoipa::ToSchema;

use crate::runs::bounds::{MAX_TOKENS_MAX, MODEL_CHARS_MAX, TEMPERATURE_MAX};

/// Fields of the object `judge`.
const JUDGE_FIELDS: [&str; 6] =
    ["model_id", JUDGE_MODEL_ALIAS, "provider", "temperature", "seed", "max_tokens"];
/// Alternative name of the judge's `model_id`, as in views of runs.
pub(crate) const JUDGE_MODEL_ALIAS: &str = "model";

/// Judge of an order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JudgeOrder)]
#[allow(dead_code)] // describes what `read_judge` reads
pub(crate) struct JudgeBody {
    /// Model of the judge, named like the model of an order. Defaults to the operator's judge (`BENCH_JUDGE_MODEL`);
    /// otherwise, if the model is `oracle`, to `oracle`, which compares answers with the gold answer.
    model_id: Option<String>,
    /// Alternative name of `model_id`.
    model: Option<String>,
    /// Provider of the judge. The order is refused if the model belongs to another one.
    provider: Option<String>,
    /// Temperature of its replies, 0 to 2. Defaults to the protocol's.
    temperature: Option<f64>,
    /// Seed of the provider's sampler. Defaults to the protocol's.
    seed: Option<i64>,
    /// Maximum length of a reply in tokens. Defaults to the protocol's.
    max_tokens: Option<u32>,
}

/// User simulator of an order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserModelOrder)]
#[allow(dead_code)] // describes what `read_user_model` reads
pub(crate) struct UserModelBody {
    /// Model that simulates users, named like the model of an order. There is no default, and the evaluated model never takes its
    /// place.
    model_id: Option<String>,
    /// Alternative name of `model_id`.
    model: Option<String>,
    /// Provider of the model. The order is refused if the model belongs to another one.
    provider: Option<String>,
    /// Temperature of its messages, 0 to 2. Defaults to the protocol's.
    temperature: Option<f64>,
    /// Seed of the provider's sampler. Defaults to the protocol's, one for each trial.
    seed: Option<i64>,
    /// Maximum length of a message in tokens. Defaults to the protocol's.
    max_tokens: Option<u32>,
}

/// Reads the object `user_model`, if it was sent.
pub(crate) fn read_user_model(fields: &mut FieldReader) -> Option<UserOrder> {
    fields.within("user_model", read_model)
}

/// Reads the object `judge`, if it was sent. Refuses unknown fields, so that a misspelled judge doesn't
/// become the default one.
pub(crate) fn read_judge(fields: &mut FieldReader) -> Option<JudgeOrder> {
    fields.refuse("judge_model", "Unknown field; name the judge in `judge.model_id`");
    fields.within("judge", read_model)
}

/// Reads the fields of a judge or a user simulator.
fn read_model(judge: &mut FieldReader) -> JudgeOrder {
    judge.refuse_unknown(&JUDGE_FIELDS);
    let not_blank = |text: &String| !text.trim().is_empty();
    let model = judge.maybe_text("model_id", MODEL_CHARS_MAX).filter(not_blank);
    let other = judge.maybe_text(JUDGE_MODEL_ALIAS, MODEL_CHARS_MAX).filter(not_blank);
    if let (Some(model), Some(other)) = (&model, &other)
        && model.trim() != other.trim()
    {
        judge.note_invalid(
            JUDGE_MODEL_ALIAS,
            "`model` and `model_id` name different models; send one of them",
        );
    }
    let max_tokens = judge.maybe_integer("max_tokens", 1, MAX_TOKENS_MAX);
    JudgeOrder {
        model: model.or(other),
        provider: judge.maybe_text("provider", MODEL_CHARS_MAX).filter(not_blank),
        generation: Generation {
            temperature: judge.maybe_number("temperature", 0.0, TEMPERATURE_MAX),
            seed: judge.maybe_signed("seed"),
            max_tokens: max_tokens.and_then(|tokens| u32::try_from(tokens).ok()),
            ..Generation::default()
        },
    }
}
