//! Labels of runs: stored, changed, found in lists, deleted with the run.

use bench_domain::{RunId, RunLabels, RunSpec, RunStatus, RunTemplate, Timestamp, testing};
use bench_state::{EventKind, NewEvent, RunFilter, RunRecord, State, Transition};

use crate::table::table;

fn labels(name: Option<&str>, tags: &[&str], notes: Option<&str>) -> RunLabels {
    let owned = |text: &str| text.to_owned();
    RunLabels {
        name: name.map(owned),
        tags: tags.iter().map(|tag| owned(tag)).collect(),
        notes: notes.map(owned),
        ..RunLabels::default()
    }
}

/// Writes a run that was ordered at this second.
async fn write(state: &State, second: i64, labels: RunLabels) -> RunRecord {
    let template = RunTemplate { labels, ..testing::template("openai-compatible/acme/model", "mmlu_pro") };
    let at = Timestamp::from_micros(second * 1_000_000);
    let spec = RunSpec { created_at: at, ..testing::spec(RunId::random(), template) };
    let created = NewEvent::new(EventKind::RunCreated, "created");
    assert!(state.create_run(&spec, &created, None, at).await.unwrap());
    state.run(spec.id).await.unwrap().unwrap()
}

async fn list(state: &State, filter: RunFilter, offset: u64, limit: u64) -> (Vec<RunId>, u64) {
    let page = state.list_runs(&filter, offset, limit).await.unwrap();
    (page.runs, page.total)
}

async fn found(state: &State, tags: &[&str], name: Option<&str>) -> Vec<RunId> {
    let owned = |text: &str| text.to_owned();
    let tags = tags.iter().copied().map(owned).collect();
    let filter = RunFilter { tags, name: name.map(owned), ..RunFilter::default() };
    list(state, filter, 0, 100).await.0
}

async fn end(state: &State, run: &RunRecord) -> RunRecord {
    let (now, event) = (Timestamp::from_micros(1), NewEvent::new(EventKind::RunCanceled, "canceled"));
    let next = run.state.cancel(now).unwrap();
    let done = state.change_run(run, &next, run.generation, &event, now).await.unwrap();
    assert_eq!(done, Transition::Done);
    state.run(run.spec.id).await.unwrap().unwrap()
}

#[test]
fn labels_are_stored_and_changed_without_touching_the_runs_course() {
    let table = table();
    table.block_on(async {
        let state = table.state(1);
        let first = labels(Some("Baseline 7"), &["a", "b/c"], Some("one\n\ttwo"));
        let run = write(&state, 1, first.clone()).await;
        assert_eq!(run.spec.labels, first);
        let events = state.events(run.spec.id, 0, 10).await.unwrap();

        let second = labels(None, &["b/c", "d"], None);
        assert_eq!(state.change_labels(&run, &second).await.unwrap(), Transition::Done);
        assert_eq!(state.run(run.spec.id).await.unwrap().unwrap().spec.labels, second);
        // A change based on the earlier labels must be repeated, but a transition of the run isn't disturbed.
        assert_eq!(state.change_labels(&run, &first).await.unwrap(), Transition::Raced);
        let over = end(&state, &run).await;
        assert_eq!((over.state.status(), &over.spec.labels), (RunStatus::Canceled, &second));
        assert_eq!(
            state.events(run.spec.id, 0, 10).await.unwrap().len(),
            events.len() + 1,
            "no event of labels"
        );

        assert_eq!(state.change_labels(&over, &RunLabels::default()).await.unwrap(), Transition::Done);
        let bare = state.run(run.spec.id).await.unwrap().unwrap();
        assert_eq!(bare.spec.labels, RunLabels::default());
        assert_eq!(state.change_labels(&over, &first).await.unwrap(), Transition::Raced);
        assert_eq!(state.change_labels(&bare, &first).await.unwrap(), Transition::Done);
        assert_eq!(state.run(run.spec.id).await.unwrap().unwrap().spec.labels, first);
    });
}

#[test]
fn runs_are_found_by_tag_and_name_across_pages() {
    let table = table();
    table.block_on(async {
        let state = table.state(1);
        // Other tests use the same table.
        let tag = RunId::random().to_string();
        let mut tagged = Vec::new();
        for second in 1..=7 {
            let name = format!("Größe {second} of {tag}");
            let labels = labels(Some(&name), &["x", &tag], None);
            tagged.push(write(&state, second, labels).await);
            write(&state, second, RunLabels::default()).await;
        }
        let newest_first: Vec<RunId> = tagged.iter().rev().map(|run| run.spec.id).collect();
        let filter = RunFilter { tags: vec![tag.clone()], ..RunFilter::default() };
        for (offset, expected) in [(0, &newest_first[..3]), (3, &newest_first[3..6]), (6, &newest_first[6..])]
        {
            assert_eq!(list(&state, filter.clone(), offset, 3).await, (expected.to_vec(), 7));
        }
        assert_eq!(list(&state, filter.clone(), 7, 3).await, (Vec::new(), 7));
        // A tag is compared as a whole, a name in part and in any case.
        assert_eq!(found(&state, &[&tag[..8]], None).await, []);
        let third = tagged[2].spec.id;
        assert_eq!(found(&state, &[], Some(&format!("GRÖSSE 3 of {tag}"))).await, []);
        assert_eq!(found(&state, &[], Some(&format!("GRÖßE 3 of {}", tag.to_uppercase()))).await, [third]);
        assert_eq!(found(&state, &["x"], Some(&format!("3 of {tag}"))).await, [third]);
        assert_eq!(found(&state, &["y"], Some(&format!("3 of {tag}"))).await, []);
        assert_eq!(found(&state, &["x", &tag], None).await, newest_first, "all tags must match");
        assert_eq!(found(&state, &[tag.as_str(), "y"], None).await, []);

        end(&state, &tagged[2]).await;
        let canceled = RunFilter { status: Some(RunStatus::Canceled), ..filter.clone() };
        assert_eq!(list(&state, canceled, 0, 10).await, (vec![third], 1));
        let model = RunFilter { model_slug: Some("other".into()), ..filter };
        assert_eq!(list(&state, model, 0, 10).await, (Vec::new(), 0));
    });
}

#[test]
fn changed_labels_are_found_and_those_of_deleted_runs_are_gone() {
    let table = table();
    table.block_on(async {
        let state = table.state(1);
        let (old, new) = (RunId::random().to_string(), RunId::random().to_string());
        let run = write(&state, 1, labels(None, &[&old], None)).await;
        state.change_labels(&run, &labels(None, &[&new], Some("note"))).await.unwrap();
        assert_eq!(found(&state, &[&old], None).await, []);
        assert_eq!(found(&state, &[&new], None).await, [run.spec.id]);

        let run = end(&state, &state.run(run.spec.id).await.unwrap().unwrap()).await;
        assert_eq!(state.mark_deleted(&run).await.unwrap(), Transition::Done);
        assert_eq!(found(&state, &[&new], None).await, []);
        assert_eq!(state.change_labels(&run, &labels(None, &[&new], None)).await.unwrap(), Transition::Raced);
        state.purge_run(run.spec.id).await.unwrap();
        assert_eq!(state.change_labels(&run, &labels(None, &[&new], None)).await.unwrap(), Transition::Raced);
        assert_eq!(found(&state, &[&new], None).await, []);
    });
}
