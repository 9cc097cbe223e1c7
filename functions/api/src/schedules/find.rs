//! Finds schedules by the ids in paths.

use bench_domain::{Code, ScheduleId};
use bench_state::ScheduleRecord;
use bench_web::{ApiError, Caller, Identity};

use crate::Api;

pub(super) fn not_found() -> ApiError {
    ApiError::new(Code::ScheduleNotFound, "schedule not found")
}

/// Returns a schedule that the caller may read. To all others, a private schedule doesn't exist.
pub(super) async fn find(api: &Api, id: &str, caller: &Caller) -> Result<ScheduleRecord, ApiError> {
    let id: ScheduleId = id.parse().map_err(|_| not_found())?;
    let found = api.state.schedule(id).await?.filter(|record| {
        let schedule = &record.schedule;
        caller.sees(&schedule.owner, schedule.run.labels.visibility)
    });
    found.ok_or_else(not_found)
}

/// Returns the schedule if the caller may change it.
pub(super) async fn find_owned(
    api: &Api,
    id: &str,
    identity: &Identity,
) -> Result<(ScheduleRecord, Caller), ApiError> {
    let caller = identity.caller()?;
    let record = find(api, id, caller).await?;
    match caller {
        _ if caller.owns(&record.schedule.owner) => {}
        Caller::Anonymous => {
            return Err(ApiError::new(Code::MissingCredentials, "Missing Authorization header"));
        }
        _ => return Err(ApiError::new(Code::NotOwner, "this schedule belongs to another caller")),
    }
    Ok((record, caller.clone()))
}
