//! Builds an export once and stores it, sample by sample, in constant memory.
//!
//! An export depends only on the run's version, the program's version and the signing key, so every build
//! produces the same bytes. An archive is dated at the completion of the run or, if later, at the start of the
//! key's validity: an archive that is dated before its key would be invalid.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bench_blobs::{Blobs, Upload, exports_prefix};
use bench_domain::{RunId, Timestamp};
use bench_lambda::metrics;
use bench_signing::{ArchiveWriter, ManifestFields, SigningKey};
use bench_state::{Results, RunWithBenchmarks};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};

use crate::context::{Exports, ExportsConfig, Signing};
use crate::file::facts::{BenchmarkFacts, RunFacts, Tally, TallySource};
use crate::file::item::ItemRow;
use crate::file::lines::LinesWriter;
use crate::file::manifest;
use crate::file::protocol::ProtocolWriter;
use crate::file::report::NamedKey;
use crate::file::results::ResultsWriter;
use crate::file::samples::{PAGE_SAMPLES, Slot, body, page};
use crate::file::table::TableWriter;
use crate::{ExportError, ExportFormat, ExportOrder};

/// Maximum number of concurrent body fetches: at 30 ms each, 12,032 bodies take 6 seconds.
const BODIES_IN_FLIGHT: usize = 64;
/// Maximum number of bodies to render in one step.
const ROWS_AT_ONCE: usize = 16;
/// Digits of the key's fingerprint in the object key.
const FINGERPRINT_PREFIX_CHARS: usize = 16;

/// An export in the blob store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltExport {
    /// Object key.
    pub key: String,
    /// Filename of the download.
    pub filename: String,
    /// Media type.
    pub content_type: &'static str,
    /// Length in bytes.
    pub length: u64,
}

impl Exports {
    /// Returns the export of a run, and builds it unless it is stored already.
    ///
    /// # Errors
    /// [`ExportError`]; errors of state and blobs may be gone on a retry.
    pub async fn build(&self, run: RunId, order: impl Into<ExportOrder>) -> Result<BuiltExport, ExportError> {
        let order = order.into();
        let format = order.format;
        let mut found = self.state.run_with_benchmarks(run).await?.ok_or(ExportError::NotFound(run))?;
        let completed_at = completed_at(&found)?;
        if let Some(benchmark) = &order.benchmark {
            if found.benchmark(benchmark.as_str()).is_none() {
                return Err(ExportError::no_such_benchmark(&found, benchmark.as_str()));
            }
            found.benchmarks.retain(|record| record.name == *benchmark);
        }
        // Read once, since the keys may change while the file is built.
        let signing = match format {
            ExportFormat::Csv | ExportFormat::Jsonl | ExportFormat::Markdown | ExportFormat::Pdf => None,
            ExportFormat::Zip => {
                // The response is a 503, which doesn't count as a failure by itself.
                let key = self.signing_key().inspect_err(|_| metrics::count(metrics::FAILURES, 1.0))?;
                Some(DatedKey::new(key, completed_at))
            }
        };
        let named_key = (format == ExportFormat::Pdf).then(|| NamedKey::new(self));
        let key = match &named_key {
            Some(named) => self.report_key(&found, named),
            None => self.object_key(&found, &order, signing.as_ref()),
        };
        let built = |length| BuiltExport {
            key: key.clone(),
            filename: order.filename(run, completed_at),
            content_type: format.content_type(),
            length,
        };
        if let Some(object) = self.blobs.head(&key).await? {
            return Ok(built(object.length));
        }
        let _one_at_a_time = self.building.lock().await;
        // Another request may have built it while this one waited for the lock.
        if let Some(object) = self.blobs.head(&key).await? {
            return Ok(built(object.length));
        }
        let mut files = vec![Target { order: order.clone(), key: key.clone() }];
        if order.with_table && format == ExportFormat::Zip {
            let table = ExportOrder::from(ExportFormat::Csv);
            let key = self.object_key(&found, &table, None);
            if self.blobs.head(&key).await?.is_none() {
                files.push(Target { order: table, key });
            }
        }
        let stored = self.store(&found, completed_at, &files, named_key.as_ref(), signing.as_ref()).await;
        if self.state.run(run).await?.is_none() {
            // The run was deleted just now, perhaps after its other files were removed: no later cleanup
            // would remove these.
            let deleted = join_all(files.iter().map(|file| self.blobs.delete(&file.key))).await;
            deleted.into_iter().collect::<Result<(), _>>()?;
            return Err(ExportError::NotFound(run));
        }
        let length = stored?;
        tracing::info!(run.id = %run, export.bytes = length, "Built the {} of run {run}: {length} bytes", format.as_str());
        Ok(built(length))
    }

    /// Writes and stores the files of an export, and returns the length of the first one.
    async fn store(
        &self,
        found: &RunWithBenchmarks,
        completed_at: Timestamp,
        files: &[Target],
        named_key: Option<&NamedKey>,
        signing: Option<&DatedKey>,
    ) -> Result<u64, ExportError> {
        let run = found.run.spec.id;
        let Some(ordered) = files.first() else { return Ok(0) };
        let (mut files, mut source) = (files, TallySource::of(ordered.order.format));
        loop {
            let facts = RunFacts::gather(&self.state, found.clone(), completed_at, source).await?;
            let mut uploads: Vec<Upload> = files.iter().map(|file| file.upload(&self.blobs)).collect();
            let written = match (named_key, uploads.as_mut_slice()) {
                (Some(named), [upload]) => {
                    self.write_report(facts, named, upload).await.map(|()| Written::Whole)
                }
                (_, uploads) => self.write(facts, files, signing, source, uploads).await,
            };
            let written = match written {
                Ok(written) => self.unchanged(run, found.run.generation).await.map(|()| written),
                Err(error) => Err(error),
            };
            let finished = match written {
                Ok(Written::Whole) => finish(run, uploads).await.map(Some),
                other => {
                    abort(run, uploads).await;
                    other.map(|_| None)
                }
            };
            match finished {
                Ok(Some(length)) => return Ok(length),
                Ok(None) => {
                    tracing::warn!(
                        run.id = %run,
                        "The samples of run {run} differ from the sums in its report, perhaps because records were lost"
                    );
                    source = TallySource::Samples;
                }
                // Space may be enough for the archive alone.
                Err(ExportError::Blobs(error)) if files.len() > 1 => {
                    tracing::warn!(run.id = %run, %error, "Builds the archive of run {run} without the table: {error}");
                    files = std::slice::from_ref(ordered);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the object key of this version of the export. Only archives depend on the signing key.
    fn object_key(
        &self,
        found: &RunWithBenchmarks,
        order: &ExportOrder,
        signing: Option<&DatedKey>,
    ) -> String {
        let prefix = exports_prefix(found.run.spec.id);
        let software = software_id(&self.config);
        let generation = found.run.generation;
        match signing {
            None => format!("{prefix}{generation}-{software}{}.{}", order.variant(), order.format.as_str()),
            Some(signing) => {
                let fingerprint = signing.key.fingerprint();
                let fingerprint = fingerprint.get(..FINGERPRINT_PREFIX_CHARS).unwrap_or(&fingerprint);
                // Earlier versions of the program dated all archives by their run: those must not be reused here.
                let date = match signing.is_later {
                    true => format!("-{}", signing.date.as_second()),
                    false => String::new(),
                };
                format!("{prefix}{generation}-{software}-{fingerprint}{date}.zip")
            }
        }
    }

    /// Checks that the run didn't change: if it was requeued or deleted meanwhile, the samples are from different versions.
    async fn unchanged(&self, run: RunId, generation: u32) -> Result<(), ExportError> {
        match self.state.run(run).await? {
            Some(now) if now.generation == generation && !now.state.status().is_open() => Ok(()),
            _ => Err(ExportError::Changed),
        }
    }

    /// Writes the files of a run, each sample to all of them.
    async fn write(
        &self,
        facts: RunFacts,
        files: &[Target],
        signing: Option<&DatedKey>,
        source: TallySource,
        uploads: &mut [Upload],
    ) -> Result<Written, ExportError> {
        let writings = files.iter().map(|file| {
            let facts = Arc::new(facts.for_format(file.order.format));
            let renderer = Renderer::begin(&facts, &self.config, &file.order, signing)?;
            Ok::<_, ExportError>(Writing { renderer, facts })
        });
        let mut writings = writings.collect::<Result<Vec<_>, _>>()?;
        for (index, benchmark) in facts.benchmarks.iter().enumerate() {
            writings = step(uploads, writings, move |renderer, facts| match facts.benchmarks.get(index) {
                Some(benchmark) => renderer.begin_benchmark(benchmark, facts),
                None => Ok(()),
            })
            .await?;
            let tally;
            (writings, tally) = self.write_samples(&facts, benchmark, writings, uploads).await?;
            if source == TallySource::ComparedReport && !tally.agrees_with(&benchmark.tally) {
                return Ok(Written::SumsDiffer);
            }
            writings = step(uploads, writings, move |renderer, facts| match facts.benchmarks.get(index) {
                Some(benchmark) => renderer.end_benchmark(benchmark, facts),
                None => Ok(()),
            })
            .await?;
        }
        for (Writing { renderer, facts }, upload) in writings.into_iter().zip(uploads) {
            let config = self.config.clone();
            let rest = tokio::task::spawn_blocking(move || renderer.finish(&facts, &config)).await??;
            upload.write(&rest).await?;
        }
        Ok(Written::Whole)
    }

    /// Writes the samples of a benchmark, and returns the sums over them.
    async fn write_samples(
        &self,
        facts: &RunFacts,
        benchmark: &BenchmarkFacts,
        mut writings: Vec<Writing>,
        uploads: &mut [Upload],
    ) -> Result<(Vec<Writing>, Tally), ExportError> {
        let (run, record) = (facts.run.spec.id, &benchmark.record);
        let samples_per_item = benchmark.plan().map_or(1, |plan| plan.samples_per_item);
        let mut tally = Tally::default();
        let mut offset = 0;
        loop {
            let slots = page(&self.state, run, record, offset).await?;
            let is_last = (slots.len() as u64) < PAGE_SAMPLES;
            offset += PAGE_SAMPLES;
            let records = slots.iter().filter_map(|slot| slot.record.as_ref());
            records.for_each(|record| tally.add(record, samples_per_item));
            let fetch = |slot: Slot| async move {
                let body = body(&self.blobs, run, record, &slot).await?;
                Ok::<_, ExportError>(ItemRow::new(&facts.run, record, slot, &body))
            };
            // Bodies are fetched concurrently and rendered in order; the two limits together bound the number in memory.
            let rows = stream::iter(slots.into_iter().map(fetch)).buffered(BODIES_IN_FLIGHT);
            let mut rows = std::pin::pin!(rows.ready_chunks(ROWS_AT_ONCE));
            while let Some(rows) = rows.next().await {
                let rows = rows.into_iter().collect::<Result<Vec<_>, _>>()?;
                writings = step(uploads, writings, move |renderer, _| {
                    rows.iter().try_for_each(|row| renderer.item(row))
                })
                .await?;
            }
            if is_last {
                return Ok((writings, tally));
            }
        }
    }
}

/// A file of an export, and the object that it becomes.
struct Target {
    order: ExportOrder,
    key: String,
}

impl Target {
    fn upload(&self, blobs: &Blobs) -> Upload {
        blobs.upload(&self.key, self.order.format.content_type())
    }
}

/// A file that is being written.
struct Writing {
    renderer: Renderer,
    facts: Arc<RunFacts>,
}

/// Result of writing the files of an export.
enum Written {
    Whole,
    /// The sums of a report aren't those of the samples.
    SumsDiffer,
}

/// Completes the uploads, the ordered file last, and returns its length.
async fn finish(run: RunId, mut uploads: Vec<Upload>) -> Result<u64, ExportError> {
    let mut length = 0;
    while let Some(upload) = uploads.pop() {
        match upload.finish().await {
            Ok(finished) => length = finished,
            Err(error) => {
                abort(run, uploads).await;
                return Err(error.into());
            }
        }
    }
    Ok(length)
}

async fn abort(run: RunId, uploads: Vec<Upload>) {
    for upload in uploads {
        if let Err(error) = upload.abort().await {
            tracing::warn!(run.id = %run, %error, "What was sent of an export stays behind: {error}");
        }
    }
}

/// A signing key, and the date of the archive.
struct DatedKey {
    key: SigningKey,
    date: jiff::Timestamp,
    /// True if the date is later than the run's completion.
    is_later: bool,
}

impl DatedKey {
    fn new(signing: Signing, completed_at: Timestamp) -> Self {
        let completed = jiff::Timestamp::from_second(completed_at.as_seconds()).unwrap_or_default();
        let date = signing.since.map_or(completed, |since| since.max(completed));
        Self { key: signing.key, date, is_later: date.as_second() > completed.as_second() }
    }
}

/// Returns the time at which an exportable run was completed.
pub(crate) fn completed_at(found: &RunWithBenchmarks) -> Result<Timestamp, ExportError> {
    match found.results() {
        Results::Final(time) => Ok(time),
        Results::Settling => Err(ExportError::NotSettled),
        Results::Incomplete => Err(ExportError::NotCompleted),
    }
}

/// Returns the program's version as part of an object key.
pub(super) fn software_id(config: &ExportsConfig) -> String {
    let version = match &config.git_sha {
        Some(sha) => format!("{}+{sha}", config.software_version),
        None => config.software_version.clone(),
    };
    version
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '+') { c } else { '_' })
        .collect()
}

/// Runs one step of rendering on a thread that may block, since compression takes time, and uploads the resulting bytes.
async fn step(
    uploads: &mut [Upload],
    mut writings: Vec<Writing>,
    work: impl Fn(&mut Renderer, &RunFacts) -> Result<(), ExportError> + Send + 'static,
) -> Result<Vec<Writing>, ExportError> {
    let (writings, pieces) = tokio::task::spawn_blocking(move || {
        let pieces = writings.iter_mut().map(|Writing { renderer, facts }| {
            work(renderer, facts)?;
            renderer.take()
        });
        let pieces = pieces.collect::<Result<Vec<_>, _>>()?;
        Ok::<_, ExportError>((writings, pieces))
    })
    .await??;
    for (upload, piece) in uploads.iter_mut().zip(pieces) {
        upload.write(&piece).await?;
    }
    Ok(writings)
}

/// Renders facts and rows as bytes.
enum Renderer {
    Table(Box<TableWriter>),
    Lines(LinesWriter),
    Protocol(Box<ProtocolWriter>),
    Archive { results: Box<ResultsWriter<ArchiveWriter<Outbox>>>, outbox: Outbox, key: Box<SigningKey> },
}

impl Renderer {
    fn begin(
        facts: &RunFacts,
        config: &ExportsConfig,
        order: &ExportOrder,
        signing: Option<&DatedKey>,
    ) -> Result<Self, ExportError> {
        let (key, date) = match (order.format, signing) {
            (ExportFormat::Zip, Some(DatedKey { key, date, .. })) => (key.clone(), *date),
            (ExportFormat::Jsonl, _) => {
                return Ok(Self::Lines(LinesWriter::new(facts, &config.software_version)));
            }
            (ExportFormat::Markdown, _) => {
                return Ok(Self::Protocol(Box::new(ProtocolWriter::begin(facts, config, order.hides))));
            }
            _ => return Ok(Self::Table(Box::new(TableWriter::begin(&config.software_version, facts)?))),
        };
        let outbox = Outbox::default();
        let manifest = ManifestFields {
            run_id: facts.run.spec.id.to_string(),
            generated_at: date,
            additional: manifest::additional(facts, config),
        };
        let archive = ArchiveWriter::new(outbox.clone(), manifest)?;
        Ok(Self::Archive { results: Box::new(ResultsWriter::begin(archive)?), outbox, key: Box::new(key) })
    }

    fn begin_benchmark(&mut self, benchmark: &BenchmarkFacts, facts: &RunFacts) -> Result<(), ExportError> {
        match self {
            Self::Table(table) => table.begin_benchmark(benchmark, facts),
            Self::Lines(lines) => lines.begin_benchmark(benchmark),
            Self::Protocol(protocol) => protocol.begin_benchmark(benchmark, facts),
            Self::Archive { results, .. } => results.begin_benchmark(benchmark, facts)?,
        }
        Ok(())
    }

    fn item(&mut self, row: &ItemRow) -> Result<(), ExportError> {
        match self {
            Self::Table(table) => table.item(row)?,
            Self::Lines(lines) => lines.item(row)?,
            Self::Protocol(protocol) => protocol.item(row),
            Self::Archive { results, .. } => results.item(row)?,
        }
        Ok(())
    }

    fn end_benchmark(&mut self, benchmark: &BenchmarkFacts, facts: &RunFacts) -> Result<(), ExportError> {
        match self {
            Self::Table(table) => table.end_benchmark()?,
            Self::Lines(_) | Self::Protocol(_) => {}
            Self::Archive { results, .. } => results.end_benchmark(benchmark, facts)?,
        }
        Ok(())
    }

    fn take(&mut self) -> Result<Vec<u8>, ExportError> {
        match self {
            Self::Table(table) => Ok(table.take()?),
            Self::Lines(lines) => Ok(lines.take()),
            Self::Protocol(protocol) => Ok(protocol.take()),
            Self::Archive { outbox, .. } => Ok(outbox.take()),
        }
    }

    /// Completes the file and returns its remaining bytes.
    fn finish(self, facts: &RunFacts, config: &ExportsConfig) -> Result<Vec<u8>, ExportError> {
        match self {
            Self::Table(mut table) => Ok(table.take()?),
            Self::Lines(mut lines) => Ok(lines.take()),
            Self::Protocol(mut protocol) => Ok(protocol.take()),
            Self::Archive { results, outbox, key } => {
                results.finish(facts, config)?.finish(&key)?;
                Ok(outbox.take())
            }
        }
    }
}

/// Buffer of archive bytes that wait to be uploaded.
#[derive(Debug, Clone, Default)]
struct Outbox(Arc<Mutex<Vec<u8>>>);

impl Outbox {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Outbox {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use bench_embedded::{Durability, Embedded, EmbeddedOptions, Recorder};

    use super::*;

    #[tokio::test]
    async fn nothing_stays_of_an_archive_whose_table_cannot_be_completed() {
        let directory = tempfile::tempdir().unwrap();
        let aborted = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&aborted);
        let recorder = Recorder::new(move |call| {
            counted.fetch_add(u32::from(call.action == "AbortMultipartUpload"), Ordering::Relaxed);
        });
        let options = EmbeddedOptions::new(directory.path()).durability(Durability::Normal);
        let embedded = Embedded::open(options.recorder(recorder)).unwrap();
        let [blobs, missing] =
            ["exports", "missing"].map(|bucket| Blobs::new(&embedded.sdk_config(), bucket));
        blobs.ensure_bucket().await.unwrap();
        let mut archive = blobs.upload("archive.zip", "application/zip");
        archive.write(&vec![0; 6 * 1024 * 1024]).await.unwrap();
        let table = missing.upload("table.csv", "text/csv");
        finish(RunId::random(), vec![archive, table]).await.unwrap_err();
        assert_eq!(aborted.load(Ordering::Relaxed), 1);
    }
}
