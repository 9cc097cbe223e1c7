//! Runs that are canceled, deleted or requeued in the middle of an episode.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bench_domain::{RunId, RunStatus};
use bench_tests::model_server::{ModelRequest, Reply};
use tokio::sync::watch;

use super::{CALLS, acts_by_sandbox, expected_acts, host, is_idle, settings, turns_before, works};
use crate::support::{Expected, ManualDriver, Order, World, check, runtime};

/// A world whose model holds the second reply of the first episode back.
pub(super) struct Held {
    pub(super) world: World,
    pub(super) run: RunId,
    is_asked: Arc<AtomicBool>,
    pub(super) release: watch::Sender<bool>,
}

impl Held {
    pub(super) async fn new(agent: &str) -> Self {
        let (release, released) = watch::channel(false);
        let is_asked = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_asked);
        let rule = move |request: &ModelRequest| match works(request) {
            Reply::Text(text) if turns_before(request) == 1 && !asked.swap(true, Ordering::SeqCst) => {
                Reply::once(released.clone(), text)
            }
            reply => reply,
        };
        let world = World::open(settings(), rule).await;
        let run = Order::tasks(1, agent, &[]).place(&world).await;
        Self { world, run, is_asked, release }
    }

    /// Processes messages, and acts while the second reply is on its way.
    pub(super) async fn meanwhile(&self, act: impl AsyncFnOnce(&Self)) {
        let driver = ManualDriver::new(&self.world, 0);
        let acting = async {
            while !self.is_asked.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(host(&self.world).open_sandboxes(), 1, "the agent is at work");
            act(self).await;
        };
        tokio::join!(driver.drain(), acting);
        while !is_idle(&self.world).await {
            driver.drain().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!((host(&self.world).problem(), host(&self.world).open_sandboxes()), (None, 0));
    }
}

#[test]
fn a_canceled_episode_leaves_no_sandbox_and_can_be_requeued() {
    runtime().block_on(async {
        for agent in ["terminus-2", "bash"] {
            let held = Held::new(agent).await;
            held.meanwhile(async |held| held.world.cancel(held.run).await).await;
            let status = held.world.stored_run(held.run).await.run.state.status();
            assert_eq!(status, RunStatus::Canceled);
            assert_eq!(held.world.model.total(), 2, "a canceled run asks no more");

            held.world.requeue(held.run, None).await;
            ManualDriver::new(&held.world, 1).drain().await;
            check(&held.world, held.run, Expected::SUCCEEDED.generation(2)).await;
            // The episode starts over in a sandbox of its own.
            assert_eq!(acts_by_sandbox(&held.world).last(), Some(&expected_acts(agent)));
            // The held request is repeated before the end of the first sandbox is noticed.
            assert_eq!(held.world.model.total(), 3 + CALLS);
            assert_eq!((host(&held.world).problem(), host(&held.world).open_sandboxes()), (None, 0));
        }
    });
}

#[test]
fn a_requeue_while_the_canceled_episode_still_works_leaves_one_result() {
    runtime().block_on(async {
        let held = Held::new("bash").await;
        held.meanwhile(async |held| {
            held.world.cancel(held.run).await;
            held.world.requeue(held.run, None).await;
            held.release.send_replace(true);
        })
        .await;
        check(&held.world, held.run, Expected::SUCCEEDED.generation(2)).await;
        assert_eq!(acts_by_sandbox(&held.world).last(), Some(&expected_acts("bash")));
    });
}

#[test]
fn a_deleted_run_leaves_no_sandbox() {
    runtime().block_on(async {
        let held = Held::new("bash").await;
        held.meanwhile(async |held| {
            held.world.cancel(held.run).await;
            held.world.delete(held.run).await;
        })
        .await;
        assert!(held.world.stack.state.run(held.run).await.unwrap().is_none());
    });
}

/// Its sandbox doesn't wait for the turn's own message, which may be hours away.
#[test]
fn an_episode_that_waits_for_its_provider_ends_with_its_run() {
    runtime().block_on(async {
        for is_deleted in [false, true] {
            let rule = |request: &ModelRequest| match turns_before(request) {
                1 => Reply::Status(503, "{}".to_owned(), vec![("retry-after", "3600".to_owned())]),
                _ => works(request),
            };
            let world = World::open(settings(), rule).await;
            let run = Order::tasks(1, "bash", &[]).place(&world).await;
            let driver = ManualDriver::new(&world, 0);
            driver.drain().await;
            assert_eq!(host(&world).open_sandboxes(), 1, "the episode waits");
            world.cancel(run).await;
            if is_deleted {
                world.delete(run).await;
            }
            world
                .wait_until("the end of the sandbox", || async {
                    driver.drain().await;
                    let stored = world.stack.state.any_run_with_benchmarks(run).await.unwrap();
                    host(&world).open_sandboxes() == 0 && stored.is_none() == is_deleted
                })
                .await;
            assert_eq!(world.stack.state.sandboxes_of(run).await.unwrap(), []);
        }
    });
}
