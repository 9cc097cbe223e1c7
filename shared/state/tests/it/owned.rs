//! Runs of an owner, and hidden runs: found in the lists that they belong to, with true totals.

use bench_domain::run::Owner;
use bench_domain::{RunId, RunLabels, RunSpec, RunStatus, RunTemplate, Timestamp, Visibility, testing};
use bench_embedded::{Durability, Embedded, EmbeddedOptions};
use bench_state::{EventKind, NewEvent, RunFilter, State, Transition};

use crate::meter::Meter;
use crate::table::table;

/// Model of the runs that [`list`] finds.
const LISTED: &str = "acme/listed";

fn user(subject: &str) -> Owner {
    Owner::User(subject.to_owned())
}

/// Writes a run of this owner that was ordered at this second.
async fn write_of(state: &State, slug: &str, second: i64, owner: &Owner, visibility: Visibility) -> RunId {
    let labels = RunLabels { visibility, ..RunLabels::default() };
    let template =
        RunTemplate { labels, ..testing::template(&format!("openai-compatible/{slug}"), "mmlu_pro") };
    let at = Timestamp::from_micros(second * 1_000_000);
    let spec = RunSpec { created_at: at, owner: owner.clone(), ..testing::spec(RunId::random(), template) };
    let created = NewEvent::new(EventKind::RunCreated, "created");
    assert!(state.create_run(&spec, &created, None, at).await.unwrap());
    spec.id
}

/// Writes a run that [`list`] finds.
async fn write(state: &State, second: i64, owner: &Owner, visibility: Visibility) -> RunId {
    write_of(state, LISTED, second, owner, visibility).await
}

async fn set(state: &State, run: RunId, visibility: Visibility) {
    let record = state.run(run).await.unwrap().unwrap();
    let labels = RunLabels { visibility, ..record.spec.labels.clone() };
    assert_eq!(state.change_labels(&record, &labels).await.unwrap(), Transition::Done);
}

/// Cancels and deletes a run.
async fn delete(state: &State, run: RunId) {
    let record = state.run(run).await.unwrap().unwrap();
    let (now, event) = (Timestamp::from_micros(1), NewEvent::new(EventKind::RunCanceled, "canceled"));
    let next = record.state.cancel(now).unwrap();
    let changed = state.change_run(&record, &next, record.generation, &event, now).await.unwrap();
    assert_eq!(changed, Transition::Done);
    let record = state.run(run).await.unwrap().unwrap();
    assert_eq!(state.mark_deleted(&record).await.unwrap(), Transition::Done);
}

async fn list(state: &State, viewer: Option<&[Owner]>, offset: u64, limit: u64) -> (Vec<RunId>, u64) {
    let filter = RunFilter {
        // The table has runs of other tests.
        model_slug: Some(LISTED.to_owned()),
        viewer: viewer.map(<[Owner]>::to_vec),
        ..RunFilter::default()
    };
    let page = state.list_runs(&filter, offset, limit).await.unwrap();
    (page.runs, page.total)
}

#[test]
fn lists_show_hidden_runs_to_their_owners_only() {
    let table = table();
    table.block_on(async {
        let state = table.state(1);
        let (ann, bob) = (user("lists-ann"), user("lists-bob"));
        let open = write(&state, 1, &ann, Visibility::Public).await;
        let unlisted = write(&state, 2, &ann, Visibility::Unlisted).await;
        let private = write(&state, 3, &ann, Visibility::Private).await;
        let bobs = write(&state, 4, &bob, Visibility::Private).await;
        let last = write(&state, 5, &Owner::Local, Visibility::Public).await;
        assert_eq!(list(&state, None, 0, 9).await, (vec![last, bobs, private, unlisted, open], 5));
        assert_eq!(list(&state, Some(&[]), 0, 9).await, (vec![last, open], 2));
        assert_eq!(
            list(&state, Some(std::slice::from_ref(&ann)), 0, 9).await,
            (vec![last, private, unlisted, open], 4)
        );
        assert_eq!(list(&state, Some(&[bob.clone(), Owner::Local]), 0, 9).await, (vec![last, bobs, open], 3));
        // Pages don't have gaps where hidden runs are.
        assert_eq!(list(&state, Some(&[]), 1, 1).await, (vec![open], 2));
        assert_eq!(list(&state, Some(std::slice::from_ref(&ann)), 1, 2).await, (vec![private, unlisted], 4));

        set(&state, private, Visibility::Public).await;
        set(&state, open, Visibility::Unlisted).await;
        set(&state, unlisted, Visibility::Private).await;
        assert_eq!(list(&state, Some(&[]), 0, 9).await, (vec![last, private], 2));
        assert_eq!(list(&state, Some(&[bob]), 0, 9).await, (vec![last, bobs, private], 3));
    });
}

#[test]
fn an_owner_finds_its_own_runs() {
    let table = table();
    table.block_on(async {
        let state = table.state(1);
        // An owner's name may begin with another's.
        let (ann, other, key) = (user("ann"), user("ann#2"), Owner::Key("ann".to_owned()));
        let first = write_of(&state, "acme/other", 1, &ann, Visibility::Public).await;
        let others = write_of(&state, "acme/other", 2, &other, Visibility::Public).await;
        let keyed = write_of(&state, "acme/other", 3, &key, Visibility::Public).await;
        let hidden = write_of(&state, "acme/other", 4, &ann, Visibility::Private).await;
        assert_eq!(state.runs_of(std::slice::from_ref(&ann)).await.unwrap(), [hidden, first]);
        assert_eq!(state.runs_of(&[other]).await.unwrap(), [others]);
        assert_eq!(state.runs_of(&[key, ann.clone()]).await.unwrap(), [hidden, keyed, first]);
        assert!(state.runs_of(&[]).await.unwrap().is_empty());

        let sort = format!("{:020}#{hidden}", 4_000_000);
        assert!(table.has("HIDDEN", &sort).await);
        delete(&state, hidden).await;
        assert_eq!(state.runs_of(&[ann]).await.unwrap(), [first]);
        assert!(!table.has("HIDDEN", &sort).await);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_reads_the_hidden_runs_of_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let meter = Meter::default();
    let options = EmbeddedOptions::new(directory.path()).durability(Durability::Normal);
    let embedded = Embedded::open(options.recorder(meter.recorder())).unwrap();
    let state = State::new(&embedded.sdk_config(), "bench", 1);
    state.ensure_table().await.unwrap();
    let ann = user("ann");
    for second in 0..200 {
        write(&state, second, &ann, Visibility::Private).await;
    }
    let shown = write(&state, 1_000, &ann, Visibility::Public).await;
    let private = write(&state, 1_001, &ann, Visibility::Private).await;
    for run in [shown, private] {
        let record = state.run(run).await.unwrap().unwrap();
        let (now, event) = (Timestamp::from_micros(1), NewEvent::new(EventKind::RunCanceled, "canceled"));
        let next = record.state.cancel(now).unwrap();
        state.change_run(&record, &next, record.generation, &event, now).await.unwrap();
    }
    let list = async |status, viewer: &[Owner]| {
        meter.take();
        let filter =
            RunFilter { status: Some(status), viewer: Some(viewer.to_vec()), ..RunFilter::default() };
        let page = state.list_runs(&filter, 0, 300).await.unwrap();
        (page, meter.take())
    };
    let (page, used) = list(RunStatus::Canceled, &[]).await;
    assert_eq!((page.runs, page.total), (vec![shown], 1));
    assert_eq!(used.actions, ["Query", "Query"]);
    assert!(used.read_units <= 2.0, "{used:?}");
    let (page, _) = list(RunStatus::Canceled, std::slice::from_ref(&ann)).await;
    assert_eq!(page.runs, [private, shown]);

    let (page, used) = list(RunStatus::Running, &[]).await;
    assert_eq!((page.total, used.actions), (0, vec!["Query".to_owned()]));

    // All hidden runs are among the queued ones.
    let (page, used) = list(RunStatus::Queued, &[]).await;
    assert_eq!(page.total, 0);
    assert!(used.read_units > 4.0, "the meter counts: {used:?}");
    assert_eq!(list(RunStatus::Queued, &[ann]).await.0.total, 200);
}

#[test]
fn runs_of_older_versions_are_added_to_the_lists_once() {
    let table = table();
    table.block_on(async {
        let state = table.state(1);
        let ann = user("before-ann");
        let first = write_of(&state, "acme/other", 31, &ann, Visibility::Public).await;
        let second = write_of(&state, "acme/other", 32, &ann, Visibility::Private).await;
        let deleted = write_of(&state, "acme/other", 33, &ann, Visibility::Public).await;
        // Older versions wrote no lists.
        for (run, second) in [(first, 31), (second, 32), (deleted, 33_i64)] {
            table.remove("OWNER#user-before-ann", &format!("{:020}#{run}", second * 1_000_000)).await;
        }
        delete(&state, deleted).await;
        assert!(state.runs_of(std::slice::from_ref(&ann)).await.unwrap().is_empty());
        assert!(!state.are_owner_lists_complete().await.unwrap());
        assert!(state.complete_owner_lists().await.unwrap() >= 2);
        assert!(state.are_owner_lists_complete().await.unwrap());
        assert_eq!(state.runs_of(&[ann]).await.unwrap(), [second, first]);
        assert_eq!(state.complete_owner_lists().await.unwrap(), 0, "once");
    });
}
