//! Harvests the results of a job.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bench_domain::{HarvestedFile, JobEnd, JobReport, JobSpec, ResultFile};

use super::command::HARVEST;
use super::status::{read_record, words};
use super::{JobError, JobName, check};
use crate::{Sandy, SandyError};

/// Maximum number of bytes of files per call. If a host truncates the output of commands, the next smaller limit is
/// tried.
pub(super) const BYTES_MAX_STEPS: [u64; 3] = [384 << 10, 96 << 10, 24 << 10];
/// Maximum length of an isolation's name, in characters.
const ISOLATION_CHARS_MAX: usize = 64;

/// Reads the result files, the tails of the job's output, and its duration. `end` is the result of [`super::look`], or
/// what the caller knows. If the sandbox was ended for a limit, now or before, the report is empty and the end is
/// [`JobEnd::OverLimit`].
pub async fn harvest(
    sandy: &Sandy,
    sandbox: &str,
    job: &JobName,
    spec: &JobSpec,
    end: JobEnd,
) -> Result<JobReport, JobError> {
    check(spec)?;
    if end == JobEnd::OverLimit {
        return Ok(empty(end));
    }
    match read(sandy, sandbox, job, spec, end).await {
        Err(JobError::Sandy(SandyError::OverLimit(_))) => Ok(empty(JobEnd::OverLimit)),
        read => read,
    }
}

/// Returns a report with this end and without any results.
fn empty(end: JobEnd) -> JobReport {
    JobReport {
        end,
        files: BTreeMap::new(),
        stdout_tail: String::new(),
        stderr_tail: String::new(),
        elapsed_ms: None,
        isolation: None,
    }
}

async fn read(
    sandy: &Sandy,
    sandbox: &str,
    job: &JobName,
    spec: &JobSpec,
    end: JobEnd,
) -> Result<JobReport, JobError> {
    let mut harvest = Harvest { sandy, sandbox, job, limits_left: &BYTES_MAX_STEPS };
    let arguments = requested(spec);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let lines = harvest.request(&arguments).await?;
    harvest.report(lines, spec, end).await
}

/// Arguments of the command for the result files of a job, with their sizes.
pub(super) fn requested(spec: &JobSpec) -> Vec<String> {
    spec.results.iter().flat_map(|result| [result.path.clone(), result.bytes_max.to_string()]).collect()
}

/// Reads the results that came with a status. Reads them anew if the host truncated the answer.
pub(super) async fn read_sent(
    sandy: &Sandy,
    sandbox: &str,
    job: &JobName,
    spec: &JobSpec,
    end: JobEnd,
    mut lines: Vec<Vec<String>>,
) -> Result<JobReport, JobError> {
    if lines.pop().is_none_or(|last| last != ["end"]) {
        return harvest(sandy, sandbox, job, spec, end).await;
    }
    let mut harvest = Harvest { sandy, sandbox, job, limits_left: &BYTES_MAX_STEPS };
    harvest.report(lines, spec, end).await
}

impl Harvest<'_> {
    /// Parses the lines of an answer, and reads files that are too long for one.
    async fn report(
        &mut self,
        lines: Vec<Vec<String>>,
        spec: &JobSpec,
        end: JobEnd,
    ) -> Result<JobReport, JobError> {
        let mut report = empty(end);
        for line in lines {
            let words: Vec<&str> = line.iter().map(String::as_str).collect();
            match words.as_slice() {
                ["none"] | ["noted"] => {}
                ["isolation", name] => report.isolation = sanitized_name(&text(name)?),
                ["noted", record @ ..] => {
                    report.elapsed_ms = read_record(record).and_then(|(_, elapsed)| elapsed)
                }
                ["tail", "out", tail] => report.stdout_tail = text(tail)?,
                ["tail", "err", tail] => report.stderr_tail = text(tail)?,
                ["file", index, what @ ..] => {
                    let result = index.parse().ok().and_then(|index: usize| spec.results.get(index));
                    let result = result.ok_or_else(|| HARVEST.unexpected_answer())?;
                    let found = match what {
                        ["other"] => HarvestedFile::NotAFile,
                        ["long", bytes] => HarvestedFile::TooLong(length(bytes)?),
                        ["text", encoded] => HarvestedFile::Text(text(encoded)?),
                        ["more", bytes] => HarvestedFile::Text(self.in_ranges(result, length(bytes)?).await?),
                        _ => return Err(HARVEST.unexpected_answer()),
                    };
                    report.files.insert(result.path.clone(), found);
                }
                _ => return Err(HARVEST.unexpected_answer()),
            }
        }
        Ok(report)
    }
}

struct Harvest<'a> {
    sandy: &'a Sandy,
    sandbox: &'a str,
    job: &'a JobName,
    /// Limits to try, in bytes, largest first.
    limits_left: &'a [u64],
}

impl Harvest<'_> {
    /// Runs the command with smaller and smaller limits until its answer arrives complete. Returns its lines.
    async fn request(&mut self, arguments: &[&str]) -> Result<Vec<Vec<String>>, JobError> {
        while let Some((bytes_max, rest)) = self.limits_left.split_first() {
            let bytes_max = bytes_max.to_string();
            let words = [&[self.job.as_str(), &bytes_max], arguments].concat();
            let mut lines = HARVEST.run_long(self.sandy, self.sandbox, &words).await?;
            if lines.last().is_some_and(|last| last == &["end"]) {
                lines.pop();
                return Ok(lines);
            }
            self.limits_left = rest;
        }
        Err(HARVEST.unexpected_answer())
    }

    /// Reads a file that is too long for one call. If the file changes meanwhile, the result may mix old and new
    /// content.
    async fn in_ranges(&mut self, result: &ResultFile, length: u64) -> Result<String, JobError> {
        let length = length.min(result.bytes_max);
        let mut whole = Vec::new();
        while (whole.len() as u64) < length {
            let offset = whole.len() as u64;
            let left = length - offset;
            let (offset, wanted) = (offset.to_string(), left.to_string());
            let lines = self.request(&["range", &result.path, &offset, &wanted]).await?;
            match words(&lines).as_slice() {
                // The folder has disappeared in the meantime.
                ["none"] => break,
                ["bytes", encoded] => {
                    let mut bytes = decode(encoded)?;
                    if bytes.is_empty() {
                        break;
                    }
                    bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                    whole.append(&mut bytes);
                }
                _ => return Err(HARVEST.unexpected_answer()),
            }
        }
        Ok(lossy(whole))
    }
}

fn length(text: &str) -> Result<u64, JobError> {
    text.parse().map_err(|_| HARVEST.unexpected_answer())
}

fn text(encoded: &str) -> Result<String, JobError> {
    decode(encoded).map(lossy)
}

fn decode(encoded: &str) -> Result<Vec<u8>, JobError> {
    let encoded = encoded.strip_prefix(':').ok_or_else(|| HARVEST.unexpected_answer())?;
    STANDARD.decode(encoded).map_err(|_| HARVEST.unexpected_answer())
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Removes unusual characters from a host's name for its isolation.
fn sanitized_name(name: &str) -> Option<String> {
    let is_plain =
        |c: &char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | ',' | ':' | '+');
    let name: String = name.chars().filter(is_plain).take(ISOLATION_CHARS_MAX).collect();
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_isolation_is_a_plain_name() {
        assert_eq!(sanitized_name("namespaces").as_deref(), Some("namespaces"));
        assert_eq!(sanitized_name("a\u{1b}[31m<b>\n").as_deref(), Some("a31mb"));
        assert_eq!(sanitized_name(&"x".repeat(500)).map(|name| name.len()), Some(ISOLATION_CHARS_MAX));
        assert_eq!((sanitized_name(""), sanitized_name(" \n")), (None, None));
    }
}
