//! Metrics in CloudWatch's embedded metric format.
//!
//! At its end, each invocation prints its counts as one line. CloudWatch makes metrics from it without any call or
//! wait. Without `BENCH_METRICS_NAMESPACE` (as on the embedded stack), counts are dropped and not printed. Each metric
//! has one dimension, `Function`, with the function's name, except [`FAILURES`]: its dimension is `Stack`, with the
//! namespace, so that one alarm watches all functions.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};

use bench_domain::Timestamp;
use serde_json::{Map, Value, json};

/// Samples that ended with a graded answer.
pub const SAMPLES_GRADED: &str = "SamplesGraded";
/// Samples that ended with an error.
pub const SAMPLES_FAILED: &str = "SamplesFailed";
/// Answers that were handed over to a judge.
pub const SAMPLES_HANDED_OVER: &str = "SamplesHandedOver";
/// Replies of judges with a verdict.
pub const SAMPLES_JUDGED: &str = "SamplesJudged";
/// Replies of judges without a verdict.
pub const REPLIES_WITHOUT_VERDICT: &str = "RepliesWithoutVerdict";
/// Samples that were put off because of a busy provider or a failed attempt.
pub const SAMPLES_WAITED: &str = "SamplesWaited";
/// Jobs in sandboxes that ended.
pub const JOBS_DONE: &str = "JobsDone";
/// Sandboxes that were lost during a job.
pub const SANDBOXES_LOST: &str = "SandboxesLost";
/// Messages whose handling failed and that SQS delivers again.
pub const MESSAGES_FAILED: &str = "MessagesFailed";
/// Messages that arrived in a dead-letter queue.
pub const DEAD_LETTERS: &str = "DeadLetters";
/// Dead letters that can't be parsed.
pub const UNREADABLE_MESSAGES: &str = "UnreadableMessages";
/// Runs that ended with a score.
pub const RUNS_SUCCEEDED: &str = "RunsSucceeded";
/// Runs that ended as failed.
pub const RUNS_FAILED: &str = "RunsFailed";
/// Cost of the answers of ended runs, at the price known when they were ordered, in US dollars.
pub const MODEL_SPEND_USD: &str = "ModelSpendUsd";
/// Requests with a wrong admin secret.
pub const WRONG_ADMIN_SECRETS: &str = "WrongAdminSecrets";
/// Requests answered with 500 or more, and scheduled tasks that failed.
pub const HANDLER_ERRORS: &str = "HandlerErrors";
/// Failures of all functions together: failed messages and tasks, archives that can't be signed, and requests answered
/// with 500 or more. A 501 or 503 isn't one, since it refuses a request as intended, such as during maintenance.
pub const FAILURES: &str = "Failures";

/// Maximum number of metrics per line in CloudWatch.
const METRICS_PER_LINE_MAX: usize = 100;
/// Maximum number of characters of a namespace and of a dimension's value in CloudWatch.
const NAME_CHARS_MAX: usize = 255;
const FUNCTION: &str = "Function";
const STACK: &str = "Stack";

static COLLECTOR: OnceLock<Collector> = OnceLock::new();

/// Starts to collect metrics for a function in a namespace. Counts before that are dropped.
pub fn start(namespace: &str, function: &str) {
    // A second start has no effect, since a process has one function.
    let _ = COLLECTOR.set(Collector::new(namespace.trim(), function));
}

/// Adds a value to a metric. Ignores values that aren't finite numbers.
pub fn count(name: &'static str, value: f64) {
    if let Some(collector) = COLLECTOR.get() {
        collector.add(name, value);
    }
}

/// Counts a failure under its own name and in [`FAILURES`].
pub fn count_failure(name: &'static str) {
    count(name, 1.0);
    count(FAILURES, 1.0);
}

/// Returns the sum of a metric since metrics were printed last. Tests read it.
pub fn pending(name: &str) -> f64 {
    COLLECTOR.get().map_or(0.0, |collector| collector.pending(name))
}

/// Prints the metrics when it goes out of scope, also after a panic of the handler.
#[derive(Debug)]
pub struct PrintAtEnd;

impl Drop for PrintAtEnd {
    fn drop(&mut self) {
        let Some(collector) = COLLECTOR.get() else { return };
        for mut line in collector.take(bench_clock::now()) {
            line.push('\n');
            // Written at once, because CloudWatch ignores a metric line that a log line interrupts. A failure can't be
            // reported anywhere.
            let _ = std::io::stdout().lock().write_all(line.as_bytes());
        }
    }
}

/// Sums of an invocation.
#[derive(Debug)]
struct Collector {
    namespace: String,
    function: String,
    sums: Mutex<BTreeMap<&'static str, f64>>,
}

impl Collector {
    fn new(namespace: &str, function: &str) -> Self {
        let cut = |text: &str| text.chars().take(NAME_CHARS_MAX).collect();
        Self { namespace: cut(namespace), function: cut(function), sums: Mutex::default() }
    }

    fn add(&self, name: &'static str, value: f64) {
        if value.is_finite() {
            *self.sums.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += value;
        }
    }

    fn pending(&self, name: &str) -> f64 {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied().unwrap_or_default()
    }

    /// Returns lines with the counts since the last call, usually one or none.
    fn take(&self, now: Timestamp) -> Vec<String> {
        let sums = std::mem::take(&mut *self.sums.lock().unwrap_or_else(PoisonError::into_inner));
        let sums: Vec<_> = sums.into_iter().collect();
        sums.chunks(METRICS_PER_LINE_MAX).map(|sums| self.line(sums, now)).collect()
    }

    fn line(&self, sums: &[(&'static str, f64)], now: Timestamp) -> String {
        let directive = |dimension: &str, of_stack: bool| {
            let of_it = sums.iter().filter(|(name, _)| (*name == FAILURES) == of_stack);
            let metrics: Vec<Value> =
                of_it.map(|(name, _)| json!({ "Name": name, "Unit": unit(name) })).collect();
            let whole =
                json!({ "Namespace": self.namespace, "Dimensions": [[dimension]], "Metrics": metrics });
            (!metrics.is_empty()).then_some(whole)
        };
        let directives = [directive(FUNCTION, false), directive(STACK, true)];
        let directives: Vec<Value> = directives.into_iter().flatten().collect();
        let mut line = Map::new();
        line.insert(
            "_aws".to_owned(),
            json!({ "Timestamp": now.as_micros() / 1_000, "CloudWatchMetrics": directives }),
        );
        line.insert(FUNCTION.to_owned(), self.function.clone().into());
        line.insert(STACK.to_owned(), self.namespace.clone().into());
        line.extend(sums.iter().map(|(name, sum)| ((*name).to_owned(), json!(sum))));
        Value::Object(line).to_string()
    }
}

/// Returns the unit of a metric. CloudWatch has no unit for money.
fn unit(name: &str) -> &'static str {
    if name == MODEL_SPEND_USD { "None" } else { "Count" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector() -> Collector {
        Collector::new("bench-dev", "bench-dev-worker")
    }

    /// Checks a line against "Specification: Embedded metric format".
    fn check(line: &str) -> Value {
        assert!(!line.contains('\n'));
        let root: Value = serde_json::from_str(line).unwrap();
        let meta = &root["_aws"];
        assert!(meta["Timestamp"].as_u64().is_some(), "milliseconds since 1970, a whole number");
        let directives = meta["CloudWatchMetrics"].as_array().unwrap();
        for directive in directives {
            let namespace = directive["Namespace"].as_str().unwrap();
            assert!((1..=1024).contains(&namespace.len()));
            for set in directive["Dimensions"].as_array().unwrap() {
                let set = set.as_array().unwrap();
                assert!(set.len() <= 30);
                for name in set {
                    let value = root[name.as_str().unwrap()].as_str().expect("a dimension's value is a text");
                    assert!((1..=1024).contains(&value.len()));
                }
            }
            let metrics = directive["Metrics"].as_array().unwrap();
            assert!((1..=100).contains(&metrics.len()));
            for metric in metrics {
                assert!(root[metric["Name"].as_str().unwrap()].is_number(), "a metric's value is a number");
                assert!(["Count", "None"].contains(&metric["Unit"].as_str().unwrap()));
            }
        }
        root
    }

    #[test]
    fn an_invocation_is_one_line_as_specified() {
        let collector = collector();
        collector.add(SAMPLES_GRADED, 1.0);
        collector.add(MODEL_SPEND_USD, 0.25);
        collector.add(SAMPLES_GRADED, 2.0);
        let lines = collector.take(Timestamp::from_micros(1_767_323_400_123_456));
        assert_eq!(lines.len(), 1);
        let line = check(&lines[0]);
        assert_eq!(line["_aws"]["Timestamp"], 1_767_323_400_123_u64);
        assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Namespace"], "bench-dev");
        assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["Function"]]));
        assert_eq!(
            line["_aws"]["CloudWatchMetrics"][0]["Metrics"],
            json!([{"Name": "ModelSpendUsd", "Unit": "None"}, {"Name": "SamplesGraded", "Unit": "Count"}])
        );
        assert_eq!(line["Function"], "bench-dev-worker");
        assert_eq!((line["SamplesGraded"].as_f64(), line["ModelSpendUsd"].as_f64()), (Some(3.0), Some(0.25)));
        assert!(collector.take(bench_clock::now()).is_empty(), "printed once");
    }

    /// Alarms can't sum over the values of a dimension.
    #[test]
    fn failures_of_all_functions_are_one_metric() {
        let collector = collector();
        collector.add(MESSAGES_FAILED, 2.0);
        collector.add(FAILURES, 2.0);
        let line = check(&collector.take(bench_clock::now())[0]);
        let of = |dimension: &str, metric: &str| {
            json!({
                "Namespace": "bench-dev", "Dimensions": [[dimension]], "Metrics": [{"Name": metric, "Unit": "Count"}],
            })
        };
        let expected = json!([of("Function", "MessagesFailed"), of("Stack", "Failures")]);
        assert_eq!(line["_aws"]["CloudWatchMetrics"], expected);
        assert_eq!((line["Stack"].as_str(), line["Failures"].as_f64()), (Some("bench-dev"), Some(2.0)));
        collector.add(FAILURES, 1.0);
        let line = check(&collector.take(bench_clock::now())[0]);
        assert_eq!(line["_aws"]["CloudWatchMetrics"], json!([of("Stack", "Failures")]));
    }

    #[test]
    fn no_number_is_left_out() {
        let collector = collector();
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            collector.add(SAMPLES_GRADED, value);
        }
        assert!(collector.take(bench_clock::now()).is_empty());
    }

    #[test]
    fn many_metrics_are_several_lines_and_none_is_lost() {
        let collector = collector();
        for n in 0..250 {
            collector.add(Box::leak(format!("M{n}").into_boxed_str()), f64::from(n));
        }
        let lines = collector.take(bench_clock::now());
        assert_eq!(lines.len(), 3);
        let found: usize = lines.iter().map(|line| check(line).as_object().unwrap().len() - 3).sum();
        assert_eq!(found, 250);
    }

    #[test]
    fn threads_count_together() {
        let collector = collector();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1_000).for_each(|_| collector.add(MESSAGES_FAILED, 1.0)));
            }
        });
        let line = check(&collector.take(bench_clock::now())[0]);
        assert_eq!(line["MessagesFailed"].as_f64(), Some(8_000.0));
    }

    #[test]
    fn names_are_cut_to_what_cloudwatch_takes() {
        let long = "x".repeat(2_000);
        let collector = Collector::new(&long, &long);
        collector.add(SAMPLES_GRADED, 1.0);
        check(&collector.take(bench_clock::now())[0]);
    }
}
