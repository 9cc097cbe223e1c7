//! Rejudges a run: makes a new run with the same items and samples that reuses the answers of the first run.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use bench_runs::RejudgeOrder;
use bench_web::auth::{judge_key, provider_key};
use bench_web::body::read_object_or_nothing;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, FieldReader, Identity, Path};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::refusal::refusal;
use crate::runs::admission;
use crate::runs::budget::read_budget;
use crate::runs::create::{CreatedView, answer, refuse_in_maintenance};
use crate::runs::judge::{JudgeBody, read_judge};
use crate::runs::order::{idempotency_key, unknown_fields};
use crate::runs::requests::{run_id, visible_run};

/// Order to judge a run's answers again.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RejudgeOrder, example = json!({ "judge": { "model_id": "openrouter/MODEL", "seed": 1 } }))]
#[allow(dead_code)] // describes what `read_rejudge_order` reads
pub(crate) struct RejudgeBody {
    /// Judge. Without a `model_id`, the judge of the run with these settings.
    judge: Option<JudgeBody>,
    /// Budget in US dollars, above 0. The judging is stopped when it is reached. The judge's price must be known.
    #[schema(exclusive_minimum = 0, maximum = 1_000_000)]
    budget_usd: Option<f64>,
    /// Budget in tokens of the judge's prompts and replies together.
    #[schema(minimum = 1)]
    budget_tokens: Option<u64>,
}

fn read_rejudge_order(mut fields: FieldReader) -> Result<RejudgeOrder, ApiError> {
    let judge = read_judge(&mut fields).unwrap_or_default();
    let budget = read_budget(&mut fields);
    let warnings = unknown_fields(&fields);
    fields.finish()?;
    Ok(RejudgeOrder { judge, budget, warnings, ..RejudgeOrder::default() })
}

/// Judges the answers of a run again, by another judge or with other settings.
///
/// The model isn't asked again. The result is a new run with the next judging number, beside the earlier ones. It has
/// only the judged benchmarks, with the same items and samples, and names the run and the number. Rejudging a
/// rejudged run refers to the run that asked the model.
#[utoipa::path(
    post, path = "/api/runs/{run_id}/rejudge", tag = "runs", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("run_id" = String, Path, description = "Id of the run"),
        ("Idempotency-Key" = Option<String>, Header, description = "Key of 1 to 255 visible ASCII characters. Repeating a request with the same key within a day creates no second run"),
        ("X-Judge-Authorization" = Option<String>, Header, description = "`Bearer` and the caller's own key for the judge"),
    ),
    request_body = Option<RejudgeBody>,
    responses(
        (status = 201, body = CreatedView, description = "The queued new run"),
        (status = 200, body = CreatedView, description = "The run of an earlier request with this `Idempotency-Key`"),
        (status = 400, body = ErrorBody, description = "The run has no answers that can be judged, the run that asked the model was deleted, or the judge can't be used"),
        (status = 401, body = ErrorBody, description = "No key, access token or admin secret was sent, or an invalid one"),
        (status = 403, body = ErrorBody, description = "The run belongs to another caller, or the provider refuses the key"),
        (status = 404, body = ErrorBody, description = "The run or the judge doesn't exist"),
        (status = 409, body = ErrorBody, description = "The run isn't over"),
        (status = 422, body = ErrorBody, description = "A field is invalid, or the run has too many samples"),
        (status = 429, body = ErrorBody, description = "Too many orders or open runs; `Retry-After` has the seconds to wait"),
        (status = 503, body = ErrorBody, description = "The server is under maintenance"),
    ),
)]
pub(crate) async fn post_rejudge(
    State(api): State<Arc<Api>>,
    Path(run): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let mut order = read_rejudge_order(read_object_or_nothing(headers, body).await?)?;
    order.idempotency_key = idempotency_key(headers)?;
    order.judge_key = judge_key(headers)?;
    order.api_key = provider_key(headers)?;
    refuse_in_maintenance(&api)?;
    let run = run_id(&run)?;
    let identity = Identity::of(&parts);
    let record = visible_run(&api, run, identity.reader()).await?;
    identity.caller()?.must_own(&record.spec.owner)?;
    let orderer = admission::admit_rejudge(&api, &parts, &record.spec).await?;
    order.session = orderer.session_for(&record.spec.owner);
    let made = api.orders.rejudge(run, order, orderer.standing, Some(&orderer.owner)).await;
    answer(&api, &parts, made.map_err(refusal)?).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_domain::RunId;
    use serde_json::json;

    fn read(body: serde_json::Value) -> Result<RejudgeOrder, ApiError> {
        read_rejudge_order(FieldReader::from_body(body.as_object().unwrap().clone()))
    }

    #[test]
    fn orders_are_parsed_and_distinguished() {
        let run = RunId::random();
        let plain = read(json!({})).unwrap();
        assert_eq!(plain, RejudgeOrder::default());
        let other =
            read(json!({ "judge": { "model_id": "oracle", "seed": 3 }, "budget_tokens": 5 })).unwrap();
        assert_eq!((other.judge.model.as_deref(), other.judge.generation.seed), (Some("oracle"), Some(3)));
        assert_eq!(other.budget.tokens, Some(5));
        assert_ne!(plain.digest(run), other.digest(run));
        assert_ne!(plain.digest(run), plain.digest(RunId::random()));
        for bad in [
            json!({ "judge": 1 }),
            json!({ "judge": { "seed": 0.5 } }),
            json!({ "budget_usd": 0 }),
            json!({ "judge": { "modell": "oracle" } }),
            json!({ "judge_model": "oracle" }),
        ] {
            assert_eq!(read(bad).unwrap_err().status(), 422);
        }
    }
}
