//! The verification of a step.

use bench_domain::{EpisodeException, EpisodeStep, TestCounts};
use bench_environments::{FetchedFiles, SkipReason, SkippedFile, TaskFile};
use bench_terminal_tasks::{Grading, RewardError, Step, VerifierEnvironment, parse_rewards, test_files};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::container::{ARTIFACT_FILES_MAX, Command, Container, FILES_BYTES_MAX, ROOT, user_name};
use super::{Course, Keeping, agent, is_excluded, pane, setup, step_folder};
use crate::program::Program;
use crate::stop::{ARTIFACTS_LIMIT_EXCEEDED, Phase, Stop};
use crate::task;

/// Folder of the tests in a container.
pub(super) const TESTS: &str = "/tests";
const LOGS: &str = "/logs/verifier";
/// Files of that folder that are read whatever else the tests write.
const GRADES: [&str; 4] = ["reward.json", "reward.txt", "ctrf.json", "test-stdout.txt"];

/// Result of a verification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Finding {
    /// Rewards by key, or the name and the message of the exception.
    rewards: Result<std::collections::BTreeMap<String, f64>, (String, String)>,
    tests: Option<TestCounts>,
}

/// Verifies the agent's work, in its environment or in one of the verifier's own.
pub(super) async fn run(
    program: &mut Program<'_>,
    course: &mut Course<'_>,
    main: &mut Container,
    index: usize,
    step: &Step,
    result: &mut EpisodeStep,
) -> Result<(), Stop> {
    match &step.verifier.environment {
        VerifierEnvironment::Shared => {
            main.use_network(program, step.verifier.network.as_ref()).await?;
            verify(program, course, main, index, step, true, result).await?;
            main.use_network(program, None).await?;
            if step.name.is_some() {
                // The agent of the next step must find neither the tests nor what they wrote.
                let line = format!("{} && rm -rf {TESTS} && mkdir -p {TESTS}", agent::empty_folder(LOGS));
                main.prepare(program, &format!("s{index}-after"), &line, Phase::Agent).await?;
            }
            Ok(())
        }
        VerifierEnvironment::Separate { environment, has_tests } => {
            let artifacts = fetch_artifacts(program, main, index, step).await?;
            // The agent's environment is over, unless another step follows in it.
            if step.name.is_none() {
                program.remove(&main.environment).await?;
            }
            let name = task::verifier_name(&course.nonce, index);
            let own = task::environment(&name, course.task)?;
            let mut own = setup::start(program, course, own, environment, &[step]).await?;
            for (at, (folder, files)) in artifacts.into_iter().enumerate() {
                own.put(program, &format!("artifact-{at}"), &folder, false, files, Phase::Artifacts).await?;
            }
            own.use_network(program, step.verifier.network.as_ref()).await?;
            let verified = verify(program, course, &own, index, step, !has_tests, result).await;
            if step.name.is_some() {
                program.remove(&own.environment).await?;
            }
            verified
        }
    }
}

/// Runs the test script and reads the rewards.
async fn verify(
    program: &mut Program<'_>,
    course: &mut Course<'_>,
    container: &Container,
    index: usize,
    step: &Step,
    puts_tests: bool,
    result: &mut EpisodeStep,
) -> Result<(), Stop> {
    if let Grading::Pane { parser, is_same_shell } = step.verifier.grading {
        return pane::verify(program, course, container, index, step, (parser, is_same_shell), result).await;
    }
    let phase = phase_of(step);
    let broken = |stop: Stop| stop.broken_by_agent(phase);
    clean(program, container, &format!("s{index}-before"), phase).await.map_err(broken)?;
    if puts_tests {
        put_tests(program, course, container, index, step, phase).await.map_err(broken)?;
    }
    let env = step.verifier.env.resolve(course.task.variables);
    let line = format!("({TESTS}/test.sh) > {LOGS}/test-stdout.txt 2>&1");
    let command = Command {
        line: &line,
        user: user_name(&step.verifier.user),
        env: env.map_err(|missing| Stop::refused(missing.to_string()))?,
        time_limit: step.verifier.timeout,
        phase,
    };
    let ended = container.shell(program, &format!("s{index}-tests"), command).await?;
    result.verifier_ms = Some(ended.elapsed_ms);
    let mut fetch = container.fetch(&container.id, LOGS);
    fetch.first = GRADES.map(str::to_owned).to_vec();
    fetch.shortens_logs = true;
    let operation = format!("s{index}-rewards");
    let environment = container.environment.clone();
    let found = program.run_once(&environment, &operation, &fetch, phase, read_finding).await;
    let found = found.map_err(|stop| match stop {
        Stop::Exception(exception, log) => Stop::Exception(
            EpisodeException { name: "DownloadVerifierDirError".to_owned(), ..exception },
            log,
        ),
        other => other,
    })?;
    let folder = step_folder(step, "verifier");
    course.keepings.push(Keeping { environment, operation, fetch, folder, exclude: Vec::new() });
    if let Some(why) = ended.not_started {
        let why = format!("the test script could not be started: {why}");
        return Err(broken(Stop::exception("RuntimeError", why)));
    }
    if ended.exit_code.is_none() {
        let seconds = step.verifier.timeout.as_secs();
        return Err(Stop::exception(
            "VerifierTimeoutError",
            format!("the test script did not end within its {seconds} s"),
        ));
    }
    result.tests = found.tests;
    match found.rewards {
        Ok(rewards) => result.rewards = Some(rewards),
        Err((name, message)) => return Err(Stop::exception(&name, message)),
    }
    Ok(())
}

/// Returns the phase that decides what a failure of the container means.
pub(super) fn phase_of(step: &Step) -> Phase {
    match step.verifier.environment {
        // What the agent left behind runs beside the tests.
        VerifierEnvironment::Shared => Phase::Agent,
        VerifierEnvironment::Separate { .. } => Phase::Verifier,
    }
}

/// Copies the tests, replacing what the agent may have put there.
pub(super) async fn put_tests(
    program: &mut Program<'_>,
    course: &Course<'_>,
    container: &Container,
    index: usize,
    step: &Step,
    phase: Phase,
) -> Result<(), Stop> {
    let files = test_files(&course.task.files.admitted.tree, step)
        .map_err(|refusal| Stop::refused(refusal.to_string()))?;
    let files: Vec<TaskFile> = course.task.files.inputs(&files);
    let put = container.put(program, &format!("s{index}-put-tests"), TESTS, true, files, phase).await;
    put.map_err(|stop| match stop {
        Stop::Exception(exception, log) if exception.name == "RuntimeError" => {
            Stop::Exception(EpisodeException { name: "AddTestsDirError".to_owned(), ..exception }, log)
        }
        other => other,
    })
}

/// Removes what the agent may have prepared for the verification.
async fn clean(
    program: &mut Program<'_>,
    container: &Container,
    name: &str,
    phase: Phase,
) -> Result<(), Stop> {
    container.prepare(program, name, &agent::empty_folder(LOGS), phase).await
}

/// Returns the artifacts that a separate verifier gets, by their folders. Empty once they were copied.
async fn fetch_artifacts(
    program: &mut Program<'_>,
    main: &Container,
    index: usize,
    step: &Step,
) -> Result<Vec<(String, Vec<TaskFile>)>, Stop> {
    let mut all = Vec::new();
    let nothing: &[String] = &[];
    let mut sources = vec![(agent::ARTIFACTS.to_owned(), None, nothing)];
    for artifact in &step.artifacts {
        let source = agent::absolute(program, main, &artifact.source).await?;
        sources.push((source, artifact.service.as_deref(), artifact.exclude.as_slice()));
    }
    for (at, (source, service, exclude)) in sources.into_iter().enumerate() {
        let id = match service {
            None => main.id.as_str(),
            Some(service) => match main.started.container(service) {
                Some(id) => id,
                None => continue,
            },
        };
        // The operations that the agent's phase ended with: they return the same files again.
        let operation = format!("s{index}-keep-{}", at + 1);
        let fetch = main.fetch_artifacts(id, &source, step);
        match program.run(&main.environment, &operation, &fetch, Phase::Agent).await {
            Ok(Some(mut files)) => {
                if let Some(why) = too_much(&source, &files, exclude) {
                    return Err(Stop::exception(ARTIFACTS_LIMIT_EXCEEDED, why));
                }
                files.files.retain(|file| !is_excluded(exclude, &file.path));
                all.push(placed(&source, files));
            }
            Ok(None) | Err(Stop::Exception(..)) => {}
            Err(stop) => return Err(stop),
        }
    }
    Ok(all)
}

/// Returns why not all artifacts at a path can be given to a verifier, if that is so. An agent that could leave some of its work
/// out by its size would choose what is graded.
fn too_much(source: &str, fetched: &FetchedFiles, exclude: &[String]) -> Option<String> {
    let too_long = |file: &&SkippedFile| file.why == SkipReason::TooLong && !is_excluded(exclude, &file.path);
    if let Some(file) = fetched.skipped.iter().find(too_long) {
        let path = format!("{source}/{}", file.path);
        let (path, bytes) = (path.trim_end_matches('/'), file.bytes.unwrap_or_default());
        return Some(format!("`{path}` has {bytes} bytes, and a file can have {FILES_BYTES_MAX}"));
    }
    fetched
        .is_cut
        .then(|| format!("`{source}` has more than {ARTIFACT_FILES_MAX} files or {FILES_BYTES_MAX} bytes"))
}

/// Returns the folder of fetched files and the files in it. A fetched file is in the folder above its path.
fn placed(source: &str, fetched: FetchedFiles) -> (String, Vec<TaskFile>) {
    let is_file = fetched.files.iter().any(|file| file.path.is_empty());
    let (folder, name) = match source.rsplit_once('/').filter(|_| is_file) {
        Some(("", name)) => ("/".to_owned(), name),
        Some((folder, name)) => (folder.to_owned(), name),
        None => (source.to_owned(), ""),
    };
    let files = fetched.files.into_iter().map(|file| TaskFile {
        path: if file.path.is_empty() { name.to_owned() } else { file.path },
        is_executable: file.is_executable,
        bytes: file.bytes,
    });
    (folder, files.collect())
}

/// Reads the rewards and the counts of tests from the verifier's folder.
fn read_finding(fetched: Option<FetchedFiles>) -> Finding {
    let fetched = fetched.unwrap_or_default();
    let tests = fetched.get("ctrf.json").and_then(read_ctrf);
    let skipped = |name: &str| fetched.skipped.iter().find(|file| file.path == name);
    // The JSON file takes precedence, whatever it is.
    let unusable = match fetched.get("reward.json") {
        Some(_) => None,
        None => skipped("reward.json").or_else(|| skipped("reward.txt")),
    };
    let rewards = match unusable {
        Some(skipped) => Err(("VerifierOutputParseError".to_owned(), unusable_reward(skipped))),
        None => parse_rewards(fetched.get("reward.json"), fetched.get("reward.txt"))
            .map(|rewards| rewards.all().clone())
            .map_err(|error| (exception_of(&error).to_owned(), error.to_string())),
    };
    Finding { rewards, tests }
}

/// Says what is in place of a reward file, and what the file must be.
fn unusable_reward(skipped: &SkippedFile) -> String {
    let expected = match skipped.path.as_str() {
        "reward.json" => "an object with numbers",
        _ => "one number",
    };
    let found = match skipped.why {
        SkipReason::NotAFile => "is a folder, a link, a pipe or a device",
        SkipReason::TooLong => "is too long",
    };
    format!(
        "`{LOGS}/{}` {found}; the test script must write a regular file with {expected} there",
        skipped.path
    )
}

/// Returns the name of the exception that Harbor raises for unusable rewards.
fn exception_of(error: &RewardError) -> &'static str {
    match error {
        RewardError::Missing => "RewardFileNotFoundError",
        RewardError::Empty { .. } => "RewardFileEmptyError",
        _ => "VerifierOutputParseError",
    }
}

/// Reads the summary of a test report in the Common Test Report Format.
fn read_ctrf(report: &[u8]) -> Option<TestCounts> {
    let report: Value = serde_json::from_slice(report).ok()?;
    let summary = report.get("results")?.get("summary")?;
    let count = |name: &str| summary.get(name).and_then(Value::as_u64);
    Some(TestCounts {
        total: count("tests")?,
        passed: count("passed").unwrap_or(0),
        failed: count("failed").unwrap_or(0),
    })
}

/// Returns the user of a verifier in the older format: the superuser, unless the tests run in the agent's shell.
pub(super) fn old_user(is_same_shell: bool) -> Option<String> {
    (!is_same_shell).then(|| ROOT.to_owned())
}

#[cfg(test)]
mod tests {
    use bench_environments::FetchedFile;

    use super::*;

    fn fetched(files: &[(&str, &str)]) -> FetchedFiles {
        let files = files.iter().map(|(path, text)| FetchedFile {
            omitted: 0,
            path: (*path).to_owned(),
            is_executable: false,
            bytes: text.as_bytes().to_vec(),
        });
        FetchedFiles { files: files.collect(), ..FetchedFiles::default() }
    }

    #[test]
    fn rewards_are_read_or_have_an_exception() {
        let name = |files: &[(&str, &str)]| match read_finding(Some(fetched(files))).rewards {
            Ok(rewards) => format!("{rewards:?}"),
            Err((name, _)) => name,
        };
        assert_eq!(name(&[("reward.txt", "1\n")]), r#"{"reward": 1.0}"#);
        assert_eq!(name(&[("reward.txt", "1"), ("reward.json", r#"{"reward":0.5}"#)]), r#"{"reward": 0.5}"#);
        assert_eq!(name(&[]), "RewardFileNotFoundError");
        assert_eq!(name(&[("reward.txt", "")]), "RewardFileEmptyError");
        assert_eq!(name(&[("reward.txt", "nan")]), "VerifierOutputParseError");
        assert!(read_finding(None).rewards.is_err());
        let skipped = SkippedFile { path: "reward.json".to_owned(), why: SkipReason::NotAFile, bytes: None };
        let link = FetchedFiles { skipped: vec![skipped], ..fetched(&[("reward.txt", "1")]) };
        assert!(
            read_finding(Some(link)).rewards.is_err(),
            "a link in place of the file that takes precedence"
        );
        let message = |path: &str, why, files: &[(&str, &str)]| {
            let skipped = SkippedFile { path: path.to_owned(), why, bytes: None };
            let found = FetchedFiles { skipped: vec![skipped], ..fetched(files) };
            read_finding(Some(found)).rewards.map_err(|(_, message)| message)
        };
        for (path, why, expected) in [
            (
                "reward.txt",
                SkipReason::NotAFile,
                "`/logs/verifier/reward.txt` is a folder, a link, a pipe or a device; the test script must write a \
                 regular file with one number there",
            ),
            (
                "reward.json",
                SkipReason::TooLong,
                "`/logs/verifier/reward.json` is too long; the test script must write a regular file with an object with \
                 numbers there",
            ),
        ] {
            assert_eq!(message(path, why, &[]).unwrap_err(), expected);
        }
        let json = [("reward.json", r#"{"reward":1}"#)];
        assert!(message("reward.txt", SkipReason::NotAFile, &json).is_ok(), "the JSON file takes precedence");
    }

    #[test]
    fn counts_come_from_the_report() {
        let report = r#"{"results":{"summary":{"tests":3,"passed":2,"failed":1}}}"#;
        let finding = read_finding(Some(fetched(&[("reward.txt", "0"), ("ctrf.json", report)])));
        assert_eq!(finding.tests, Some(TestCounts { total: 3, passed: 2, failed: 1 }));
        assert_eq!(read_ctrf(b"{}"), None);
    }

    #[test]
    fn artifacts_go_where_they_were() {
        assert_eq!(placed("/a/b", fetched(&[("x/y", "1")])).0, "/a/b");
        let (folder, files) = placed("/a/b.txt", fetched(&[("", "1")]));
        assert_eq!((folder.as_str(), files[0].path.as_str()), ("/a", "b.txt"));
        assert_eq!(placed("/b.txt", fetched(&[("", "1")])).0, "/");
    }
}
