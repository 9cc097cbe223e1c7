//! Reading what a job left.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bench_domain::{Harvested, JobEnd, JobReport, JobSpec, ResultFile};

use super::command::HARVEST;
use super::run::{read_note, words};
use super::{JobError, JobName, check};
use crate::{Sandy, SandyError};

/// Bytes of files that one call gives, at most. Where a host cuts what commands write, the next smaller one is tried.
const ROOMS: [u64; 3] = [384 << 10, 96 << 10, 24 << 10];
/// Longest name of an isolation, in characters.
const ISOLATION_CHARS_MAX: usize = 64;

/// Reads the result files, the ends of what the job wrote, and how long it ran. How it ended is what [`super::look`] said, or
/// what the caller knows. A job that ended with its sandbox has left nothing, also where the sandbox ends only now, for what
/// the job left in it.
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

/// The report of a job that ended so, without anything that it left.
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
    let mut harvest = Harvest { sandy, sandbox, job, rooms: &ROOMS };
    let bounds: Vec<String> = spec.results.iter().map(|result| result.bytes_max.to_string()).collect();
    let mut asked = Vec::new();
    for (result, bound) in spec.results.iter().zip(&bounds) {
        asked.extend([result.path.as_str(), bound]);
    }
    let mut report = empty(end);
    for line in harvest.ask(&asked).await? {
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["none"] | ["noted"] => {}
            ["isolation", name] => report.isolation = plain(&text(name)?),
            ["noted", noted @ ..] => report.elapsed_ms = read_note(noted).and_then(|(_, elapsed)| elapsed),
            ["tail", "out", tail] => report.stdout_tail = text(tail)?,
            ["tail", "err", tail] => report.stderr_tail = text(tail)?,
            ["file", index, what @ ..] => {
                let result = index.parse().ok().and_then(|index: usize| spec.results.get(index));
                let result = result.ok_or_else(|| HARVEST.garbled())?;
                let found = match what {
                    ["other"] => Harvested::NotAFile,
                    ["long", bytes] => Harvested::TooLong(length(bytes)?),
                    ["text", coded] => Harvested::Text(text(coded)?),
                    ["more", bytes] => Harvested::Text(harvest.in_ranges(result, length(bytes)?).await?),
                    _ => return Err(HARVEST.garbled()),
                };
                report.files.insert(result.path.clone(), found);
            }
            _ => return Err(HARVEST.garbled()),
        }
    }
    Ok(report)
}

struct Harvest<'a> {
    sandy: &'a Sandy,
    sandbox: &'a str,
    job: &'a JobName,
    /// How much is asked for in one call, from the first on.
    rooms: &'a [u64],
}

impl Harvest<'_> {
    /// The lines of an answer that came whole.
    async fn ask(&mut self, asked: &[&str]) -> Result<Vec<Vec<String>>, JobError> {
        while let Some((room, smaller)) = self.rooms.split_first() {
            let room = room.to_string();
            let words = [&[self.job.as_str(), &room], asked].concat();
            let mut lines = HARVEST.run_long(self.sandy, self.sandbox, &words).await?;
            if lines.last().is_some_and(|last| last == &["end"]) {
                lines.pop();
                return Ok(lines);
            }
            self.rooms = smaller;
        }
        Err(HARVEST.garbled())
    }

    /// A file that is too long for one call. One that changes meanwhile is what was seen of it.
    async fn in_ranges(&mut self, result: &ResultFile, length: u64) -> Result<String, JobError> {
        let length = length.min(result.bytes_max);
        let mut whole = Vec::new();
        while (whole.len() as u64) < length {
            let offset = whole.len() as u64;
            let left = length - offset;
            let (offset, asked) = (offset.to_string(), left.to_string());
            let lines = self.ask(&["range", &result.path, &offset, &asked]).await?;
            match words(&lines).as_slice() {
                // The folder is gone meanwhile.
                ["none"] => break,
                ["bytes", coded] => {
                    let mut bytes = decoded(coded)?;
                    if bytes.is_empty() {
                        break;
                    }
                    bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                    whole.append(&mut bytes);
                }
                _ => return Err(HARVEST.garbled()),
            }
        }
        Ok(lossy(whole))
    }
}

fn length(text: &str) -> Result<u64, JobError> {
    text.parse().map_err(|_| HARVEST.garbled())
}

fn text(coded: &str) -> Result<String, JobError> {
    decoded(coded).map(lossy)
}

fn decoded(coded: &str) -> Result<Vec<u8>, JobError> {
    let coded = coded.strip_prefix(':').ok_or_else(|| HARVEST.garbled())?;
    STANDARD.decode(coded).map_err(|_| HARVEST.garbled())
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// A name as hosts give it, without what a name does not need.
fn plain(name: &str) -> Option<String> {
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
        assert_eq!(plain("namespaces").as_deref(), Some("namespaces"));
        assert_eq!(plain("a\u{1b}[31m<b>\n").as_deref(), Some("a31mb"));
        assert_eq!(plain(&"x".repeat(500)).map(|name| name.len()), Some(ISOLATION_CHARS_MAX));
        assert_eq!((plain(""), plain(" \n")), (None, None));
    }
}
