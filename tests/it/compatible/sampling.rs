//! Samples of a dataset: their sizes and the effect of the seed, as a server reports them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bench_datasets::NoProgress;
use bench_domain::Subset;
use bench_domain::run::DatasetChoice;
use bench_runs::{Order, Orderer, TrustedSettings};

use super::server::{Reach, Server};
use crate::support::{data, runtime};

const BENCHMARK: &str = "mmlu_pro";

/// Runs a share of a dataset, and returns the ids of the selected items.
async fn sample(server: &Server, dataset: &DatasetChoice, pct: u32, seed: &str) -> BTreeSet<String> {
    // Files come from the machine's user, never from a request.
    let order = Order {
        model: "oracle".to_owned(),
        benchmarks: Some(vec![BENCHMARK.to_owned()]),
        subset: Subset { pct, seed: Some(seed.to_owned()), ..Subset::default() },
        trusted: TrustedSettings {
            datasets: BTreeMap::from([(BENCHMARK.parse().unwrap(), dataset.clone())]),
            ..TrustedSettings::default()
        },
        ..Order::default()
    };
    let orders = Arc::clone(&server.stack.orders);
    let id = Box::pin(orders.create(order, Orderer::local())).await.unwrap().run.run.spec.id;
    let run = loop {
        let run = server.get(&format!("/api/runs/{id}")).await.json();
        if run["status"] == "succeeded" {
            break run;
        }
        assert!(["queued", "running"].contains(&run["status"].as_str().unwrap()), "{run}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let details = server.get(&format!("/api/runs/{id}/benchmarks/{BENCHMARK}?limit=200")).await.json();
    let items = details["items"]["items"].as_array().unwrap();
    assert_eq!(run["benchmarks"][0]["sampled_items"], items.len());
    let ids: BTreeSet<String> =
        items.iter().map(|item| item["item_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), items.len(), "each item once");
    ids
}

async fn dataset(server: &Server, items: usize) -> DatasetChoice {
    let path = data::mmlu_pro(server.files(), items);
    let benchmark = bench_benchmarks::find(BENCHMARK).unwrap();
    let taken = server.stack.library.import_local(benchmark, &path, &NoProgress).await.unwrap();
    DatasetChoice::Local { revision: taken.used.revision }
}

#[test]
fn samples_have_their_size_and_depend_on_the_seed_alone() {
    runtime().block_on(async {
        let server = Server::start(Reach::Machine).await;
        let hundred = dataset(&server, 100).await;
        for pct in [1, 5, 10, 25, 50, 100] {
            assert_eq!(sample(&server, &hundred, pct, "seed").await.len(), pct as usize, "{pct}%");
        }
        let three = dataset(&server, 3).await;
        for pct in [50, 10] {
            assert_eq!(sample(&server, &three, pct, "seed").await.len(), 1, "{pct}% of three");
        }
        let first = sample(&server, &hundred, 10, "one").await;
        assert_eq!(sample(&server, &hundred, 10, "one").await, first);
        assert_ne!(sample(&server, &hundred, 10, "two").await, first);
        server.stop().await;
    });
}
