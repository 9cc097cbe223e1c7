//! Finds schedules by the ids in paths.

use bench_domain::{Code, ScheduleId};
use bench_state::ScheduleRecord;
use bench_web::{ApiError, Caller};
use http::HeaderMap;

use crate::Api;

pub(super) fn not_found() -> ApiError {
    ApiError::new(Code::ScheduleNotFound, "schedule not found")
}

pub(super) async fn find(api: &Api, id: &str) -> Result<ScheduleRecord, ApiError> {
    let id: ScheduleId = id.parse().map_err(|_| not_found())?;
    api.state.schedule(id).await?.ok_or_else(not_found)
}

/// Returns the schedule if the caller may change it.
pub(super) async fn find_owned(
    api: &Api,
    id: &str,
    headers: &HeaderMap,
) -> Result<(ScheduleRecord, Caller), ApiError> {
    let caller = api.access.caller(headers)?;
    let record = find(api, id).await?;
    match &caller {
        caller if caller.owns(&record.schedule.owner) => {}
        Caller::Anonymous => {
            return Err(ApiError::new(Code::MissingCredentials, "Missing Authorization header"));
        }
        _ => return Err(ApiError::new(Code::NotOwner, "this schedule belongs to another caller")),
    }
    Ok((record, caller))
}
