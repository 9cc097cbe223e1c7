//! Checks the specification of jobs.

use std::collections::BTreeSet;
use std::time::Duration;

use bench_domain::{FileContent, JobFile, JobSpec, StoredFile};
use reqwest::Url;

use super::JobError;

/// Maximum number of files of one job.
const FILES_MAX: usize = 1_000;
/// Maximum number of result files of one job.
const RESULTS_MAX: usize = 100;
/// Maximum length of a path, in bytes.
const PATH_BYTES_MAX: usize = 200;
/// Maximum size of the script and the files given as bytes together.
const BUNDLE_BYTES_MAX: u64 = 64 << 20;
/// Maximum size of a result file, in bytes.
const RESULT_BYTES_MAX: u64 = 64 << 20;
/// Minimum and maximum time limit.
const TIME_LIMIT_MIN: Duration = Duration::from_secs(1);
const TIME_LIMIT_MAX: Duration = Duration::from_hours(24);
/// Names in a job's folder that belong to the wrapper.
const WRAPPER_FILES: [&str; 9] =
    ["lock", "script.sh", "out", "err", "rc", "rc.tmp", "pid", "pid.tmp", "beat"];

/// Checks a job before anything is sent.
///
/// # Errors
/// [`JobError::Spec`] with one sentence: a path that leaves the job's folder or names one of the wrapper's files, two
/// files with the same path, too many files, more than 64 MiB of files given as bytes, or a time limit below a second
/// or above a day.
pub fn check(spec: &JobSpec) -> Result<(), JobError> {
    let invalid = |what: String| Err(JobError::Spec(what));
    if spec.files.len() > FILES_MAX || spec.results.len() > RESULTS_MAX {
        return invalid(format!("it has more than {FILES_MAX} files or {RESULTS_MAX} result files"));
    }
    if !(TIME_LIMIT_MIN..=TIME_LIMIT_MAX).contains(&spec.time_limit) {
        return invalid("its time limit is not between a second and a day".to_owned());
    }
    let mut seen = BTreeSet::new();
    for file in &spec.files {
        let path = &file.path;
        if !is_path(path) || WRAPPER_FILES.contains(&top(path)) {
            return invalid(format!("`{path}` is not a valid path of a file"));
        }
        if !seen.insert(path.as_str()) {
            return invalid(format!("`{path}` appears twice"));
        }
        check_content(file)?;
    }
    for path in &seen {
        let is_folder =
            path.match_indices('/').any(|(at, _)| seen.contains(path.get(..at).unwrap_or_default()));
        if is_folder {
            return invalid(format!("`{path}` is below a file"));
        }
    }
    for result in &spec.results {
        if !is_path(&result.path) || result.bytes_max > RESULT_BYTES_MAX {
            return invalid(format!(
                "`{}` is not a valid path of a result file, or its limit exceeds {RESULT_BYTES_MAX} bytes",
                result.path
            ));
        }
    }
    let bytes = spec.files.iter().map(|file| match &file.content {
        FileContent::Bytes(bytes) => bytes.len() as u64,
        FileContent::Stored(_) => 0,
    });
    match bytes.sum::<u64>() + spec.script.len() as u64 > BUNDLE_BYTES_MAX {
        true => invalid(format!("its files have more than {BUNDLE_BYTES_MAX} bytes together")),
        false => Ok(()),
    }
}

fn check_content(file: &JobFile) -> Result<(), JobError> {
    let FileContent::Stored(StoredFile { sha256, url, .. }) = &file.content else { return Ok(()) };
    let is_digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    if sha256.len() != 64 || !sha256.chars().all(is_digit) {
        return Err(JobError::Spec(format!("the checksum of `{}` is invalid", file.path)));
    }
    let is_address = |url: &String| {
        let url = Url::parse(url).ok();
        url.is_some_and(|url| {
            matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none()
        })
    };
    match url.as_ref().is_none_or(is_address) {
        true => Ok(()),
        false => Err(JobError::Spec(format!("the address of `{}` is invalid", file.path))),
    }
}

fn top(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// Returns true for a valid path: letters, digits, `.`, `_`, `-` and `/`; no part is empty, `.`, `..` or one of our own
/// names.
fn is_path(path: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    !path.is_empty()
        && path.len() <= PATH_BYTES_MAX
        && path.chars().all(is_plain)
        && path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.starts_with(".bench-"))
}

#[cfg(test)]
mod tests {
    use bench_domain::ResultFile;

    use super::*;

    fn spec() -> JobSpec {
        JobSpec {
            files: Vec::new(),
            script: "true".to_owned(),
            time_limit: Duration::from_secs(1),
            memory_bytes: 1 << 20,
            probe: None,
            needs_landlock: false,
            results: Vec::new(),
        }
    }

    fn file(path: &str) -> JobFile {
        JobFile { path: path.to_owned(), content: FileContent::Bytes(vec![0]) }
    }

    fn stored(sha256: &str, url: Option<&str>) -> JobFile {
        let stored =
            StoredFile { key: "k".into(), sha256: sha256.into(), bytes: 1, url: url.map(str::to_owned) };
        JobFile { path: "s".to_owned(), content: FileContent::Stored(stored) }
    }

    #[test]
    fn valid_jobs_pass() {
        let files = ["a", "b.py", "dir/c_d-e.json", "dir/lock", "x..y", ".x", "-x"].map(file).to_vec();
        assert_eq!(check(&JobSpec { files, ..spec() }), Ok(()));
        let files = vec![stored(&"0f".repeat(32), Some("https://example.com/a%20b?c=d"))];
        assert_eq!(check(&JobSpec { files, ..spec() }), Ok(()));
    }

    #[test]
    fn invalid_jobs_are_rejected_with_a_sentence() {
        let refused = |spec: &JobSpec| {
            let error = check(spec).unwrap_err();
            assert_eq!(error.kind(), crate::job::JobErrorKind::Fatal);
            error.to_string()
        };
        for path in [
            "",
            "/a",
            "a/",
            "a//b",
            "..",
            "../a",
            "a/../b",
            "./a",
            ".bench-up",
            "a b",
            "a\nb",
            "ä",
            "lock",
            "rc",
            "out",
            "lock/x",
        ] {
            assert!(
                refused(&JobSpec { files: vec![file(path)], ..spec() }).contains("not a valid path"),
                "{path}"
            );
        }
        let twice = JobSpec { files: vec![file("a"), file("a")], ..spec() };
        assert!(refused(&twice).contains("twice"));
        let below = JobSpec { files: vec![file("a/b"), file("a")], ..spec() };
        assert!(refused(&below).contains("below a file"));
        for time_limit in [Duration::ZERO, Duration::from_millis(999), Duration::from_secs(86_401)] {
            assert!(refused(&JobSpec { time_limit, ..spec() }).contains("time limit"));
        }
        let many = (0..=FILES_MAX).map(|n| file(&n.to_string())).collect();
        assert!(refused(&JobSpec { files: many, ..spec() }).contains("1000 files"));
        let results = vec![ResultFile { path: "a".into(), bytes_max: RESULT_BYTES_MAX + 1 }];
        assert!(refused(&JobSpec { results, ..spec() }).contains("limit exceeds"));
        let large =
            JobFile { path: "a".into(), content: FileContent::Bytes(vec![0; BUNDLE_BYTES_MAX as usize]) };
        assert!(refused(&JobSpec { files: vec![large], ..spec() }).contains("together"));
        for (sha256, url) in [
            ("", None),
            ("ABCDEF", None),
            ("zz", None),
            ("00", Some("file:///etc/passwd")),
            ("00", Some("https://u:p@example.com/")),
            ("00", Some("-o/etc/x")),
        ] {
            let sha256 = sha256.repeat(32);
            assert!(
                refused(&JobSpec { files: vec![stored(&sha256, url)], ..spec() }).contains(" is invalid")
            );
        }
    }
}
