//! Labels of runs (name, tags, notes and visibility): read from orders, and changed later.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use bench_domain::labels::{InvalidLabel, RunLabels, parse_name, parse_notes, parse_tags};
use bench_domain::{Code, RunId, Visibility};
use bench_state::{RunRecord, Transition};
use bench_web::body::read_object;
use bench_web::error::ErrorBody;
use bench_web::views::RunView;
use bench_web::{ApiError, FieldError, FieldReader, Identity, Path};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::Api;
use crate::runs::estimate::run_view;
use crate::runs::requests::{run_id, run_not_found, visible_run};
use crate::runs::viewer::Viewer;

/// Maximum number of tags in a request, including repeated ones.
const SENT_TAGS_MAX: usize = 100;
/// Maximum number of attempts at a change while others change the labels.
const WRITE_ATTEMPTS_MAX: u32 = 20;

const NAME: &str = "name";
const TAGS: &str = "tags";
const ADD_TAGS: &str = "add_tags";
const REMOVE_TAGS: &str = "remove_tags";
const NOTES: &str = "notes";
const VISIBILITY: &str = "visibility";

/// Reads the name of a run.
pub(crate) fn read_name(fields: &mut FieldReader) -> Option<String> {
    // Reads texts of any length, so that only the check reports one that is too long.
    let name = fields.maybe_text(NAME, usize::MAX)?;
    fields.checked(NAME, parse_name(&name)).flatten()
}

/// Reads tags, notes and visibility of a run.
pub(crate) fn read_labels_without_name(fields: &mut FieldReader) -> RunLabels {
    RunLabels {
        name: None,
        tags: read_tags(fields, TAGS).unwrap_or_default(),
        notes: read_notes(fields),
        visibility: read_visibility(fields).unwrap_or_default(),
    }
}

/// Reads the visibility of a run or schedule; `None` if it is left out or null.
fn read_visibility(fields: &mut FieldReader) -> Option<Visibility> {
    fields.maybe_choice(VISIBILITY, "`public`, `unlisted` or `private`", |text| text.parse().ok())
}

fn read_tags(fields: &mut FieldReader, name: &str) -> Option<Vec<String>> {
    let tags = fields.maybe_texts(name, SENT_TAGS_MAX, usize::MAX)?;
    fields.checked(name, parse_tags(&tags))
}

fn read_notes(fields: &mut FieldReader) -> Option<String> {
    let notes = fields.maybe_text(NOTES, usize::MAX)?;
    fields.checked(NOTES, parse_notes(&notes)).flatten()
}

/// Change of a run's name, tags and notes. A field that is left out stays as it is; null removes it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunChange, example = json!({ "name": "baseline", "add_tags": ["exp-7"], "notes": null }))]
#[allow(dead_code)] // describes what `Change::read` reads
pub(crate) struct RunChangeBody {
    /// New name: one line.
    #[schema(max_length = 100)]
    name: Option<String>,
    /// New tags, instead of all earlier ones. Each has 1 to 50 characters: ASCII letters, digits, and `-_.:/`.
    #[schema(max_items = 16)]
    tags: Option<Vec<String>>,
    /// Tags to add. Can't be sent together with `tags`.
    #[schema(max_items = 16)]
    add_tags: Option<Vec<String>>,
    /// Tags to remove. Can't be sent together with `tags`.
    #[schema(max_items = 16)]
    remove_tags: Option<Vec<String>>,
    /// New notes: one or more lines.
    #[schema(max_length = 4000)]
    notes: Option<String>,
    /// Visibility to other callers: `public`, `unlisted` (in no list, readable by its id) or `private` (doesn't exist for
    /// them). Null stands for `public`. A stricter one also applies to the judgings of the run.
    visibility: Option<String>,
}

/// Change of a run's labels. `None` leaves a label as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Change {
    name: Option<Option<String>>,
    tags: Option<Vec<String>>,
    added: Vec<String>,
    removed: Vec<String>,
    notes: Option<Option<String>>,
    visibility: Option<Visibility>,
}

impl Change {
    /// Reads a change from the fields of a request.
    ///
    /// # Errors
    /// 422 with every problem.
    fn read(sent: Map<String, Value>) -> Result<Self, ApiError> {
        let is_sent = |name: &str| sent.contains_key(name);
        let [changes_name, changes_tags, changes_notes, changes_visibility] =
            [NAME, TAGS, NOTES, VISIBILITY].map(is_sent);
        let mut fields = FieldReader::from_body(sent);
        // Everything else of a run is fixed when it is ordered.
        fields.refuse_unknown(&[NAME, TAGS, ADD_TAGS, REMOVE_TAGS, NOTES, VISIBILITY]);
        if changes_tags && [ADD_TAGS, REMOVE_TAGS].into_iter().any(|name| fields.has(name)) {
            fields.note_invalid(TAGS, "send either `tags`, or `add_tags` and `remove_tags`");
        }
        let name = read_name(&mut fields);
        let tags = read_tags(&mut fields, TAGS).unwrap_or_default();
        let change = Self {
            name: changes_name.then_some(name),
            tags: changes_tags.then_some(tags),
            added: read_tags(&mut fields, ADD_TAGS).unwrap_or_default(),
            removed: read_tags(&mut fields, REMOVE_TAGS).unwrap_or_default(),
            notes: changes_notes.then(|| read_notes(&mut fields)),
            visibility: changes_visibility.then(|| read_visibility(&mut fields).unwrap_or_default()),
        };
        fields.finish()?;
        Ok(change)
    }

    /// Returns the changed labels.
    ///
    /// # Errors
    /// If they have too many tags.
    fn apply(&self, old: &RunLabels) -> Result<RunLabels, InvalidLabel> {
        let tags = match &self.tags {
            Some(tags) => tags.clone(),
            None if self.added.is_empty() && self.removed.is_empty() => old.tags.clone(),
            None => old.changed_tags(&self.added, &self.removed)?,
        };
        Ok(RunLabels {
            name: self.name.clone().unwrap_or_else(|| old.name.clone()),
            tags,
            notes: self.notes.clone().unwrap_or_else(|| old.notes.clone()),
            visibility: self.visibility.unwrap_or(old.visibility),
        })
    }
}

/// Changes the name, tags and notes of a run, whatever its status.
///
/// All who can read the run can read them. They have no effect on the run: no event reports the change, and exports don't
/// contain them.
#[utoipa::path(
    patch, path = "/api/runs/{run_id}", tag = "runs", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("run_id" = String, Path, description = "Id of the run")),
    request_body(content = RunChangeBody, description = "The labels to change"),
    responses(
        (status = 200, body = RunView, description = "The changed run"),
        (status = 401, body = ErrorBody, description = "No key, access token or admin secret was sent, or an invalid one"),
        (status = 403, body = ErrorBody, description = "The run belongs to another caller"),
        (status = 404, body = ErrorBody, description = "The run doesn't exist"),
        (status = 409, body = ErrorBody, description = "Other requests kept changing it; try again"),
        (status = 422, body = ErrorBody, description = "A field is invalid or unknown, or the run would have too many tags"),
    ),
)]
pub(crate) async fn patch_run(
    State(api): State<Arc<Api>>,
    Path(run): Path<String>,
    request: Request,
) -> Result<Json<RunView>, ApiError> {
    let (parts, body) = request.into_parts();
    let run = run_id(&run)?;
    let identity = Identity::of(&parts);
    let record = visible_run(&api, run, identity.reader()).await?;
    identity.caller()?.must_own(&record.spec.owner)?;
    let viewer = Viewer::of(&api, &parts).await?;
    let change = Change::read(read_object(&parts.headers, body).await?.into_fields())?;
    change_labels(&api, run, &change).await?;
    let found = api.state.run_with_benchmarks(run).await?.ok_or_else(run_not_found)?;
    run_view(&api, &found, &viewer).await.map(Json)
}

async fn change_labels(api: &Api, run: RunId, change: &Change) -> Result<(), ApiError> {
    // Judgings are restricted before the run, so that a failure leaves none that is more visible than the run, and after it,
    // for those that were ordered or changed in the meantime.
    restrict_judgings(api, run, change.visibility).await?;
    let is_found = update_labels(api, run, |record, original| {
        let changed = change.apply(&record.spec.labels).map_err(|problem| {
            let place = vec!["body".into(), ADD_TAGS.into()];
            ApiError::validation(vec![FieldError::value_error(place, problem, json!(change.added))])
        })?;
        let Some(original) = original else { return Ok(changed) };
        let least = original.spec.labels.visibility;
        if let Some(asked) = change.visibility.filter(|asked| *asked < least) {
            let problem = format!(
                "the run judges the answers of run {}, which is {least}, so it can't be {asked}; change that run first",
                original.spec.id
            );
            let place = vec!["body".into(), VISIBILITY.into()];
            return Err(ApiError::validation(vec![FieldError::value_error(place, problem, json!(asked))]));
        }
        Ok(changed)
    });
    if !is_found.await? {
        return Err(run_not_found());
    }
    restrict_judgings(api, run, change.visibility).await
}

/// Makes all judgings of a run at most as visible as the run will be.
async fn restrict_judgings(api: &Api, run: RunId, visibility: Option<Visibility>) -> Result<(), ApiError> {
    let Some(visibility) = visibility.filter(|visibility| !visibility.is_public()) else { return Ok(()) };
    for judging in api.state.judgings(run).await? {
        let restricted = |record: &RunRecord, _: Option<&RunRecord>| {
            let labels = &record.spec.labels;
            let visibility = labels.visibility.stricter(visibility);
            Ok(RunLabels { visibility, ..labels.clone() })
        };
        update_labels(api, judging.run, restricted).await?;
    }
    Ok(())
}

/// Gives a run the labels that `changed` returns for it and for the run whose answers it judges. Returns false if the run doesn't
/// exist.
async fn update_labels(
    api: &Api,
    run: RunId,
    changed: impl Fn(&RunRecord, Option<&RunRecord>) -> Result<RunLabels, ApiError>,
) -> Result<bool, ApiError> {
    for _ in 0..WRITE_ATTEMPTS_MAX {
        let Some(record) = api.state.run(run).await? else { return Ok(false) };
        let original = match record.spec.rejudges {
            Some(rejudges) => api.state.run(rejudges.run).await?,
            None => None,
        };
        let labels = changed(&record, original.as_ref())?;
        if labels == record.spec.labels {
            return Ok(true);
        }
        let is_less_strict = labels.visibility < record.spec.labels.visibility;
        let written = match original.filter(|_| is_less_strict) {
            Some(original) => api.state.change_rejudge_labels(&record, &labels, &original).await?,
            None => api.state.change_labels(&record, &labels).await?,
        };
        if written == Transition::Done {
            return Ok(true);
        }
    }
    Err(ApiError::new(Code::ConcurrentChange, "other requests kept changing the run; try again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<Change, ApiError> {
        Change::read(body.as_object().unwrap().clone())
    }

    fn old() -> RunLabels {
        let tags = vec!["a".to_owned(), "b".to_owned()];
        RunLabels { name: Some("old".into()), tags, notes: Some("old notes".into()), ..RunLabels::default() }
    }

    fn changed(body: Value) -> Value {
        serde_json::to_value(read(body).unwrap().apply(&old()).unwrap()).unwrap()
    }

    #[test]
    fn what_is_left_out_stays_and_null_removes() {
        let all = json!({ "name": "old", "tags": ["a", "b"], "notes": "old notes" });
        assert_eq!(changed(json!({})), all);
        assert_eq!(changed(json!({ "add_tags": null, "remove_tags": [] })), all);
        assert_eq!(changed(json!({ "name": null, "tags": null, "notes": null })), json!({}));
        assert_eq!(changed(json!({ "name": " ", "tags": [], "notes": "" })), json!({}));
        assert_eq!(
            changed(json!({ "name": " new ", "tags": ["c", "c"], "notes": "1\r\n2" })),
            json!({ "name": "new", "tags": ["c"], "notes": "1\n2" })
        );
        assert_eq!(changed(json!({ "visibility": "private" }))["visibility"], "private");
        assert_eq!(changed(json!({ "visibility": null })), all);
        let hidden = RunLabels { visibility: Visibility::Unlisted, ..old() };
        let kept = |body: Value| read(body).unwrap().apply(&hidden).unwrap().visibility;
        assert_eq!(kept(json!({ "notes": "x" })), Visibility::Unlisted);
        assert_eq!(kept(json!({ "visibility": null })), Visibility::Public);
        assert_eq!(
            changed(json!({ "add_tags": ["c"], "remove_tags": ["a", "x"] }))["tags"],
            json!(["b", "c"])
        );
    }

    #[test]
    fn problems_name_their_field() {
        for (body, part) in [
            (json!({ "name": "a\nb" }), "name: "),
            (json!({ "name": "x".repeat(101) }), "name: "),
            (json!({ "name": 7 }), "name: "),
            (json!({ "tags": "a" }), "tags: "),
            (json!({ "tags": ["a b"] }), "tags: "),
            (json!({ "add_tags": (0..17).map(|n| n.to_string()).collect::<Vec<_>>() }), "add_tags: "),
            (json!({ "remove_tags": ["ä"] }), "remove_tags: "),
            (json!({ "tags": ["a"], "add_tags": ["b"] }), "either `tags`"),
            (json!({ "notes": "\u{1b}[2J" }), "notes: "),
            (json!({ "notes": "x".repeat(4_001) }), "notes: "),
            (json!({ "visibility": "secret" }), "visibility: "),
            (json!({ "budget_usd": 1 }), "known fields are name, tags, add_tags"),
        ] {
            let error = read(body.clone()).unwrap_err();
            assert_eq!(error.status(), 422, "{body}");
            assert!(error.message().contains(part), "{part}: {}", error.message());
        }
    }
}
