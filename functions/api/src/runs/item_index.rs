//! Compact index of a benchmark's samples.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bench_blobs::{COLUMNS, IndexOf, unpack_index_part};
use bench_domain::{BenchmarkName, Code, RunId};
use bench_web::error::ErrorBody;
use bench_web::{ApiError, FieldReader, Identity, Path};
use http::{HeaderMap, Uri, header};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};

use crate::Api;
use crate::runs::requests::{run_id, visible_run_with_benchmarks};

const NAME_CHARS_MAX: usize = 128;
/// Place of the extracted answer in a row.
const EXTRACTED: usize = 7;

/// Part of the compact index of a benchmark's samples.
#[derive(Debug, Serialize, ToSchema)]
#[allow(dead_code)] // describes the object that the finisher stores
pub(crate) struct ItemIndexView {
    /// Id of the run.
    #[schema(value_type = String, format = "uuid")]
    run_id: RunId,
    /// Name of the benchmark.
    benchmark_name: String,
    /// Number of times that the run had been queued when the index was written, from 1.
    generation: u32,
    /// Number of this part, from 0.
    part: u32,
    /// Number of parts.
    parts: u32,
    /// Number of rows of all parts, one for each sample.
    items: u64,
    /// True if extracted answers are left out, because the dataset is gated and the caller doesn't own the run.
    hidden: bool,
    /// Names of groups, to which the rows of this part refer by index.
    groups: Vec<String>,
    /// Names of outcomes, to which the rows of this part refer by index.
    outcomes: Vec<String>,
    /// Names of the values of a row: `position` of the item in the plan, `sample` of the item, `item_id` (row in the
    /// dataset), `source_id` (the dataset's own id, null if it is longer than 60 bytes), `group` and `outcome` (indices or
    /// null), `score`, `extracted` (at most 40 bytes, cut with an ellipsis), `latency_ms`, `input_tokens`, `output_tokens`,
    /// `attempts` (of model, judge and sandbox together), `item_hash` (first 12 hexadecimal digits of the digest of the
    /// item's identifying text: equal for equal questions; null without an answer). Indexes of older versions lack it.
    columns: Vec<String>,
    /// Samples in the order of the plan, each an array of the values of `columns`.
    #[schema(schema_with = rows_schema)]
    rows: Vec<Vec<Value>>,
}

/// Returns the schema of rows: arrays of texts, numbers and nulls.
fn rows_schema() -> ArrayBuilder {
    let value = SchemaType::from_iter([Type::String, Type::Number, Type::Null]);
    ArrayBuilder::new()
        .items(ArrayBuilder::new().items(ObjectBuilder::new().schema_type(value)))
        .description(Some("Samples in the order of the plan, each an array of the values of `columns`."))
}

/// Returns a part of the compact index of a benchmark's samples, for tables that filter and sort.
///
/// It has at most 200 bytes for each sample and 10,000 samples in a part, and exists for benchmarks that are over: `index`
/// of the benchmark in the run has the number of parts. The response is compressed with gzip if the caller accepts that.
#[utoipa::path(
    get, path = "/api/runs/{run_id}/items/index", tag = "runs", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("run_id" = String, Path, description = "Id of the run"),
        ("benchmark" = String, Query, description = "Name of the benchmark"),
        ("part" = Option<u32>, Query, description = "Number of the part, default 0"),
    ),
    responses(
        (status = 200, body = ItemIndexView),
        (status = 404, body = ErrorBody, description = "The run, its benchmark or the index doesn't exist"),
        (status = 422, body = ErrorBody, description = "There is no such part"),
    ),
)]
pub(crate) async fn get_item_index(
    State(api): State<Arc<Api>>,
    Path(run): Path<String>,
    identity: Identity,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    let run = run_id(&run)?;
    let mut fields = FieldReader::from_query(&uri);
    let name = fields.text("benchmark", NAME_CHARS_MAX);
    let part = fields.integer("part", 0, 0, u32::MAX.into());
    let found = visible_run_with_benchmarks(&api, run, identity.reader()).await?;
    let named = name.parse::<BenchmarkName>().ok().and_then(|name| bench_benchmarks::find_named(&name));
    let record = found.benchmark(named.map_or(name.as_str(), |benchmark| benchmark.name()));
    let index = record.and_then(|record| record.current_index());
    let part = u32::try_from(part).unwrap_or(u32::MAX);
    if let Some(index) = index.filter(|index| part >= index.parts) {
        fields.note_invalid("part", format!("the index has {} parts, numbered from 0", index.parts));
    }
    fields.finish()?;
    let record =
        record.ok_or_else(|| ApiError::new(Code::BenchmarkNotInRun, "Benchmark not found in run"))?;
    let index = index.ok_or_else(no_index)?;
    let (generation, items) = (index.generation, index.items);
    let of = IndexOf { run, generation, benchmark: &record.name, items };
    let stored = api.blobs.get_index_part(&of, part).await.map_err(ApiError::internal)?;
    let stored = stored.ok_or_else(no_index)?;
    let dataset = record.plan.as_ref().map(|plan| &plan.dataset);
    let is_private = bench_benchmarks::is_private(&record.name, dataset);
    let hidden = is_private && !identity.reader().owns(&found.run.spec.owner);
    if !hidden && accepts_gzip(&headers) {
        return Ok(response(stored, true));
    }
    let text = unpack_index_part(&stored).map_err(ApiError::internal)?;
    let text = if hidden { without_answers(&text).map_err(ApiError::internal)? } else { text };
    Ok(response(text.into(), false))
}

fn no_index() -> ApiError {
    ApiError::new(
        Code::NoItemIndex,
        "the benchmark has no index of its items: it isn't over, or was closed by an older version",
    )
}

fn response(body: Bytes, is_gzip: bool) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::VARY, "Accept-Encoding")];
    let encoding = is_gzip.then_some([(header::CONTENT_ENCODING, "gzip")]);
    match encoding {
        Some(encoding) => (headers, encoding, Body::from(body)).into_response(),
        None => (headers, Body::from(body)).into_response(),
    }
}

/// Removes extracted answers, which may be the gold answers.
fn without_answers(text: &[u8]) -> serde_json::Result<Vec<u8>> {
    debug_assert_eq!(COLUMNS[EXTRACTED], "extracted");
    let mut part: Value = serde_json::from_slice(text)?;
    part["hidden"] = true.into();
    for row in part["rows"].as_array_mut().into_iter().flatten() {
        if let Some(extracted) = row.get_mut(EXTRACTED) {
            *extracted = Value::Null;
        }
    }
    serde_json::to_vec(&part)
}

/// Returns true if the caller accepts gzip: it is named, and not with a quality of 0.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut choices = accepted.flat_map(|value| value.split(','));
    choices.any(|choice| {
        let (coding, parameters) = choice.split_once(';').unwrap_or((choice, ""));
        let quality = parameters.trim().strip_prefix("q=").map(|text| text.trim().parse::<f32>());
        coding.trim().eq_ignore_ascii_case("gzip") && !matches!(quality, Some(Ok(quality)) if quality <= 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_only_if_it_is_accepted() {
        for (value, accepted) in [
            ("gzip", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("br", false),
            ("identity", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, value.parse().unwrap())]);
            assert_eq!(accepts_gzip(&headers), accepted, "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn answers_are_hidden_by_their_column() {
        // Rows of older versions have no `item_hash`.
        assert_eq!(COLUMNS[EXTRACTED], "extracted");
        let part = br#"{"hidden":false,"rows":[[0,0,"1",null,0,0,1,"C",1,1,1,1]]}"#;
        let text = String::from_utf8(without_answers(part).unwrap()).unwrap();
        assert_eq!(text, r#"{"hidden":true,"rows":[[0,0,"1",null,0,0,1,null,1,1,1,1]]}"#);
        let part = br#"{"hidden":false,"rows":[[0,0,"1",null,0,0,1,"C",1,1,1,1,"0123456789ab"]]}"#;
        let text = String::from_utf8(without_answers(part).unwrap()).unwrap();
        assert_eq!(text, r#"{"hidden":true,"rows":[[0,0,"1",null,0,0,1,null,1,1,1,1,"0123456789ab"]]}"#);
    }
}
