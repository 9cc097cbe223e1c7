//! Custom agents: their files come from the store, and are read again by content hash.

use bench_domain::run::Owner;
use bench_domain::{Code, Outcome};
use bench_tasks::UploadedArchive;
use bench_tests::scripted_host::task;

use super::{host, only_sample, result, settings, works};
use crate::support::{Expected, ManualDriver, Order, World, check, runtime};

const CONFIG: &str = "name = \"tiny\"\nversion = \"1.0\"\nrun = \"touch done\"\ninstall = \"install.sh\"\n";

fn archive(install: &str) -> Vec<u8> {
    task::pack(&[("agent.toml", CONFIG.to_owned()), ("install.sh", install.to_owned())]).unwrap()
}

/// Uploads an agent and orders an episode of it. Returns the order and the key of the agent's archive.
pub(super) async fn order(world: &World) -> (Order, String) {
    let archive = UploadedArchive::from_bytes(&archive("true\n")).unwrap();
    let agent = world.stack.api.agents.add(archive, Owner::Local).await.unwrap();
    let hash = agent.content_hash;
    (Order::tasks(1, "custom", &[("content_hash", &hash)]), bench_blobs::agent_key(&hash))
}

#[test]
fn a_custom_agent_works_without_a_model() {
    runtime().block_on(async {
        let world = World::open(settings(), works).await;
        let run = order(&world).await.0.place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!((host(&world).problem(), host(&world).open_sandboxes()), (None, 0));
        assert_eq!(world.model.total(), 0);
        let (sample, body) = only_sample(&world, run).await;
        let verdict = sample.finished.unwrap().verdict;
        assert_eq!(verdict.outcome, Outcome::Correct, "{verdict:?}");
        assert_eq!(verdict.detail["agent"], "custom/tiny@1.0");
        assert_eq!(body.episode.unwrap().agent, "custom/tiny@1.0");
    });
}

#[test]
fn an_agent_without_its_files_does_not_run() {
    runtime().block_on(async {
        for (stored, code, sentence) in [
            (None, Code::StoredDataMissing, "the agent was removed; upload it again"),
            (
                Some(archive("false\n")),
                Code::InvalidItem,
                "the agent's archive has other files than the order",
            ),
            (Some(b"no archive".to_vec()), Code::InvalidItem, "not a ZIP archive"),
        ] {
            let world = World::open(settings(), works).await;
            let (order, key) = order(&world).await;
            let run = order.place(&world).await;
            match stored {
                Some(archive) => {
                    world.stack.blobs.put(&key, archive.into(), "application/zip").await.unwrap()
                }
                None => world.stack.blobs.delete(&key).await.unwrap(),
            }
            ManualDriver::new(&world, 0).drain().await;
            check(&world, run, Expected::FAILED).await;
            let verdict = result(&world, run).await.verdict;
            assert_eq!((verdict.outcome, verdict.code), (Outcome::InfrastructureError, Some(code)));
            assert!(verdict.reason.contains(sentence), "{verdict:?}");
            assert_eq!((host(&world).created(), host(&world).problem()), (0, None), "{sentence}");
        }
    });
}
