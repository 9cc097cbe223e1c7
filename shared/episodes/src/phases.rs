//! The course of an episode: environment, agent, verification, step by step.

mod agent;
mod container;
mod custom;
pub(crate) mod instance;
mod keystrokes;
mod pane;
mod setup;
pub(crate) mod think;
pub(crate) mod verification;
mod verifier;

use bench_domain::{EpisodeException, EpisodeReport, EpisodeStep};
use bench_environments::{Environment, FetchFiles};
use bench_terminal_tasks::{Rewards, Step};

use crate::engine::engine_text;
use crate::program::Program;
use crate::stop::{Stop, is_by_agent};
use crate::task::{self, EpisodeTask};
use container::Container;
pub(crate) use think::{has_ended, step_of};

/// Time at which the episode began, in the checkpoint.
pub(crate) const BEGAN: &str = "began";
/// Milliseconds of the setup, in the checkpoint.
pub(crate) const SETUP_MS: &str = "setup-ms";

/// Files that are fetched for the report when the episode ends. They were copied into the sandbox when the phase that
/// wrote them ended.
#[derive(Debug, Clone)]
pub(crate) struct Keeping {
    pub(crate) environment: Environment,
    pub(crate) operation: String,
    pub(crate) fetch: FetchFiles,
    /// Their folder among the kept files.
    pub(crate) folder: String,
    /// Patterns of files to leave out.
    pub(crate) exclude: Vec<String>,
}

impl Keeping {
    pub(crate) fn is_excluded(&self, path: &str) -> bool {
        is_excluded(&self.exclude, path)
    }
}

/// State of an episode within a turn.
pub(crate) struct Course<'a> {
    pub(crate) task: &'a EpisodeTask<'a>,
    pub(crate) nonce: String,
    pub(crate) report: EpisodeReport,
    pub(crate) keepings: Vec<Keeping>,
}

impl<'a> Course<'a> {
    pub(crate) fn new(task: &'a EpisodeTask<'a>, nonce: &str) -> Self {
        Self { task, nonce: nonce.to_owned(), report: EpisodeReport::default(), keepings: Vec::new() }
    }
}

/// Runs the episode from the beginning; everything that is over returns at once.
pub(crate) async fn run(program: &mut Program<'_>, course: &mut Course<'_>) -> Result<(), Stop> {
    let steps: Vec<&Step> = course.task.files.admitted.task.steps.iter().collect();
    let definition = &course.task.files.admitted.task.environment;
    if program.known::<bench_domain::Timestamp>(BEGAN).is_none() {
        program.keep(BEGAN.to_owned(), &bench_clock::now());
    }
    let facts = program.facts().await?;
    course.report.engine = engine_text(&facts);
    let files = course.task.files;
    program.upload(&files.admitted.hash.to_string(), || files.bundle()).await?;
    let environment = task::environment(&task::environment_name(&course.nonce), course.task)?;
    let mut main = Box::pin(setup::start(program, course, environment, definition, &steps)).await?;
    course.report.setup_ms = Some(setup_ms(program));
    let (mut rewards, count) = (Vec::new(), steps.len());
    for (index, step) in steps.into_iter().enumerate() {
        let mut result = EpisodeStep { name: step.name.clone(), ..EpisodeStep::default() };
        let done = run_step(program, course, &mut main, index, step, &mut result).await;
        match done {
            Err(Stop::Exception(exception, log)) => {
                raise(&mut result, exception);
                course.report.logs.extend(log.map(|text| engine_log(step, text)));
            }
            other => other?,
        }
        let earned = result.rewards.clone().map(Rewards::from_map);
        let is_graded = earned.is_some();
        let goes_on = Rewards::reach(earned.as_ref(), step);
        rewards.push(earned);
        if !is_graded && result.exception.as_ref().is_some_and(|exception| is_by_agent(&exception.name)) {
            // Neither this step nor those that can't follow were passed.
            rewards.pop();
            rewards.resize(count, Some(Rewards::none()));
        }
        course.report.steps.push(result);
        // A step without rewards ends the episode, as does one whose rewards are too low for the next step.
        if !is_graded || !goes_on {
            break;
        }
    }
    let combined = Rewards::combine(course.task.files.admitted.task.reward_strategy, &rewards);
    course.report.rewards = combined.map(|rewards| rewards.all().clone());
    Ok(())
}

async fn run_step(
    program: &mut Program<'_>,
    course: &mut Course<'_>,
    main: &mut Container,
    index: usize,
    step: &Step,
    result: &mut EpisodeStep,
) -> Result<(), Stop> {
    Box::pin(agent::run(program, course, main, index, step, result)).await?;
    Box::pin(verifier::run(program, course, main, index, step, result)).await
}

/// Notes an exception of a step. The first one stays, unless the agent's end of its environment decides the grade.
fn raise(result: &mut EpisodeStep, exception: EpisodeException) {
    if result.exception.is_none() || is_by_agent(&exception.name) {
        result.exception = Some(exception);
    }
}

fn engine_log(step: &Step, text: String) -> bench_domain::EpisodeLog {
    let bytes = text.len() as u64;
    let name = step_folder(step, "engine.txt");
    bench_domain::EpisodeLog { name, text, bytes, omitted: 0 }
}

/// Returns the path of a step's file or folder among the kept files.
pub(crate) fn step_folder(step: &Step, name: &str) -> String {
    named_step_folder(step.name.as_deref(), name)
}

/// Does the same by the name of the step; `None` if the task has no steps.
pub(crate) fn named_step_folder(step: Option<&str>, name: &str) -> String {
    match step {
        Some(step) => format!("steps/{step}/{name}"),
        None => name.to_owned(),
    }
}

fn setup_ms(program: &mut Program<'_>) -> u64 {
    if let Some(known) = program.known(SETUP_MS) {
        return known;
    }
    let began: Option<bench_domain::Timestamp> = program.known(BEGAN);
    let took = began.map(|began| bench_clock::now().since(began)).unwrap_or_default();
    let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    program.keep(SETUP_MS.to_owned(), &took);
    took
}

/// Turns a failure in a phase whose failures don't count into success.
fn ignore(result: Result<(), Stop>) -> Result<(), Stop> {
    match result {
        Err(Stop::Exception(..)) => Ok(()),
        other => other,
    }
}

/// Returns true if a pattern matches the path of a file below an artifact's folder as `tar --exclude` does, by which Harbor
/// leaves files out: the path, its end, or a folder on it. An artifact that is a file has an empty path.
fn is_excluded(patterns: &[String], path: &str) -> bool {
    if path.is_empty() {
        return false;
    }
    let path = format!("./{path}");
    let slashes: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
    let starts = || std::iter::once(0).chain(slashes.iter().map(|at| at + 1));
    let ends = || slashes.iter().copied().chain(std::iter::once(path.len()));
    let mut parts = starts().flat_map(|start| ends().map(move |end| (start, end)));
    parts.any(|(start, end)| {
        let part = path.get(start..end).unwrap_or_default();
        !part.is_empty() && patterns.iter().any(|pattern| matches(pattern, part))
    })
}

/// Returns true if a pattern with `*` and `?` matches a whole text.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || Some(c) == text.get(t) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                p = at + 1;
                t = from + 1;
            }
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|c| *c == '*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_exclude_files_and_folders() {
        let excluded = |pattern: &str, path: &str| is_excluded(&[pattern.to_owned()], path);
        for (pattern, path) in [
            ("*.tmp", "a.tmp"),
            ("*.tmp", "a/b.tmp"),
            ("cache", "cache/x"),
            ("cache", "a/cache/b/x"),
            ("./cache", "cache/x"),
            ("a/b", "a/b/c"),
            ("a/b", "x/a/b"),
            ("a*c", "a/b/c"),
        ] {
            assert!(excluded(pattern, path), "{pattern} {path}");
        }
        let kept = [
            ("cache", "caches/x"),
            ("cache/", "cache/x"),
            ("/cache", "cache/x"),
            ("b/c", "ab/c"),
            ("*.tmp", "a.tmp.txt"),
            ("*", ""),
            ("", "a"),
        ];
        for (pattern, path) in kept {
            assert!(!excluded(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn the_end_of_an_environment_replaces_what_happened_before() {
        let mut result = EpisodeStep::default();
        for (name, expected) in [
            ("NonZeroAgentExitCodeError", "NonZeroAgentExitCodeError"),
            ("VerifierTimeoutError", "NonZeroAgentExitCodeError"),
            ("EnvironmentGoneError", "EnvironmentGoneError"),
            ("RuntimeError", "EnvironmentGoneError"),
            ("DiskLimitExceededError", "DiskLimitExceededError"),
        ] {
            raise(&mut result, EpisodeException { name: name.to_owned(), message: String::new() });
            assert_eq!(result.exception.as_ref().unwrap().name, expected, "{name}");
        }
    }

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, expected) in [
            ("*.log", "a/b.log", true),
            ("*.log", "b.log.txt", false),
            ("a?c", "abc", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abcdf", false),
            ("", "", true),
            ("*", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
