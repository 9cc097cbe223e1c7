//! Terminal tasks: ids, runs of each round, and references to archives.

use bench_domain::run::Owner;
use bench_domain::{RunId, Timestamp};
use bench_state::{NewTask, State, TaskOrder, TaskRecord, TaskRun, TaskRunWrite};

use crate::table::table;

fn facts(hash: &str) -> NewTask {
    NewTask {
        name: "n".into(),
        task_name: "n".into(),
        file_name: "../../evil.zip".into(),
        content_hash: hash.into(),
        archive_bytes: 7,
        model: "openai/gpt-5".into(),
        agent: "oracle".into(),
        harness: "harbor".into(),
        num_runs: 2,
        unlisted: false,
        owner: Owner::Local,
        created_at: Timestamp::from_micros(5),
    }
}

async fn add(state: &State, hash: &str) -> TaskRecord {
    state.add_task(&facts(hash)).await.unwrap().unwrap()
}

fn run(first_id: u64, first_number: u32) -> TaskRun {
    TaskRun {
        run: RunId::random(),
        first_id,
        first_number,
        samples: 2,
        ordered_at: Timestamp::from_micros(9),
        request_key: Some("k".into()),
    }
}

#[test]
fn tasks_are_counted_and_listed_newest_first() {
    table().block_on(async {
        let state = table().state(1);
        let (one, two) = (add(&state, "count-1").await, add(&state, "count-2").await);
        assert!(one.id >= 1 && two.id > one.id);
        assert_eq!(state.task(one.id).await.unwrap(), Some(one.clone()));
        let ids: Vec<u64> = state.list_tasks().await.unwrap().iter().map(|task| task.id).collect();
        assert!(ids.is_sorted_by(|a, b| a > b) && ids.contains(&one.id) && ids.contains(&two.id));
        let first = state.take_episode_ids(10).await.unwrap();
        assert!(state.take_episode_ids(1).await.unwrap() >= first + 10);
        state.hide_task(one.id).await.unwrap();
        assert!(state.list_tasks().await.unwrap().iter().all(|task| task.id != one.id));
        assert!(state.task(one.id).await.unwrap().unwrap().deleted);
    });
}

#[test]
fn a_number_of_a_round_belongs_to_one_run() {
    table().block_on(async {
        let state = table().state(1);
        let task = add(&state, "rounds").await;
        let (first, other, next) = (run(1, 1), run(3, 1), run(5, 3));
        assert_eq!(state.add_task_run(&task, &first).await.unwrap(), TaskRunWrite::Done);
        // A repeated write of the same run is the same write.
        assert_eq!(state.add_task_run(&task, &first).await.unwrap(), TaskRunWrite::Done);
        assert_eq!(state.add_task_run(&task, &other).await.unwrap(), TaskRunWrite::Taken);
        let same_run = TaskRun { first_id: 9, ..first.clone() };
        assert_eq!(state.add_task_run(&task, &same_run).await.unwrap(), TaskRunWrite::Taken);
        assert_eq!(first.next_number(), 3);
        assert_eq!(state.add_task_run(&task, &next).await.unwrap(), TaskRunWrite::Done);
        assert_eq!(state.task_runs(&task).await.unwrap(), [first.clone(), next.clone()]);

        assert!(state.next_task_round(&task).await.unwrap());
        assert!(!state.next_task_round(&task).await.unwrap());
        assert_eq!(state.add_task_run(&task, &run(7, 5)).await.unwrap(), TaskRunWrite::Gone);
        let reset = state.task(task.id).await.unwrap().unwrap();
        assert_eq!((reset.round, state.task_runs(&reset).await.unwrap()), (2, vec![]));
        assert_eq!(state.all_task_runs(task.id).await.unwrap(), [first.run, next.run]);

        let order = RunId::random();
        state.note_task_order(&[task.id, 1_000_000], order).await.unwrap();
        assert_eq!(state.task_orders(task.id).await.unwrap(), [TaskOrder { run: order, tasks: 2 }]);
        let all = state.runs_with_task(task.id).await.unwrap();
        let alone = |run| TaskOrder { run, tasks: 1 };
        assert_eq!(all, [alone(first.run), alone(next.run), TaskOrder { run: order, tasks: 2 }]);

        state.hide_task(task.id).await.unwrap();
        assert_eq!(state.add_task_run(&reset, &run(7, 1)).await.unwrap(), TaskRunWrite::Gone);
        state.purge_task(&reset).await.unwrap();
        state.purge_task(&reset).await.unwrap();
        assert_eq!(state.task(task.id).await.unwrap(), None);
        assert_eq!(state.all_task_runs(task.id).await.unwrap(), []);
        // Hiding a task that is gone makes no record.
        state.hide_task(task.id).await.unwrap();
        assert_eq!(state.task(task.id).await.unwrap(), None);
    });
}

#[test]
fn an_archive_is_removed_when_no_task_refers_to_it() {
    table().block_on(async {
        let state = table().state(1);
        let (one, two) = (add(&state, "shared").await, add(&state, "shared").await);
        state.purge_task(&one).await.unwrap();
        // A repeated purge releases nothing twice.
        state.purge_task(&one).await.unwrap();
        assert_eq!(state.begin_archive_removal("shared").await.unwrap(), None);
        state.purge_task(&two).await.unwrap();
        let removal = state.begin_archive_removal("shared").await.unwrap().unwrap();
        assert_eq!(state.add_task(&facts("shared")).await.unwrap(), None, "it is being removed");
        state.end_archive_removal(removal).await.unwrap();
        let again = add(&state, "shared").await;
        assert!(again.id > two.id);
        assert_eq!(state.begin_archive_removal("shared").await.unwrap(), None);
        assert_eq!(state.begin_archive_removal("never").await.unwrap(), None);
    });
}
