//! What a run of any size counts: what was measured, scaled, and what depends on time, by formula.
//!
//! Measured, per function, from runs on the embedded services: every call with its bytes and DynamoDB units. Not
//! measurable there, and so assumed here, each with its reason: how long invocations last, what Lambda does on its
//! own (receiving and deleting messages), and what happens once in so many seconds while answers are awaited.

use crate::counters::Counters;
use crate::measured::{MeasuredRun, Tallies, scale, sum};
use crate::prices::Of;

/// Bytes of a GB as AWS counts memory, storage and transfer.
const GB: f64 = 1_073_741_824.0;
/// SQS and Lambda move ten messages at a time.
const BATCH_MAX: f64 = 10.0;
/// Lines of log that a function writes by itself for an invocation (`START`, `END`, `REPORT`), in bytes.
const LOG_BYTES_PER_INVOCATION: f64 = 350.0;
/// One line of metrics, in bytes.
const LOG_BYTES_PER_METRICS: f64 = 400.0;
/// Seconds between two looks of an invocation at whether its run was canceled (`shared/pipeline`).
const CANCEL_LOOK_S: f64 = 2.0;
/// Samples of a shard (`bench_domain::sample`), for the counters that a progress event reads.
const SAMPLES_PER_SHARD: f64 = 200.0;
/// A progress event that is told: one record written, and one page read for the number of the last one. The try
/// before it is counted by itself.
const PROGRESS_WRITE_UNITS: f64 = 1.0;
const PROGRESS_READ_UNITS: f64 = 1.0;

/// A processor that functions run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    /// Graviton: the template's default.
    Arm64,
    /// x86-64.
    X86,
}

/// What is assumed about a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// Samples of the run.
    pub samples: f64,
    /// How long the model takes for an answer, in seconds, on average.
    pub answer_s: f64,
    /// The slowest answer of a batch, in average answers: the invocation lasts as long.
    pub slowest: f64,
    /// Messages of one worker invocation.
    pub batch: f64,
    /// Memory of the worker, in MB.
    pub memory_mb: f64,
    /// Samples being answered at once.
    pub concurrency: f64,
    /// Processor.
    pub arch: Arch,
    /// Looks at the run's status through the API.
    pub looks: f64,
    /// Signed archives that are built and fetched.
    pub exports: f64,
    /// How long bodies and exports are kept and counted, in months.
    pub kept_months: f64,
}

impl Workload {
    /// The yardstick: 30 s an answer, ten at a time, 512 MB, arm64, 750 at once, a look every five
    /// seconds, one archive, kept for a month.
    pub fn of(samples: f64) -> Self {
        let workload = Self {
            samples,
            answer_s: 30.0,
            slowest: 1.0,
            batch: 10.0,
            memory_mb: 512.0,
            concurrency: 750.0,
            arch: Arch::Arm64,
            looks: 0.0,
            exports: 1.0,
            kept_months: 1.0,
        };
        workload.looking_every(5.0)
    }

    /// Somebody looks every so many seconds until the run ends.
    #[must_use]
    pub fn looking_every(self, seconds: f64) -> Self {
        Self { looks: (self.duration_s() / seconds).ceil(), ..self }
    }

    /// How long the run lasts, in seconds: as many rounds as its samples need.
    pub fn duration_s(&self) -> f64 {
        let at_once = self.concurrency.min(self.samples).max(1.0);
        (self.samples / at_once).ceil() * self.invocation_s()
    }

    /// Worker invocations. A short run does not fill its batches: Lambda sends what there is.
    pub fn invocations(&self) -> f64 {
        (self.samples / self.batch).ceil()
    }

    fn environments(&self) -> f64 {
        (self.concurrency / self.batch).ceil().min(self.invocations())
    }

    fn invocation_s(&self) -> f64 {
        self.answer_s * self.slowest + Durations::WORKER_OWN_S
    }
}

/// How long invocations last, in seconds: assumed, generously; the calls behind them take 5 to 40 ms each.
struct Durations;

impl Durations {
    /// The worker's own part: claim, store, grade and commit, ten side by side.
    const WORKER_OWN_S: f64 = 0.4;
    /// Planner, for each sample and at least: 25 samples are one write, ten one message batch.
    const PLANNER_S_PER_SAMPLE: f64 = 0.003;
    const PLANNER_S: f64 = 2.0;
    /// Finisher, reading every sample once.
    const FINISHER_S_PER_SAMPLE: f64 = 0.001;
    const FINISHER_S: f64 = 1.0;
    /// A request to the API.
    const API_S: f64 = 0.05;
    /// An archive: every body is read from S3, several at once.
    const EXPORT_S_PER_SAMPLE: f64 = 0.006;
    const EXPORT_S: f64 = 1.0;
    /// The start of an environment, billed like the rest.
    const INIT_S: f64 = 0.2;
}

/// What a run counts.
pub fn run(measured: &[MeasuredRun], workload: &Workload) -> Counters {
    let [small, .., large] = measured else { return Counters::default() };
    let expected = scale(small, large, workload.samples);
    let mut counters = Counters::default();
    calls(&mut counters, &expected.run, 1.0);
    calls(&mut counters, &expected.look, workload.looks);
    calls(&mut counters, &expected.export, workload.exports);
    polling(&mut counters, workload);
    waiting(&mut counters, workload);
    compute(&mut counters, workload);
    storage(&mut counters, &expected, workload);
    // Answers of the API and archives; questions go to providers on the internet.
    let looked = sum(&expected.look, |action| action.starts_with("DynamoDB")).response_bytes;
    let archive = sum(&expected.export, |action| action == "S3.PutObject").request_bytes;
    let out = expected.question_bytes + looked * workload.looks + archive * workload.exports;
    counters.add(Of::TransferOutGb, out / GB);
    counters
}

/// Every call that was measured, in the units that are paid for.
fn calls(counters: &mut Counters, tallies: &Tallies, times: f64) {
    let all = sum(tallies, |_| true);
    counters.add(Of::DynamoDbReadUnits, all.read_units * times);
    counters.add(Of::DynamoDbWriteUnits, all.write_units * times);
    counters.add(Of::SqsRequests, all.chunks * times);
    let of = |is: &dyn Fn(&str) -> bool| sum(tallies, is).calls * times;
    counters.add(Of::S3Writes, of(&s3_write));
    counters.add(Of::S3Reads, of(&|action| action.starts_with("S3.") && !s3_write(action) && !free(action)));
    counters.add(Of::KmsRequests, of(&|action| action.starts_with("KMS.")));
    counters.add(Of::SnsRequests, of(&|action| action.starts_with("SNS.")));
    counters.add(Of::SecretRequests, of(&|action| action.starts_with("SecretsManager.")));
}

fn s3_write(action: &str) -> bool {
    let verb = action.strip_prefix("S3.").unwrap_or_default();
    let writes = ["Put", "Create", "Complete", "Upload", "Copy", "List", "Post"];
    writes.iter().any(|write| verb.starts_with(write))
}

/// S3 takes nothing for deleting.
fn free(action: &str) -> bool {
    action.starts_with("S3.Delete") || action.starts_with("S3.Abort")
}

/// What Lambda does for its mappings: one receive and one delete per batch, one of each for the plan and the end.
fn polling(counters: &mut Counters, workload: &Workload) {
    let batches = (workload.samples / workload.batch.min(BATCH_MAX)).ceil();
    counters.add(Of::SqsRequests, 2.0 * (batches + 2.0));
}

/// What happens once in so many seconds while answers are awaited.
fn waiting(counters: &mut Counters, workload: &Workload) {
    // Each invocation looks every two seconds whether its run is still open: one read of one unit.
    let looks = (workload.answer_s * workload.slowest / CANCEL_LOOK_S).floor();
    counters.add(Of::DynamoDbReadUnits, workload.invocations() * looks);
    // After a sample an environment tries to be the one that tells of progress, once a second at most; who is
    // not pays for the condition that failed. At most every sample tries.
    let duration = workload.duration_s();
    let tries = workload.samples.min(workload.environments() * duration);
    counters.add(Of::DynamoDbWriteUnits, tries);
    let told = duration.min(workload.samples);
    let shards = (workload.samples / SAMPLES_PER_SHARD).ceil();
    counters.add(Of::DynamoDbWriteUnits, told * PROGRESS_WRITE_UNITS);
    counters.add(Of::DynamoDbReadUnits, told * (shards + PROGRESS_READ_UNITS));
    // Each environment opens the caller's key once.
    counters.add(Of::KmsRequests, (workload.environments() - 1.0).max(0.0));
}

/// Invocations, memory held, logs.
fn compute(counters: &mut Counters, workload: &Workload) {
    let gb_seconds = match workload.arch {
        Arch::Arm64 => Of::LambdaGbSecondsArm64,
        Arch::X86 => Of::LambdaGbSecondsX86,
    };
    let (samples, memory_gb) = (workload.samples, workload.memory_mb / 1_024.0);
    let mut invoke = |times: f64, seconds: f64, starts: f64| {
        counters.add(Of::LambdaRequests, times);
        counters.add(gb_seconds, memory_gb * (times * seconds + starts * Durations::INIT_S));
        counters.add(Of::LogGb, times * (LOG_BYTES_PER_INVOCATION + LOG_BYTES_PER_METRICS) / GB);
    };
    invoke(workload.invocations(), workload.invocation_s(), workload.environments());
    invoke(1.0, (samples * Durations::PLANNER_S_PER_SAMPLE).max(Durations::PLANNER_S), 1.0);
    invoke(1.0, (samples * Durations::FINISHER_S_PER_SAMPLE).max(Durations::FINISHER_S), 1.0);
    invoke(1.0 + workload.looks, Durations::API_S, 1.0);
    let export = (samples * Durations::EXPORT_S_PER_SAMPLE).max(Durations::EXPORT_S);
    invoke(workload.exports, export, workload.exports.min(1.0));
    counters.add(Of::ApiRequests, 1.0 + workload.looks + workload.exports);
    // Each environment reads its secrets once.
    counters.add(Of::SecretRequests, workload.environments() + 7.0);
}

/// Bodies, archives and records, as long as they are kept.
fn storage(counters: &mut Counters, expected: &MeasuredRun, workload: &Workload) {
    let put = |tallies: &Tallies| sum(tallies, |action| action == "S3.PutObject").request_bytes;
    let objects = put(&expected.run) + put(&expected.export) * workload.exports.min(1.0);
    counters.add(Of::S3GbMonths, objects / GB * workload.kept_months);
    // A record is written whole by the planner; later writes change it.
    let planned = expected.run.get("planner").and_then(|calls| calls.get("DynamoDB.BatchWriteItem"));
    // Graded, a sample's record is about three times as large as planned.
    let records = 3.0 * planned.map(|tally| tally.request_bytes).unwrap_or_default();
    counters.add(Of::DynamoDbGbMonths, records / GB * workload.kept_months);
    counters.add(Of::DynamoDbBackupGbMonths, records / GB * workload.kept_months);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_s3_charges_for() {
        for (action, write, is_free) in [
            ("S3.PutObject", true, false),
            ("S3.ListObjectsV2", true, false),
            ("S3.UploadPart", true, false),
            ("S3.GetObject", false, false),
            ("S3.HeadObject", false, false),
            ("S3.DeleteObjects", false, true),
            ("DynamoDB.PutItem", false, false),
        ] {
            assert_eq!((s3_write(action), free(action)), (write, is_free), "{action}");
        }
    }

    #[test]
    fn an_invocation_of_ten_is_paid_for_once() {
        let ten = Workload::of(12_032.0);
        let one = Workload { batch: 1.0, ..ten };
        assert_eq!((ten.invocations(), one.invocations()), (1_204.0, 12_032.0));
        let gb_s = |workload: &Workload| {
            let mut counters = Counters::default();
            compute(&mut counters, workload);
            counters.of(Of::LambdaGbSecondsArm64)
        };
        // 1,204 invocations of 30.4 s at half a GB, and little else.
        assert!((gb_s(&ten) - 1_204.0 * 30.4 / 2.0).abs() < 80.0, "{}", gb_s(&ten));
        assert!(gb_s(&one) > 9.5 * gb_s(&ten));
    }
}
