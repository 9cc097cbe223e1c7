//! Schedules: each planned time is run exactly once despite failures, and problems are reported.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bench_domain::run::{AuthMode, Owner};
use bench_domain::schedule::{Delivery, Firing, FiringState, FiringStatus, NoticeKind, Schedule, Timing};
use bench_domain::{Code, ModelRole, RunId, RunStatus, ScheduleId, Secret, Timestamp};
use bench_embedded::faults::FaultKind;
use bench_scheduler::{Done, Ticked};
use bench_state::{FiringRef, NewEvent, RunFilter, ScheduleWrite, Transition};
use bench_tests::files::files_with;
use bench_tests::model_server::{ModelRequest, Reply};
use serde_json::json;

use crate::support::webhook_server::WebhookServer;
use crate::support::world::Shutdown;
use crate::support::{ManualDriver, Order, Settings, World, data, runtime};

const KEY: &str = "sk-schedule-77ab01f3c2d94e58";
const OPERATORS_KEY: &str = "sk-operator-51c0e2";
const MADE: &str = "2031-05-01T00:00:00Z";
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Returns two o'clock of a night, counted from 1.
fn night(number: u32) -> Timestamp {
    time("2031-05-01T02:00:00Z").plus(DAY * (number - 1))
}

fn right_reply(request: &ModelRequest) -> Reply {
    Reply::Text(data::right_answer(&request.item))
}

/// Creates a schedule for every night at two, just before the first one.
async fn nightly_schedule(world: &World, items: usize, change: impl FnOnce(&mut Schedule)) -> Schedule {
    let id = ScheduleId::random();
    let mut schedule = Schedule {
        id,
        name: "nightly".into(),
        owner: Owner::Local,
        timing: Timing::new("0 2 * * *", "UTC").unwrap(),
        run: Order::mmlu_pro(items).template(world).await.with_fixed_seed(id),
        tasks: Vec::new(),
        auth: AuthMode::System,
        webhook: None,
        enabled: true,
        created_at: time(MADE),
        updated_at: time(MADE),
        next_at: None,
    };
    change(&mut schedule);
    schedule.next_at = schedule.next_after(time(MADE));
    let sealed = match schedule.auth {
        AuthMode::System | AuthMode::Idp => None,
        AuthMode::ApiKey => {
            let (credentials, key) = (&world.stack.credentials, Secret::new(KEY).unwrap());
            Some(credentials.seal_for_schedule(id, ModelRole::Model, &key).await.unwrap())
        }
    };
    let create = || world.stack.state.create_schedule(&schedule, sealed.clone());
    assert_eq!(world.retry_until_ok("create the schedule", create).await, ScheduleWrite::Done);
    schedule
}

async fn run_tick(world: &World, now: Timestamp) -> Ticked {
    world.retry_until_ok("tick", || world.scheduler().tick(now)).await
}

async fn firings(world: &World, schedule: &Schedule) -> Vec<Firing> {
    world.retry_until_ok("list firings", || world.stack.state.firings(schedule.id, None, 100)).await
}

/// Returns the firing of a planned time.
async fn firing(world: &World, schedule: &Schedule, planned: Timestamp) -> Firing {
    let firing = FiringRef { schedule: schedule.id, planned };
    world.retry_until_ok("read the firing", || world.stack.state.firing(firing)).await.unwrap().firing
}

async fn run_total(world: &World) -> u64 {
    world.stack.state.list_runs(&RunFilter::default(), 0, 100).await.unwrap().total
}

/// Simulates a night: its run is made, completed and checked.
async fn complete_night(world: &World, schedule: &Schedule, planned: Timestamp) -> Firing {
    assert_eq!(run_tick(world, planned).await.started, 1);
    let run = schedule.id.run_id_at(planned);
    world.wait_for_end(run).await;
    assert_eq!(run_tick(world, planned.plus(HOUR)).await.ended, 1);
    firing(world, schedule, planned).await
}

#[test]
fn a_planned_time_is_run_once_however_many_look() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), right_reply).await;
        let tags = vec!["every-night".to_owned()];
        let schedule = nightly_schedule(&world, 6, |new| new.run.labels.tags = tags.clone()).await;
        let (one, other) = (ManualDriver::new(&world, 0).scheduler, ManualDriver::new(&world, 0).scheduler);
        assert_eq!(run_tick(&world, time("2031-05-01T01:59:59Z")).await, Ticked::default());
        for number in 1..=3 {
            let now = night(number);
            let ticks = futures_util::future::join_all([
                one.tick(now),
                other.tick(now),
                one.tick(now),
                other.tick(now),
                world.scheduler().tick(now),
            ]);
            let started: u32 = ticks.await.into_iter().map(|ticked| ticked.unwrap().started).sum();
            assert_eq!((started, run_total(&world).await), (1, u64::from(number)));
            let run = schedule.id.run_id_at(now);
            assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
            let spec = world.stored_run(run).await.run.spec;
            assert_eq!(
                (spec.schedule, spec.template.subset.seed),
                (Some(schedule.id), Some(schedule.id.to_string()))
            );
            let labels = spec.template.labels;
            assert_eq!((labels.name.as_deref(), &labels.tags), (Some("nightly"), &tags));
            let ticks =
                futures_util::future::join(one.tick(now.plus(HOUR)), other.tick(now.plus(HOUR))).await;
            assert_eq!(ticks.0.unwrap().ended + ticks.1.unwrap().ended, 1);
        }
        let fired = firings(&world, &schedule).await;
        assert_eq!(
            fired.iter().map(|firing| firing.planned).collect::<Vec<_>>(),
            [night(3), night(2), night(1)]
        );
        for (firing, before) in fired.iter().zip([Some(night(2)), Some(night(1)), None]) {
            let FiringState::Ended { run_status, score, comparison, .. } = &firing.state else {
                panic!("{firing:?}")
            };
            assert_eq!((*run_status, *score), (Some(RunStatus::Succeeded), Some(1.0)));
            assert_eq!(
                comparison.as_ref().map(|c| c.with),
                before.map(|planned| schedule.id.run_id_at(planned))
            );
            if let Some(comparison) = comparison {
                assert_eq!((comparison.benchmarks[0].items, comparison.regressed), (6, false));
            }
        }
        // No firings are left open.
        assert_eq!(world.stack.state.open_firings(10).await.unwrap(), []);
        assert_eq!(run_tick(&world, night(4)).await.started, 1);
    });
}

#[test]
fn a_process_that_ends_between_taking_a_time_up_and_making_its_run_loses_nothing() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), right_reply).await;
        let schedule = nightly_schedule(&world, 4, |_| ()).await;
        let state = &world.stack.state;
        let record = state.schedule(schedule.id).await.unwrap().unwrap();
        let starting = [Firing::starting(schedule.id, night(1), night(1))];
        let fire = || state.fire(&record, Some(night(2)), &starting, night(1));
        assert_eq!(fire().await.unwrap(), Transition::Done);
        // A process that read the schedule before that is too late.
        assert_eq!(fire().await.unwrap(), Transition::Raced);
        assert_eq!(run_total(&world).await, 0);
        let world = world.reopen(Shutdown::Killed).await;
        assert_eq!(run_tick(&world, night(1).plus(HOUR / 60)).await.started, 1);
        assert_eq!(world.wait_for_end(schedule.id.run_id_at(night(1))).await, RunStatus::Succeeded);

        // The next process ends after it made the run and before it recorded that.
        let state = &world.stack.state;
        let record = state.schedule(schedule.id).await.unwrap().unwrap();
        let starting = [Firing::starting(schedule.id, night(2), night(2))];
        assert_eq!(state.fire(&record, Some(night(3)), &starting, night(2)).await.unwrap(), Transition::Done);
        let spec = schedule.run_spec_at(night(2), "test", night(2));
        let event = NewEvent::run_created(&spec, &[]);
        assert!(state.create_run_with(&spec, &event, None, night(2), None).await.unwrap());
        let world = world.reopen(Shutdown::Killed).await;
        assert_eq!(run_tick(&world, night(2).plus(HOUR / 60)).await.started, 1);
        assert_eq!(world.wait_for_end(spec.id).await, RunStatus::Succeeded);
        assert_eq!(run_total(&world).await, 2);
    });
}

/// Responses of the services are lost, transactions conflict, calls are throttled. No worker runs, so each run is
/// late by the next night.
#[test]
fn faults_of_the_services_make_no_second_run_and_lose_no_message() {
    runtime().block_on(async {
        let faults = "seed=11,conflict=0.2,throttle=0.02,lost-response@TransactWriteItems=0.2";
        let world = World::open(Settings { faults, ..Settings::default() }, right_reply).await;
        let webhooks = WebhookServer::start(&[]).await;
        let schedule =
            nightly_schedule(&world, 3, |schedule| schedule.webhook = Some(webhooks.webhook())).await;
        const NIGHTS: u32 = 3;
        for number in 1..=NIGHTS {
            // A later tick repeats failed steps.
            for tenths in 0..4 {
                let now = night(number).plus(HOUR / 10 * tenths);
                let ticks = (0..2).map(|_| world.scheduler().tick(now));
                futures_util::future::join_all(ticks).await;
            }
            let FiringState::Started { run, .. } = firing(&world, &schedule, night(number)).await.state
            else {
                panic!("night {number} did not start")
            };
            assert_eq!(run, schedule.id.run_id_at(night(number)));
            let all = RunFilter::default();
            let listed = world.retry_until_ok("list", || world.stack.state.list_runs(&all, 0, 100)).await;
            assert_eq!(listed.total, u64::from(number));
        }
        assert_eq!(firings(&world, &schedule).await.len(), NIGHTS as usize);
        let messages: BTreeSet<String> =
            webhooks.messages().iter().map(|body| body["id"].to_string()).collect();
        let late =
            (1..NIGHTS).map(|n| json!(format!("{}/{}/not_finished", schedule.id, night(n))).to_string());
        assert_eq!(messages, late.collect());
        let counts = world.stack.embedded.fault_counts();
        assert!(counts.count(FaultKind::LostResponse) > 0 && counts.count(FaultKind::Conflict) > 0);
    });
}

#[test]
fn after_an_outage_the_latest_time_alone_is_run() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), right_reply).await;
        let webhooks = WebhookServer::start(&[]).await;
        let schedule =
            nightly_schedule(&world, 3, |schedule| schedule.webhook = Some(webhooks.webhook())).await;
        // Three nights later, five hours after the last planned time.
        let ticked = run_tick(&world, night(4).plus(HOUR * 5)).await;
        assert_eq!((ticked.started, ticked.missed, ticked.not_started), (1, 3, 0));
        let states = firings(&world, &schedule).await;
        let states: Vec<_> = states.iter().map(|firing| firing.state.status()).collect();
        let missed = FiringStatus::Missed;
        assert_eq!(states, [FiringStatus::Started, missed, missed, missed]);
        assert_eq!(run_total(&world).await, 1);
        assert!(webhooks.messages().is_empty());
        world.wait_for_end(schedule.id.run_id_at(night(4))).await;

        // The next outage ends too late for any of its planned times.
        let ticked = run_tick(&world, night(6).plus(HOUR * 6)).await;
        assert_eq!((ticked.started, ticked.missed, ticked.not_started), (0, 2, 1));
        assert_eq!(run_total(&world).await, 1);
        let messages = webhooks.messages();
        assert_eq!((messages.len(), &messages[0]["kind"]), (1, &json!("missed")));
        let record = world.stack.state.schedule(schedule.id).await.unwrap().unwrap();
        assert_eq!(record.schedule.next_at, Some(night(7)));
        // Reported once, not in every tick.
        assert_eq!(run_tick(&world, night(6).plus(HOUR * 7)).await.missed, 0);
        assert_eq!(firings(&world, &schedule).await.len(), 6);
    });
}

#[test]
fn a_schedules_own_key_stays_until_it_is_deleted_and_is_used_for_its_provider_only() {
    runtime().block_on(async {
        let settings =
            Settings { vars: &[("OPENAI_COMPATIBLE_API_KEY", OPERATORS_KEY)], ..Settings::default() };
        let world = World::start(settings, right_reply).await;
        let webhooks = WebhookServer::start(&[]).await;
        let owner = world.stack.api.access.owner_of(&Secret::new(KEY).unwrap());
        let schedule = nightly_schedule(&world, 3, |schedule| {
            schedule.auth = AuthMode::ApiKey;
            schedule.owner = owner.clone();
            schedule.webhook = Some(webhooks.webhook());
        })
        .await;
        let credentials = &world.stack.credentials;
        for number in 1..=2 {
            complete_night(&world, &schedule, night(number)).await;
            let run = schedule.id.run_id_at(night(number));
            assert_eq!(world.stored_run(run).await.run.spec.owner, owner);
            // The run's copy of the key is deleted with the run.
            assert_eq!(credentials.get(run, ModelRole::Model).await.unwrap(), None);
            assert_eq!(
                credentials.get_for_schedule(schedule.id, ModelRole::Model).await.unwrap(),
                Some(Secret::new(KEY).unwrap())
            );
        }
        let log = world.model.log();
        assert_eq!(log.len(), 6);
        assert!(log.iter().all(|request| request.key.as_deref() == Some(KEY)));
        assert_eq!(files_with(&world.data_dir(), KEY), Vec::<String>::new());
        assert!(!files_with(&world.data_dir(), &schedule.id.to_string()).is_empty());

        let record = world.stack.state.schedule(schedule.id).await.unwrap().unwrap();
        let removal = || credentials.removal_for_schedule(schedule.id).unwrap();
        assert_eq!(world.stack.state.delete_schedule(&record, removal()).await.unwrap(), Transition::Done);
        assert_eq!(credentials.get_for_schedule(schedule.id, ModelRole::Model).await.unwrap(), None);
        assert_eq!(firings(&world, &schedule).await, []);
        // Deleting is safe to repeat, and nothing runs any more.
        assert_eq!(world.stack.state.delete_schedule(&record, removal()).await.unwrap(), Transition::Done);
        assert_eq!(run_tick(&world, night(3)).await, Ticked::default());
        assert_eq!(run_total(&world).await, 2);
    });
}

/// A sealed key of a schedule can't be opened as anything else.
#[test]
fn a_schedules_key_that_is_gone_makes_no_run_on_another_key() {
    runtime().block_on(async {
        let settings =
            Settings { vars: &[("OPENAI_COMPATIBLE_API_KEY", OPERATORS_KEY)], ..Settings::default() };
        let world = World::start(settings, right_reply).await;
        let schedule = nightly_schedule(&world, 3, |_| ()).await;
        let record = world.stack.state.schedule(schedule.id).await.unwrap().unwrap();
        let changed = Schedule { auth: AuthMode::ApiKey, ..record.schedule.clone() };
        let update = world.stack.state.update_schedule(&record, &changed, None).await.unwrap();
        assert_eq!(update, ScheduleWrite::Done);
        run_tick(&world, night(1)).await;
        let ticked = run_tick(&world, night(1).plus(HOUR)).await;
        assert_eq!((ticked.started, ticked.not_started, run_total(&world).await), (0, 1, 0));
        let FiringState::NotStarted { error, code, .. } = firing(&world, &schedule, night(1)).await.state
        else {
            panic!()
        };
        assert!(error.contains("its own key is gone"), "{error}");
        assert_eq!(code, Some(Code::KeyRequired));
        assert!(world.model.log().is_empty());
    });
}

#[test]
fn a_schedule_that_is_off_does_not_run_and_makes_nothing_up_when_it_is_switched_on() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), right_reply).await;
        let schedule = nightly_schedule(&world, 3, |schedule| schedule.enabled = false).await;
        assert_eq!(schedule.next_at, None);
        assert_eq!(run_tick(&world, night(3)).await, Ticked::default());
        let record = world.stack.state.schedule(schedule.id).await.unwrap().unwrap();
        let mut changed = Schedule { enabled: true, ..record.schedule.clone() };
        changed.next_at = changed.next_after(night(3).plus(HOUR));
        world.stack.state.update_schedule(&record, &changed, None).await.unwrap();
        // A process that read it before that can no longer change it.
        let late = world.stack.state.update_schedule(&record, &schedule, None).await.unwrap();
        assert_eq!(late, ScheduleWrite::Raced);
        assert_eq!(run_tick(&world, night(3).plus(HOUR)).await, Ticked::default());
        assert_eq!(run_tick(&world, night(4)).await.started, 1);
        assert_eq!((run_total(&world).await, firings(&world, &schedule).await.len()), (1, 1));
    });
}

#[test]
fn a_run_that_cannot_be_created_is_retried_for_an_hour_and_then_reported() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), right_reply).await;
        let webhooks = WebhookServer::start(&[]).await;
        let schedule = nightly_schedule(&world, 3, |schedule| {
            schedule.webhook = Some(webhooks.webhook());
            // There is no key for this provider.
            schedule.run.model.provider = "chutes".into();
            schedule.run.model.base_url = None;
        })
        .await;
        // An hour after it was taken up, not after its planned time.
        let taken_up = night(1).plus(HOUR * 2);
        for minutes in [0, 1, 30, 59] {
            assert_eq!(run_tick(&world, taken_up.plus(HOUR / 60 * minutes)).await.not_started, 0);
        }
        let FiringState::Starting { tries, error, code, .. } =
            firing(&world, &schedule, night(1)).await.state
        else {
            panic!()
        };
        assert_eq!((tries, code), (4, Some(Code::ProviderNotConfigured)));
        assert!(error.unwrap().contains("CHUTES_API_KEY"));
        assert!(webhooks.messages().is_empty());
        let now = taken_up.plus(HOUR);
        let done = world.scheduler().handle(&json!({"task": "tick"}), now).await.unwrap();
        assert_eq!(done.metrics(), [("ScheduledRunsNotStarted", 1.0)]);
        for _ in 0..3 {
            run_tick(&world, now.plus(HOUR)).await;
        }
        let firing = firing(&world, &schedule, night(1)).await;
        let FiringState::NotStarted { error, code, .. } = &firing.state else { panic!("{firing:?}") };
        assert!(error.contains("CHUTES_API_KEY"), "{error}");
        assert_eq!(*code, Some(Code::ProviderNotConfigured));
        let messages = webhooks.messages();
        assert_eq!(
            (messages.len(), &messages[0]["kind"], &messages[0]["run"]),
            (1, &json!("not_started"), &json!(null))
        );
        assert!(messages[0]["message"].as_str().unwrap().contains("CHUTES_API_KEY"));
        assert_eq!(messages[0]["error_code"], "provider_not_configured");
        assert_eq!(run_total(&world).await, 0);
        // The next night starts over.
        assert_eq!(run_tick(&world, night(2)).await.not_started, 0);
    });
}

#[test]
fn a_regression_is_reported_once() {
    runtime().block_on(async {
        let worse = Arc::new(AtomicBool::new(false));
        let is_worse = Arc::clone(&worse);
        let world = World::start(Settings::default(), move |request| {
            let wrong = is_worse.load(Ordering::SeqCst) && data::number(&request.item) % 2 == 1;
            Reply::Text(if wrong { "I do not know.".to_owned() } else { data::right_answer(&request.item) })
        })
        .await;
        let webhooks = WebhookServer::start(&[]).await;
        let schedule =
            nightly_schedule(&world, 40, |schedule| schedule.webhook = Some(webhooks.webhook())).await;
        complete_night(&world, &schedule, night(1)).await;
        worse.store(true, Ordering::SeqCst);
        assert_eq!(run_tick(&world, night(2)).await.started, 1);
        let run = schedule.id.run_id_at(night(2));
        world.wait_for_end(run).await;
        let (one, other) = (ManualDriver::new(&world, 0).scheduler, ManualDriver::new(&world, 0).scheduler);
        let now = night(2).plus(HOUR);
        let ticks =
            futures_util::future::join_all([one.tick(now), other.tick(now), one.tick(now), other.tick(now)]);
        let ticks: Vec<Ticked> = ticks.await.into_iter().map(Result::unwrap).collect();
        assert_eq!(ticks.iter().map(|ticked| ticked.regressed).sum::<u32>(), 1);
        for _ in 0..3 {
            run_tick(&world, now.plus(HOUR)).await;
        }
        let firing = firing(&world, &schedule, night(2)).await;
        let FiringState::Ended { comparison: Some(comparison), score, .. } = &firing.state else {
            panic!("{firing:?}")
        };
        assert_eq!((comparison.with, comparison.regressed), (schedule.id.run_id_at(night(1)), true));
        let benchmark = &comparison.benchmarks[0];
        assert_eq!((benchmark.items, benchmark.regressed), (40, true));
        assert!((benchmark.difference.unwrap() + 0.5).abs() < 1e-9 && (score.unwrap() - 0.5).abs() < 1e-9);
        let interval = benchmark.interval.unwrap();
        assert!(interval.low < -0.5 && interval.high > -0.5 && interval.high < 0.0);
        let messages = webhooks.messages();
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert_eq!(
            (&messages[0]["kind"], &messages[0]["run"]),
            (&json!("regressed"), &json!(run.to_string()))
        );
        assert_eq!(messages[0]["comparison"]["benchmarks"][0]["regressed"], json!(true));
        assert_eq!(messages[0]["id"], json!(format!("{}/{}/regressed", schedule.id, night(2))));
        // A score as low as on the night before is not reported.
        let third = complete_night(&world, &schedule, night(3)).await;
        let FiringState::Ended { comparison: Some(comparison), .. } = &third.state else {
            panic!("{third:?}")
        };
        assert_eq!((comparison.with, comparison.regressed), (run, false));
        assert_eq!(webhooks.messages().len(), 1);
    });
}

#[test]
fn a_failed_run_is_reported_and_never_compared() {
    runtime().block_on(async {
        let broken = Arc::new(AtomicBool::new(false));
        let is_broken = Arc::clone(&broken);
        let world = World::start(Settings::default(), move |request| match is_broken.load(Ordering::SeqCst) {
            true => Reply::Status(401, r#"{"error":{"message":"no"}}"#.to_owned(), vec![]),
            false => right_reply(request),
        })
        .await;
        // A redirect is an error like any other and is not followed.
        let webhooks = WebhookServer::start(&["500 Internal Server Error", "302 Found"]).await;
        let schedule = nightly_schedule(&world, 4, |schedule| schedule.webhook = Some(webhooks.webhook())).await;
        complete_night(&world, &schedule, night(1)).await;
        broken.store(true, Ordering::SeqCst);
        let failed = complete_night(&world, &schedule, night(2)).await;
        let FiringState::Ended { run_status, comparison, .. } = &failed.state else { panic!("{failed:?}") };
        assert_eq!((*run_status, comparison), (Some(RunStatus::Failed), &None));
        let webhook = |firing: &Firing| firing.notices[0].webhook.clone();
        assert!(matches!(webhook(&failed), Delivery::Due { tries: 1, error: Some(error) } if error.contains("500")));
        run_tick(&world, night(2).plus(HOUR * 2)).await;
        let second = firing(&world, &schedule, night(2)).await;
        assert!(matches!(webhook(&second), Delivery::Due { tries: 2, error: Some(error) } if error.contains("302")));
        assert_eq!(run_tick(&world, night(2).plus(HOUR * 3)).await.delivered, 1);
        run_tick(&world, night(2).plus(HOUR * 4)).await;
        let third = firing(&world, &schedule, night(2)).await;
        assert_eq!(third.notices[0].kind, NoticeKind::Failed);
        assert!(matches!(webhook(&third), Delivery::Done { .. }));
        let messages = webhooks.messages();
        assert_eq!(messages.len(), 3);
        assert!(messages.iter().all(|body| body == &messages[0] && body["kind"] == json!("failed")));
        broken.store(false, Ordering::SeqCst);
        let after = complete_night(&world, &schedule, night(3)).await;
        let FiringState::Ended { comparison: Some(comparison), .. } = &after.state else { panic!("{after:?}") };
        assert_eq!(comparison.with, schedule.id.run_id_at(night(1)));
    });
}

#[test]
fn a_webhook_that_never_answers_well_is_given_up() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), right_reply).await;
        let webhooks = WebhookServer::start(&["503 Service Unavailable"; 10]).await;
        let schedule =
            nightly_schedule(&world, 3, |schedule| schedule.webhook = Some(webhooks.webhook())).await;
        for hours in 6..12 {
            run_tick(&world, night(1).plus(HOUR * hours)).await;
        }
        assert_eq!(webhooks.messages().len(), 3);
        let firing = firing(&world, &schedule, night(1)).await;
        assert!(matches!(&firing.notices[0].webhook, Delivery::GivenUp { error } if error.contains("503")));
        assert!(world.stack.state.open_firings(10).await.unwrap().is_empty());
    });
}

#[test]
fn a_run_still_open_at_the_next_planned_time_is_reported() {
    runtime().block_on(async {
        let open = Arc::new(AtomicBool::new(false));
        let is_open = Arc::clone(&open);
        let world = World::start(Settings::default(), move |request| match is_open.load(Ordering::SeqCst) {
            true => right_reply(request),
            false => Reply::Status(503, String::new(), vec![("retry-after", "1".to_owned())]),
        })
        .await;
        let webhooks = WebhookServer::start(&[]).await;
        let schedule =
            nightly_schedule(&world, 3, |schedule| schedule.webhook = Some(webhooks.webhook())).await;
        assert_eq!(run_tick(&world, night(1)).await.started, 1);
        assert_eq!(run_tick(&world, night(1).plus(HOUR * 23)).await.not_finished, 0);
        let ticked = run_tick(&world, night(2)).await;
        assert_eq!((ticked.started, ticked.not_finished), (1, 1));
        assert_eq!(run_tick(&world, night(2).plus(HOUR)).await.not_finished, 0);
        let messages = webhooks.messages();
        assert_eq!((messages.len(), &messages[0]["kind"]), (1, &json!("not_finished")));
        open.store(true, Ordering::SeqCst);
        for number in [1, 2] {
            assert_eq!(world.wait_for_end(schedule.id.run_id_at(night(number))).await, RunStatus::Succeeded);
        }
        assert_eq!(run_tick(&world, night(2).plus(HOUR * 2)).await.ended, 2);
        assert_eq!(webhooks.messages().len(), 1);
    });
}

#[test]
fn keys_that_are_left_over_are_removed() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), right_reply).await;
        let run = Order::mmlu_pro(3).with_key(KEY).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let credentials = &world.stack.credentials;
        let later = bench_clock::now().plus(HOUR);
        let reap = async || match world.scheduler().handle(&json!({"task": "reap"}), later).await.unwrap() {
            Done::Reaped(reaped) => (reaped.checked, reaped.removed),
            done => panic!("{done:?}"),
        };
        assert_eq!(reap().await, (1, 0));
        // The key is restored, which should never happen, by writing it with another record.
        let sealed = credentials.seal(run, ModelRole::Model, 1, &Secret::new(KEY).unwrap()).await.unwrap();
        let mut schedule = nightly_schedule(&world, 3, |schedule| schedule.enabled = false).await;
        schedule.id = ScheduleId::random();
        schedule.name = "another".into();
        let created = world.stack.state.create_schedule(&schedule, Some(sealed)).await.unwrap();
        assert_eq!(created, ScheduleWrite::Done);
        assert!(credentials.has(run).await.unwrap());
        assert_eq!(reap().await, (1, 1));
        assert!(!credentials.has(run).await.unwrap());
        assert_eq!(reap().await, (1, 0));
        // An open run keeps its key.
        let open = Order::mmlu_pro(3).with_key(KEY).create(&world).await;
        assert_eq!(reap().await, (1, 0));
        assert!(credentials.has(open).await.unwrap());
    });
}

#[test]
fn inputs_that_name_no_task_are_refused_by_name() {
    runtime().block_on(async {
        let settings = Settings { vars: &[("SKIP_MODEL_SYNC", "true")], ..Settings::default() };
        let world = World::open(settings, right_reply).await;
        let scheduler = world.scheduler();
        let error = scheduler.handle(&json!({"task": "dance"}), night(1)).await.unwrap_err().to_string();
        assert!(error.contains("dance"), "{error}");
        let synced = scheduler.handle(&json!({"task": "sync-models"}), night(1)).await.unwrap();
        assert_eq!(synced, Done::Synced(None));
        assert!(matches!(
            scheduler.handle(&json!({"task": "reconcile"}), night(1)).await,
            Ok(Done::Resent(_))
        ));
    });
}

#[test]
fn a_schedule_that_is_deleted_leaves_its_run_alone() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), right_reply).await;
        let schedule = nightly_schedule(&world, 3, |_| ()).await;
        assert_eq!(run_tick(&world, night(1)).await.started, 1);
        let run: RunId = schedule.id.run_id_at(night(1));
        let record = world.stack.state.schedule(schedule.id).await.unwrap().unwrap();
        let removal = world.stack.credentials.removal_for_schedule(schedule.id).unwrap();
        world.stack.state.delete_schedule(&record, removal).await.unwrap();
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        assert_eq!(run_tick(&world, night(1).plus(HOUR)).await, Ticked::default());
        assert_eq!(world.stack.state.open_firings(10).await.unwrap(), []);
    });
}

/// The write itself reserves and frees a name, even with concurrent writers.
#[test]
fn two_schedules_of_an_owner_never_have_the_same_name() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), right_reply).await;
        let state = &world.stack.state;
        let first = nightly_schedule(&world, 3, |schedule| schedule.name = "first".into()).await;
        let named = |name: &str, owner: Owner| Schedule {
            id: ScheduleId::random(),
            name: name.to_owned(),
            owner,
            ..first.clone()
        };
        let same: Vec<Schedule> = (0..8).map(|_| named("nightly", Owner::Local)).collect();
        let all = same.iter().map(|schedule| state.create_schedule(schedule, None));
        let written = futures_util::future::try_join_all(all).await.unwrap();
        let count = |wanted| written.iter().filter(|it| **it == wanted).count();
        assert_eq!((count(ScheduleWrite::Done), count(ScheduleWrite::NameTaken)), (1, 7), "{written:?}");
        assert_eq!(state.list_schedules().await.unwrap().len(), 2);
        let stranger = named("nightly", Owner::Key("k".into()));
        assert_eq!(
            state.create_schedule(&stranger, None).await.unwrap(),
            ScheduleWrite::Done,
            "another owner"
        );

        // A rename takes the new name and frees the old one.
        let rename = async |id: ScheduleId, name: &str| {
            let record = state.schedule(id).await.unwrap().unwrap();
            let changed = Schedule { name: name.to_owned(), ..record.schedule.clone() };
            state.update_schedule(&record, &changed, None).await.unwrap()
        };
        assert_eq!(rename(first.id, "nightly").await, ScheduleWrite::NameTaken);
        assert_eq!(rename(first.id, "weekly").await, ScheduleWrite::Done);
        let next = named("first", Owner::Local);
        assert_eq!(state.create_schedule(&next, None).await.unwrap(), ScheduleWrite::Done);
        assert_eq!(rename(first.id, "first").await, ScheduleWrite::NameTaken);

        // So does a deletion.
        let delete = async |id: ScheduleId| {
            let record = state.schedule(id).await.unwrap().unwrap();
            let removal = world.stack.credentials.removal_for_schedule(id).unwrap();
            state.delete_schedule(&record, removal).await.unwrap()
        };
        assert_eq!(delete(next.id).await, Transition::Done);
        assert_eq!(rename(first.id, "first").await, ScheduleWrite::Done);
    });
}

/// An older program wrote schedules without records of their names, and leaves existing records behind.
#[test]
fn schedules_of_an_older_program_can_be_renamed_and_deleted() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), right_reply).await;
        let state = &world.stack.state;
        let table = aws_sdk_dynamodb::Client::new(&world.stack.embedded.sdk_config());
        let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
        let forget = async |name: &str| {
            let delete = table.delete_item().table_name("bench-runner").key("pk", text("SCHEDULE#NAMES"));
            let old = delete
                .key("sk", text(&format!("local#{name}")))
                .return_values(aws_sdk_dynamodb::types::ReturnValue::AllOld)
                .send();
            assert!(old.await.unwrap().attributes.is_some(), "{name} had a record");
        };
        let rename = async |id: ScheduleId, name: &str| {
            let record = state.schedule(id).await.unwrap().unwrap();
            let changed = Schedule { name: name.to_owned(), ..record.schedule.clone() };
            state.update_schedule(&record, &changed, None).await.unwrap()
        };
        let delete = async |id: ScheduleId| {
            let record = state.schedule(id).await.unwrap().unwrap();
            let removal = world.stack.credentials.removal_for_schedule(id).unwrap();
            state.delete_schedule(&record, removal).await.unwrap()
        };
        // Two schedules of one name, as there could be in the past.
        let one = nightly_schedule(&world, 3, |schedule| schedule.name = "same".into()).await;
        forget("same").await;
        let other = nightly_schedule(&world, 3, |schedule| schedule.name = "same".into()).await;
        assert_eq!(rename(one.id, "one").await, ScheduleWrite::Done);
        assert_eq!(rename(one.id, "same").await, ScheduleWrite::NameTaken, "the other one still has it");
        forget("same").await;
        assert_eq!(rename(one.id, "same").await, ScheduleWrite::Done);
        assert_eq!(delete(other.id).await, Transition::Done, "the name stays with the first one");
        assert_eq!(rename(one.id, "one").await, ScheduleWrite::Done);

        // The older program deletes a schedule without its name record.
        let gone = table
            .delete_item()
            .table_name("bench-runner")
            .key("pk", text("SCHEDULES"))
            .key("sk", text(&one.id.to_string()))
            .send();
        gone.await.unwrap();
        let new = nightly_schedule(&world, 3, |schedule| schedule.name = "one".into()).await;
        assert_eq!(delete(new.id).await, Transition::Done);
    });
}
