//! Records of real work that operators see.

use bench_domain::{RunStatus, Timestamp};
use bench_state::ops::{TokenSum, latest_heartbeats};
use bench_tests::model_server::Reply;

use crate::support::world::Shutdown;
use crate::support::{Expected, Order, Settings, World, check, data, runtime};

const ITEMS: u64 = 30;

/// The token sums match the answers, even if the end of the stack interrupts the gathering.
#[test]
fn tokens_and_workers_are_seen() {
    runtime().block_on(async {
        let world =
            World::start(Settings::default(), |request| Reply::Text(data::mostly_right_answer(request)))
                .await;
        let run = Order::mmlu_pro(usize::try_from(ITEMS).unwrap()).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        let expected = samples["mmlu_pro"].iter().fold(TokenSum::default(), |sum, sample| {
            let usage = sample.finished.as_ref().unwrap().usage.unwrap();
            sum.plus(TokenSum { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens })
        });
        assert!(expected.input_tokens >= ITEMS, "{expected:?}");
        let world = world.reopen(Shutdown::Stopped).await;
        let (state, now) = (&world.stack.state, bench_clock::now());
        let hours = state.tokens_by_hour(now, 24).await.unwrap();
        let sum = hours.into_iter().fold(TokenSum::default(), |sum, (_, tokens)| sum.plus(tokens));
        assert_eq!(sum, expected);
        let mut seen = Vec::new();
        // The run may have continued across a full hour.
        for at in [now.as_micros() - 3_600_000_000, now.as_micros()] {
            let hour = Timestamp::from_micros(at.div_euclid(3_600_000_000) * 3_600_000_000);
            seen.extend(state.heartbeats_from(hour).await.unwrap());
        }
        let since = Timestamp::from_micros(0);
        assert_eq!(latest_heartbeats(&seen, since, state.epoch()), [], "the worker's process has ended");
        let workers = latest_heartbeats(&seen, since, state.epoch() - 1);
        assert_eq!(workers.len(), 1, "{seen:?}");
        assert!(workers[0].running_runs == 1 && workers[0].hostname.is_some(), "{workers:?}");
        let minutes = seen.len();
        assert!(minutes <= 3, "{minutes} heartbeats are more than one a minute");
    });
}
