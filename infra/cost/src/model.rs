//! Predicts the units of a run of any size: measured calls, scaled, and formulas for what depends on time.
//!
//! Runs on the embedded services give every call of every function with its bytes and DynamoDB units. They can't give, and
//! this module assumes with reasons: the duration of invocations, the messages that Lambda itself receives and deletes, and
//! the periodic calls while workers wait for answers.

use crate::counters::Counters;
use crate::measured::{MeasuredRun, Tallies, scale, sum};
use crate::prices::Usage;

/// Bytes of a GB as AWS counts memory, storage and transfer.
const GB: f64 = 1_073_741_824.0;
/// Messages that a request to SQS receives or deletes, at most.
const RECEIVED_MAX: f64 = 10.0;
/// Bytes of the log lines that Lambda writes per invocation (`START`, `END`, `REPORT`).
const LOG_BYTES_PER_INVOCATION: f64 = 350.0;
/// Bytes of one line of metrics.
const LOG_BYTES_PER_METRICS: f64 = 400.0;
/// Seconds between two checks of an invocation for a canceled run (`shared/pipeline`).
const CANCEL_CHECK_S: f64 = 2.0;
/// Samples of a shard (`bench_domain::sample`), for the counters that a progress event reads.
const SAMPLES_PER_SHARD: f64 = 200.0;
/// Units of a progress event: one record written, and one page read for the number of the last one. The conditional write
/// before it is counted separately.
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

/// Assumptions about a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// Samples of the run.
    pub samples: f64,
    /// Average time of an answer, in seconds.
    pub answer_s: f64,
    /// Time of the slowest answer of a batch, relative to the average: the invocation lasts as long.
    pub slowest: f64,
    /// Messages of one worker invocation.
    pub batch: f64,
    /// Memory of the worker, in MB. [`MEMORY_MB`] has that of the other functions.
    pub memory_mb: f64,
    /// Samples being answered at once.
    pub concurrency: f64,
    /// Processor.
    pub arch: Arch,
    /// Requests for the run's status.
    pub polls: f64,
    /// Signed archives that are built and fetched.
    pub exports: f64,
    /// Time for which bodies and exports are stored, in months.
    pub kept_months: f64,
}

impl Workload {
    /// The reference workload: 30 s per answer, full batches, 256 MB, arm64, 750 samples at once, a status request every five
    /// seconds, one archive, stored for a month.
    pub fn with_samples(samples: f64) -> Self {
        let workload = Self {
            samples,
            answer_s: 30.0,
            slowest: 1.0,
            batch: WORKER_BATCH,
            memory_mb: WORKER_MB,
            concurrency: 750.0,
            arch: Arch::Arm64,
            polls: 0.0,
            exports: 1.0,
            kept_months: 1.0,
        };
        workload.polled_every(5.0)
    }

    /// Adds a status request every `seconds` until the run ends.
    #[must_use]
    pub fn polled_every(self, seconds: f64) -> Self {
        Self { polls: (self.duration_s() / seconds).ceil(), ..self }
    }

    /// Duration of the run in seconds: the number of rounds that its samples need.
    pub fn duration_s(&self) -> f64 {
        let at_once = self.concurrency.min(self.samples).max(1.0);
        (self.samples / at_once).ceil() * self.invocation_s()
    }

    /// Worker invocations. Only the last batch isn't full: the planner sends messages faster than they are answered. Messages of
    /// later attempts, and of an item's next questions, come one by one and aren't part of the model.
    pub fn invocations(&self) -> f64 {
        (self.samples / self.batch).ceil()
    }

    fn environments(&self) -> f64 {
        (self.concurrency / self.batch).ceil().min(self.invocations())
    }

    fn invocation_s(&self) -> f64 {
        self.answer_s * self.slowest + self.own_s()
    }

    /// The worker's own part of a full invocation, in seconds.
    pub(crate) fn own_s(&self) -> f64 {
        OWN_S + OWN_S_PER_MESSAGE * self.batch.min(self.samples)
    }
}

/// Memory of functions in MB, by their logical ids in the template without `Function`. A test compares them.
pub const MEMORY_MB: [(&str, f64); 6] = [
    ("Worker", WORKER_MB),
    ("Turns", TURNS_MB),
    ("Planner", PLANNER_MB),
    ("Finisher", FINISHER_MB),
    ("Api", API_MB),
    ("Exports", EXPORTS_MB),
];
/// Memory of the worker in MB.
pub const WORKER_MB: f64 = 256.0;
pub(crate) const TURNS_MB: f64 = 512.0;
const PLANNER_MB: f64 = 2_048.0;
const FINISHER_MB: f64 = 512.0;
const API_MB: f64 = 256.0;
const EXPORTS_MB: f64 = 1_024.0;

/// Messages of a worker invocation: the template's batch size, which a test compares.
pub const WORKER_BATCH: f64 = 25.0;
/// Messages of an invocation of `turns`, likewise.
pub const TURNS_BATCH: f64 = 10.0;

/// The worker's own part of an invocation, in seconds, besides [`OWN_S_PER_MESSAGE`]. Assumed: the time of calls to AWS that
/// wait for each other, and of connecting to the provider.
const OWN_S: f64 = 0.3;
/// The worker's own part of an invocation, in seconds for each of its messages: claim, ask, store, grade and commit.
///
/// Measured by `bench-coldstart`: 0.37 s of 25 messages, optimized and held to the 0.145 CPUs that Lambda gives to 256 MB, with
/// services on loopback. The rest is assumed, for TLS.
const OWN_S_PER_MESSAGE: f64 = 0.04;

/// Durations of other invocations in seconds: generous assumptions. The calls in them take 5 to 40 ms each.
struct Durations;

impl Durations {
    /// Planner, per sample and minimum: a write holds 25 samples, a message batch ten.
    const PLANNER_S_PER_SAMPLE: f64 = 0.003;
    const PLANNER_S: f64 = 2.0;
    /// Finisher, reading every sample once.
    const FINISHER_S_PER_SAMPLE: f64 = 0.001;
    const FINISHER_S: f64 = 1.0;
    /// A request to the API.
    const API_S: f64 = 0.05;
    /// An archive: every body is read from S3, several concurrently.
    const EXPORT_S_PER_SAMPLE: f64 = 0.006;
    const EXPORT_S: f64 = 1.0;
    /// The start of an environment, billed like the rest.
    const INIT_S: f64 = 0.2;
}

/// Predicts the units of a run.
pub fn run(measured: &[MeasuredRun], workload: &Workload) -> Counters {
    let [small, .., large] = measured else { return Counters::default() };
    let expected = scale(small, large, workload.samples);
    let mut counters = Counters::default();
    calls(&mut counters, &expected.run, 1.0);
    calls(&mut counters, &expected.poll, workload.polls);
    calls(&mut counters, &expected.export, workload.exports);
    polling(&mut counters, workload);
    waiting(&mut counters, workload);
    reading(&mut counters, small, workload);
    compute(&mut counters, workload);
    storage(&mut counters, &expected, workload);
    // Answers of the API and archives; questions go to providers on the internet.
    let polled = sum(&expected.poll, |action| action.starts_with("DynamoDB")).response_bytes;
    let archive = sum(&expected.export, |action| action == "S3.PutObject").request_bytes;
    let out = expected.question_bytes + polled * workload.polls + archive * workload.exports;
    counters.add(Usage::TransferOutGb, out / GB);
    counters
}

/// Adds the billed units of all measured calls.
fn calls(counters: &mut Counters, tallies: &Tallies, times: f64) {
    let all = sum(tallies, |_| true);
    counters.add(Usage::DynamoDbReadUnits, all.read_units * times);
    counters.add(Usage::DynamoDbWriteUnits, all.write_units * times);
    counters.add(Usage::SqsRequests, all.chunks * times);
    let of = |is: &dyn Fn(&str) -> bool| sum(tallies, is).calls * times;
    counters.add(Usage::S3Writes, of(&s3_write));
    counters
        .add(Usage::S3Reads, of(&|action| action.starts_with("S3.") && !s3_write(action) && !free(action)));
    counters.add(Usage::KmsRequests, of(&|action| action.starts_with("KMS.")));
    counters.add(Usage::SnsRequests, of(&|action| action.starts_with("SNS.")));
    counters.add(Usage::SecretRequests, of(&|action| action.starts_with("SecretsManager.")));
}

fn s3_write(action: &str) -> bool {
    let verb = action.strip_prefix("S3.").unwrap_or_default();
    let writes = ["Put", "Create", "Complete", "Upload", "Copy", "List", "Post"];
    writes.iter().any(|write| verb.starts_with(write))
}

/// S3 doesn't charge for deleting.
fn free(action: &str) -> bool {
    action.starts_with("S3.Delete") || action.starts_with("S3.Abort")
}

/// Adds Lambda's requests for its event source mappings: one receive and one delete for ten messages of an
/// invocation, one of each for the plan and the end.
fn polling(counters: &mut Counters, workload: &Workload) {
    let requests = workload.invocations() * (workload.batch.min(workload.samples) / RECEIVED_MAX).ceil();
    counters.add(Usage::SqsRequests, 2.0 * (requests + 2.0));
}

/// Adds periodic calls while workers wait for answers.
fn waiting(counters: &mut Counters, workload: &Workload) {
    // Each invocation checks every two seconds whether its run is still open: one read of one unit.
    let polls = (workload.answer_s * workload.slowest / CANCEL_CHECK_S).floor();
    counters.add(Usage::DynamoDbReadUnits, workload.invocations() * polls);
    // After a sample an environment tries to become the one that writes the progress event, at most once a second; a failed
    // condition is billed too. There is at most one try per sample.
    let duration = workload.duration_s();
    let tries = workload.samples.min(workload.environments() * duration);
    counters.add(Usage::DynamoDbWriteUnits, tries);
    let events = duration.min(workload.samples);
    let shards = (workload.samples / SAMPLES_PER_SHARD).ceil();
    counters.add(Usage::DynamoDbWriteUnits, events * PROGRESS_WRITE_UNITS);
    counters.add(Usage::DynamoDbReadUnits, events * (shards + PROGRESS_READ_UNITS));
    // Each environment decrypts the caller's key once.
    counters.add(Usage::KmsRequests, (workload.environments() - 1.0).max(0.0));
}

/// Adds reads of the dataset. A process keeps what it read together with the neighbors of an item, and the measured runs had one
/// process: each further environment reads for itself, and each invocation may need another part.
fn reading(counters: &mut Counters, small: &MeasuredRun, workload: &Workload) {
    let read =
        small.run.get("worker").and_then(|calls| calls.get("S3.GetObject")).map_or(0.0, |tally| tally.calls);
    let others = (workload.environments() - 1.0).max(0.0);
    counters.add(Usage::S3Reads, others * read + workload.invocations());
}

/// Adds invocations, memory and logs.
fn compute(counters: &mut Counters, workload: &Workload) {
    let gb_seconds = match workload.arch {
        Arch::Arm64 => Usage::LambdaGbSecondsArm64,
        Arch::X86 => Usage::LambdaGbSecondsX86,
    };
    let samples = workload.samples;
    let mut invoke = |memory_mb: f64, times: f64, seconds: f64, starts: f64| {
        counters.add(Usage::LambdaRequests, times);
        counters.add(gb_seconds, memory_mb / 1_024.0 * (times * seconds + starts * Durations::INIT_S));
        counters.add(Usage::LogGb, times * (LOG_BYTES_PER_INVOCATION + LOG_BYTES_PER_METRICS) / GB);
    };
    invoke(workload.memory_mb, workload.invocations(), workload.invocation_s(), workload.environments());
    let planning = (samples * Durations::PLANNER_S_PER_SAMPLE).max(Durations::PLANNER_S);
    invoke(PLANNER_MB, 1.0, planning, 1.0);
    let finishing = (samples * Durations::FINISHER_S_PER_SAMPLE).max(Durations::FINISHER_S);
    invoke(FINISHER_MB, 1.0, finishing, 1.0);
    invoke(API_MB, 1.0 + workload.polls, Durations::API_S, 1.0);
    let export = (samples * Durations::EXPORT_S_PER_SAMPLE).max(Durations::EXPORT_S);
    invoke(EXPORTS_MB, workload.exports, export, workload.exports.min(1.0));
    counters.add(Usage::ApiRequests, 1.0 + workload.polls + workload.exports);
    // Each environment reads its secrets once.
    counters.add(Usage::SecretRequests, workload.environments() + 7.0);
}

/// Adds the storage of bodies, archives and records.
fn storage(counters: &mut Counters, expected: &MeasuredRun, workload: &Workload) {
    let put = |tallies: &Tallies| sum(tallies, |action| action == "S3.PutObject").request_bytes;
    let objects = put(&expected.run) + put(&expected.export) * workload.exports.min(1.0);
    counters.add(Usage::S3GbMonths, objects / GB * workload.kept_months);
    // A record is written whole by the planner; later writes change it.
    let planned = expected.run.get("planner").and_then(|calls| calls.get("DynamoDB.BatchWriteItem"));
    // Graded, a sample's record is about three times as large as planned.
    let records = 3.0 * planned.map(|tally| tally.request_bytes).unwrap_or_default();
    counters.add(Usage::DynamoDbGbMonths, records / GB * workload.kept_months);
    counters.add(Usage::DynamoDbBackupGbMonths, records / GB * workload.kept_months);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_charges_for_reads_and_writes() {
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
    fn an_invocation_of_a_batch_is_paid_for_once() {
        let batch = Workload::with_samples(12_032.0);
        let one = Workload { batch: 1.0, ..batch };
        assert_eq!((batch.invocations(), one.invocations()), (482.0, 12_032.0));
        let gb_s = |workload: &Workload| {
            let mut counters = Counters::default();
            compute(&mut counters, workload);
            counters.units(Usage::LambdaGbSecondsArm64)
        };
        // 482 invocations of 30 s and the worker's own time at a quarter of a GB, 36 s of the planner at 2 GB, 72 s of the export
        // at 1 GB, and little else.
        let by_hand = 482.0 * (30.0 + OWN_S + 25.0 * OWN_S_PER_MESSAGE) / 4.0 + 36.0 * 2.0 + 72.0;
        assert!((gb_s(&batch) - by_hand).abs() < 20.0, "{} instead of {by_hand}", gb_s(&batch));
        assert!(gb_s(&one) > 20.0 * gb_s(&batch));
    }
}
