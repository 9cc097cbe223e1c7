//! The cost model's measured numbers match those of the current program.

use std::time::Instant;

use bench_cost::{MEASURED, MeasuredRun, read, scale, sum};
use bench_tests::measure::measure;

use crate::support::runtime;

/// Number of samples of the run measured here. Differs from both sizes that the model is based on.
const SAMPLES: usize = 150;
/// Allowed difference between a measured and a predicted number: a share, a number of calls, and a number of calls
/// for each second of the run, since periodic calls depend on the load of the machine.
const SHARE: f64 = 0.05;
const CALLS: f64 = 24.0;
const CALLS_PER_S: f64 = 2.0;

#[test]
fn a_measured_run_agrees_with_the_model() {
    runtime().block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let since = Instant::now();
        let found = measure(SAMPLES, dir.path()).await.unwrap();
        let more = CALLS + CALLS_PER_S * since.elapsed().as_secs_f64();
        let runs = read(MEASURED).unwrap();
        let [small, .., large] = runs.as_slice() else { panic!("two measured runs are needed") };
        let expected = scale(small, large, SAMPLES as f64);
        let of = |run: &MeasuredRun, prefix: &str| {
            let all = [&run.run, &run.poll, &run.export];
            all.map(|tallies| sum(tallies, |action| action.starts_with(prefix)))
                .into_iter()
                .fold(bench_cost::Tally::default(), bench_cost::Tally::plus)
        };
        for prefix in ["DynamoDB.", "SQS.", "S3.Put", "S3.Get", "S3.Head", "KMS."] {
            let (found, expected) = (of(&found, prefix), of(&expected, prefix));
            for (what, found, expected) in [
                ("calls", found.calls, expected.calls),
                ("read units", found.read_units, expected.read_units),
                ("write units", found.write_units, expected.write_units),
                ("requests of 64 KB", found.chunks, expected.chunks),
            ] {
                let near =
                    found >= expected * (1.0 - SHARE) - CALLS && found <= expected * (1.0 + SHARE) + more;
                assert!(
                    near,
                    "{prefix} {what}: {found} instead of {expected}; run bench-measure and make cost"
                );
            }
        }
        let bytes = (of(&found, "S3.Put").request_bytes, of(&expected, "S3.Put").request_bytes);
        assert!((bytes.0 - bytes.1).abs() <= bytes.1 * SHARE, "bytes of bodies: {bytes:?}");
    });
}
