//! Creates, changes and deletes schedules.

use bench_domain::run::{AuthMode, Owner};
use bench_domain::schedule::{Firing, SCHEDULES_MAX, Schedule, ScheduledTask};
use bench_domain::{Agent, Code, ScheduleId};
use bench_inference::ModelSource;
use bench_runs::{CallerKeys, FoundModel, KeptModels, Order, Orderer, ResolvedOrder, TrustedSettings};
use bench_state::{FiringRef, ScheduleRecord, ScheduleWrite, Transition};
use bench_web::auth::provider_key;
use bench_web::{ApiError, Caller, Identity};
use http::request::Parts;

use super::body::{Change, ChangedOrder, ScheduleBody, Settings};
use super::find::{find_owned, not_found};
use crate::Api;
use crate::refusal::refusal;
use crate::runs::admission;
use crate::runs::admission::OrderScope;
use crate::runs::tasks::{OrderedTasks, select_tasks, task_benchmarks};

/// Maximum number of attempts at a write that conflicts with other writes.
const WRITE_ATTEMPTS_MAX: u32 = 20;
/// Maximum number of schedules per owner.
const OWNED_MAX: usize = 100;

/// Identifies who makes a schedule: the holder of the bearer key, or a person who may use the operator's key.
async fn orderer(api: &Api, parts: &Parts) -> Result<Orderer, ApiError> {
    let orderer = admission::orderer(api, parts).await?;
    // On this machine, the local person owns the schedule, whichever key pays for it.
    let api_key = if api.config.server.local { provider_key(&parts.headers)? } else { orderer.api_key };
    if api.config.server.local && api_key.is_none() {
        // Rejects a wrong secret even from this machine.
        Identity::of(parts).caller()?;
    }
    Ok(Orderer { api_key, ..orderer })
}

/// Creates a schedule. Also returns the names in the order that aren't benchmarks.
pub(super) async fn create(
    api: &Api,
    body: ScheduleBody,
    parts: &Parts,
) -> Result<(Schedule, Vec<String>), ApiError> {
    let ScheduleBody { settings: Settings { name, timing, webhook, enabled }, mut order, tasks } = body;
    let mut orderer = orderer(api, parts).await?;
    let owned = api.state.list_schedules().await?;
    if owned.iter().filter(|record| record.schedule.owner == orderer.owner).count() >= OWNED_MAX {
        return Err(ApiError::new(
            Code::SchedulesLimit,
            format!("you have {OWNED_MAX} schedules, the maximum; delete one first"),
        ));
    }
    refuse_taken_name(&owned, &orderer.owner, None, &name)?;
    let tasks = match &tasks {
        Some(tasks) => select(api, parts, &orderer, &mut order, tasks).await?,
        None => Vec::new(),
    };
    let found = api.orders.find_model(&order, Some(&orderer)).await.map_err(refusal)?;
    if !tasks.is_empty() && !found.source.is_remote() {
        // A key that no provider gets isn't stored.
        orderer.api_key = None;
    }
    admit(api, parts, &orderer, &found, &tasks).await?;
    let ResolvedOrder { template: run, ignored, keys } =
        api.orders.template(order, &orderer, found, KeptModels::default()).await.map_err(refusal)?;
    api.orders.runs.check_samples(&orderer.owner, &run).map_err(refusal)?;
    api.orders.runs.count_order(&orderer.owner).await.map_err(refusal)?;
    let now = bench_clock::now();
    let id = ScheduleId::random();
    let auth = orderer.auth_for(&run.model);
    let mut schedule = Schedule {
        id,
        name,
        owner: orderer.owner.clone(),
        timing,
        run: run.with_fixed_seed(id),
        tasks,
        auth,
        webhook,
        enabled,
        created_at: now,
        updated_at: now,
        next_at: None,
    };
    schedule.next_at = schedule.next_after(now);
    let sealed = keys.seal_for_schedule(&api.credentials, id).await?;
    match api.state.create_schedule(&schedule, sealed).await? {
        ScheduleWrite::Done => {
            tracing::info!(schedule.id = %id, "Created schedule {id}");
            Ok((schedule, ignored))
        }
        ScheduleWrite::NameTaken => Err(name_taken(&schedule.name)),
        ScheduleWrite::TooMany => Err(ApiError::new(
            Code::SchedulesLimit,
            format!("this server has {SCHEDULES_MAX} schedules, the maximum; delete one first"),
        )),
        ScheduleWrite::Raced => Err(concurrent_change()),
    }
}

fn name_taken(name: &str) -> ApiError {
    ApiError::new(
        Code::ScheduleNameTaken,
        format!("you already have a schedule named `{name}`; change that one or choose another name"),
    )
}

/// Refuses a name that another schedule of the same owner has, since people and commands find schedules by
/// name. The write refuses it, too, but this check comes before the model is looked up and also covers
/// schedules of older versions, whose names have no records.
fn refuse_taken_name(
    schedules: &[ScheduleRecord],
    owner: &Owner,
    display_id: Option<ScheduleId>,
    name: &str,
) -> Result<(), ApiError> {
    let taken = schedules
        .iter()
        .map(|record| &record.schedule)
        .any(|schedule| schedule.owner == *owner && Some(schedule.id) != display_id && schedule.name == name);
    if taken { Err(name_taken(name)) } else { Ok(()) }
}

/// Sets the dataset of an order's tasks, and returns them.
async fn select(
    api: &Api,
    parts: &Parts,
    orderer: &Orderer,
    order: &mut Order,
    ordered: &OrderedTasks,
) -> Result<Vec<ScheduledTask>, ApiError> {
    let tasks = select_tasks(api, &Identity::of(parts), orderer, order, ordered).await?;
    Ok(tasks.iter().map(|task| ScheduledTask { id: task.id, item: bench_tasks::item_id(task) }).collect())
}

async fn admit(
    api: &Api,
    parts: &Parts,
    orderer: &Orderer,
    found: &FoundModel,
    tasks: &[ScheduledTask],
) -> Result<(), ApiError> {
    let benchmarks = if tasks.is_empty() { Vec::new() } else { task_benchmarks() };
    let scope = OrderScope { source: found.source, slug: &found.model.slug, benchmarks: &benchmarks };
    admission::admit(api, parts, orderer, scope).await
}

/// Changes a schedule. Returns the names in the change that aren't benchmarks, and warnings about ignored fields.
pub(super) async fn change(
    api: &Api,
    id: &str,
    change: &Change,
    parts: &Parts,
) -> Result<(Vec<String>, Vec<String>), ApiError> {
    let mut is_counted = false;
    for _ in 0..WRITE_ATTEMPTS_MAX {
        let (record, caller) = find_owned(api, id, &Identity::of(parts)).await?;
        let old = &record.schedule;
        let (settings, changed) = change.apply(old, api.config.server.local)?;
        let Settings { name, timing, webhook, enabled } = settings;
        let warnings =
            changed.as_ref().map(|changed| change.warnings(&changed.order.warnings)).unwrap_or_default();
        if name != old.name {
            refuse_taken_name(&api.state.list_schedules().await?, &old.owner, Some(old.id), &name)?;
        }
        let mut auth = old.auth;
        let (ResolvedOrder { template: run, ignored, keys }, tasks) = if let Some(changed) = changed {
            let orderer = orderer_for_change(api, old, &caller, parts).await?;
            let (ordered, tasks) = resolve_changed_run(api, parts, old, changed, &orderer, change).await?;
            api.orders.runs.check_samples(&old.owner, &ordered.template).map_err(refusal)?;
            if !is_counted {
                api.orders.runs.count_order(&old.owner).await.map_err(refusal)?;
                is_counted = true;
            }
            // The schedule's own key stays. Otherwise another model may have another payer.
            if change.touches_model() && auth != AuthMode::ApiKey {
                auth = orderer.auth_for(&ordered.template.model);
            }
            (ordered, tasks)
        } else {
            let (template, keys) = (old.run.clone(), CallerKeys::default());
            let unchanged = ResolvedOrder { template, ignored: Vec::new(), keys };
            (unchanged, old.tasks.clone())
        };
        let now = bench_clock::now();
        let mut new =
            Schedule { name, timing, webhook, enabled, run, tasks, auth, updated_at: now, ..old.clone() };
        if new.timing != old.timing || new.enabled != old.enabled {
            new.next_at = new.next_after(now);
        }
        // The schedule's key for the model stays as it is.
        let keys = CallerKeys { own: None, ..keys };
        let sealed = keys.seal_for_schedule(&api.credentials, new.id).await?;
        match api.state.update_schedule(&record, &new, sealed).await? {
            ScheduleWrite::Done => {
                tracing::info!(schedule.id = %new.id, "Changed schedule {}", new.id);
                return Ok((ignored, warnings));
            }
            ScheduleWrite::NameTaken => return Err(name_taken(&new.name)),
            ScheduleWrite::Raced | ScheduleWrite::TooMany => {}
        }
    }
    Err(concurrent_change())
}

/// Returns the caller for whom the model is looked up: the schedule's owner, with the key of this request if
/// the schedule has its own key. Only the owner's session pays, also when an admin makes the change.
async fn orderer_for_change(
    api: &Api,
    schedule: &Schedule,
    caller: &Caller,
    parts: &Parts,
) -> Result<Orderer, ApiError> {
    let has_key = schedule.auth == AuthMode::ApiKey && matches!(caller, Caller::Key { .. });
    let api_key = if has_key { provider_key(&parts.headers)? } else { None };
    let orderer = admission::orderer(api, parts).await?;
    let session = match &schedule.owner {
        Owner::User(subject) if orderer.owner != schedule.owner && uses_session(schedule) => {
            let sessions = api.state.sessions_of(subject, bench_clock::now()).await?;
            sessions.into_iter().find(|session| session.has_invoke_scope).map(|session| session.id)
        }
        owner => orderer.session_for(owner),
    };
    Ok(Orderer { owner: schedule.owner.clone(), api_key, session, ..orderer })
}

/// Returns true if the owner's account pays for any model of a schedule.
fn uses_session(schedule: &Schedule) -> bool {
    let (judge, user) = (&schedule.run.judge, &schedule.run.user);
    let helpers = [judge.as_ref().map(|judge| judge.auth), user.as_ref().map(|user| user.auth)];
    schedule.auth == AuthMode::Idp || helpers.contains(&Some(AuthMode::Idp))
}

async fn resolve_changed_run(
    api: &Api,
    parts: &Parts,
    schedule: &Schedule,
    ChangedOrder { mut order, tasks }: ChangedOrder,
    orderer: &Orderer,
    change: &Change,
) -> Result<(ResolvedOrder, Vec<ScheduledTask>), ApiError> {
    let old = &schedule.run;
    order.trusted = TrustedSettings { coverage_min: Some(old.coverage_min), ..TrustedSettings::default() };
    let tasks = match &tasks {
        Some(tasks) => select(api, parts, orderer, &mut order, tasks).await?,
        None => Vec::new(),
    };
    // The options of a benchmark name the content of a custom agent, which decides what stands in the place of the model.
    let is_custom = Agent::in_place_of_model(&order.model) == Some(Agent::Custom);
    let found = if change.touches_model() || is_custom {
        api.orders.find_model(&order, Some(orderer)).await.map_err(refusal)?
    } else {
        let source = ModelSource::from_name(&old.model.provider);
        let source =
            source.ok_or_else(|| ApiError::internal(format!("no provider {}", old.model.provider)))?;
        FoundModel { model: old.model.clone(), source, chute_id: None, price: old.price }
    };
    admit(api, parts, orderer, &found, &tasks).await?;
    // Their keys are already stored, and callers don't send them again.
    let kept = KeptModels {
        judge: old.judge.clone().filter(|_| !change.touches_judge() && orderer.judge_key.is_none()),
        user: old.user.clone().filter(|_| !change.touches_user_model() && orderer.user_key.is_none()),
    };
    let ordered = api.orders.template(order, orderer, found, kept).await.map_err(refusal)?;
    Ok((ResolvedOrder { template: ordered.template.with_fixed_seed(schedule.id), ..ordered }, tasks))
}

/// Deletes a schedule with its key and its history.
pub(super) async fn delete(api: &Api, id: &str, identity: &Identity) -> Result<(), ApiError> {
    for _ in 0..WRITE_ATTEMPTS_MAX {
        let (record, _) = find_owned(api, id, identity).await?;
        let schedule = record.schedule.id;
        let key = api.credentials.removal_for_schedule(schedule)?;
        if api.state.delete_schedule(&record, key).await? == Transition::Done {
            tracing::info!(schedule.id = %schedule, "Deleted schedule {schedule}");
            return Ok(());
        }
    }
    Err(concurrent_change())
}

/// Fires a schedule now, with the write that planned times use. The scheduler continues from it.
pub(super) async fn run_now(api: &Api, id: &str, parts: &Parts) -> Result<Firing, ApiError> {
    let mut is_admitted = false;
    for _ in 0..WRITE_ATTEMPTS_MAX {
        let (record, _) = find_owned(api, id, &Identity::of(parts)).await?;
        let schedule = &record.schedule;
        if !schedule.enabled {
            return Err(ApiError::new(
                Code::ScheduleDisabled,
                "the schedule is off; set `enabled` to true first",
            ));
        }
        if !is_admitted {
            let now = bench_clock::now();
            let spec = schedule.run_spec_at(now, &api.config.runs.software, now);
            let orderer = admission::admit_stored_run(api, parts, &spec).await?;
            api.orders.runs.count_order(&orderer.owner).await.map_err(refusal)?;
            is_admitted = true;
        }
        let now = bench_clock::now();
        // Two requests within one second count as one.
        let planned = now.whole_seconds();
        let firing = Firing::starting(schedule.id, planned, now);
        if api.state.fire(&record, schedule.next_at, std::slice::from_ref(&firing), now).await?
            == Transition::Done
        {
            let key = FiringRef::new(&firing);
            let stored = api.state.firing(key).await?.ok_or_else(not_found)?;
            return Ok(stored.firing);
        }
    }
    Err(concurrent_change())
}

fn concurrent_change() -> ApiError {
    ApiError::new(Code::ConcurrentChange, "other requests kept changing the schedule; try again")
}
