//! The page, the aim, and the measured runs behind them.

use bench_cost::{AIM_SAMPLES, AIM_USD, MEASURED, Usage, Workload, page, predict, read};

#[test]
fn the_page_is_what_the_program_says() {
    let written = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cost.md");
    let written = std::fs::read_to_string(written).unwrap();
    let now = page(&read(MEASURED).unwrap());
    assert!(written == now, "docs/cost.md is not what `make cost` writes");
}

#[test]
fn the_aim_is_met() {
    let counters = predict(&read(MEASURED).unwrap(), &Workload::with_samples(AIM_SAMPLES));
    assert!(counters.usd() <= AIM_USD, "{}", counters.usd());
    // Lower bounds on what a run must use, in case the model forgets something.
    for (usage, at_least) in [
        // 30 s at 256 MB.
        (Usage::LambdaGbSecondsArm64, 482.0 * 7.5),
        (Usage::LambdaRequests, 482.0),
        // Each request sends, receives or deletes ten messages.
        (Usage::SqsRequests, 3.0 * 1_203.0),
        // Planned once, claimed once, committed with its shard's counter in a transaction.
        (Usage::DynamoDbWriteUnits, 6.0 * AIM_SAMPLES),
        (Usage::S3Writes, AIM_SAMPLES),
        (Usage::S3Reads, AIM_SAMPLES),
        (Usage::KmsRequests, 2.0),
        (Usage::ApiRequests, 2.0),
    ] {
        assert!(counters.units(usage) >= at_least, "{usage:?}: {}", counters.units(usage));
    }
}

#[test]
fn more_samples_cost_more() {
    let measured = read(MEASURED).unwrap();
    let mut last = 0.0;
    for samples in [1.0, 10.0, 40.0, 100.0, 1_000.0, 12_032.0, 100_000.0] {
        let usd = predict(&measured, &Workload::with_samples(samples)).usd();
        assert!(usd > last, "{samples} samples: {usd} after {last}");
        last = usd;
    }
}
