//! The verification of a task of Terminal-Bench 1: its tests' output decides.
//!
//! The official program types the command into a terminal of 160 columns and reads the screen. Here the script runs
//! without a terminal, so that its output isn't wrapped, and the same parsers read it.

use bench_domain::{EpisodeException, EpisodeLog, EpisodeStep, TestCounts};
use bench_environments::{Exec, ExecResult};
use bench_terminal_tasks::{PaneParser, Step, parse_pane};

use super::container::{Command, Container};
use super::verifier::{TESTS, old_user, phase_of, put_tests};
use super::{Course, step_folder};
use crate::program::Program;
use crate::stop::Stop;

/// Maximum size of the output that is kept, in bytes.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

struct Tested {
    is_timed_out: bool,
    elapsed_ms: u64,
    /// Results of the tests; `None` if the output shows none.
    results: Option<TestCounts>,
}

/// Runs the tests and parses their output. As in the official program, a run without results and one that takes too long
/// count as failed.
pub(super) async fn verify(
    program: &mut Program<'_>,
    course: &mut Course<'_>,
    container: &Container,
    index: usize,
    step: &Step,
    (parser, is_same_shell): (PaneParser, bool),
    result: &mut EpisodeStep,
) -> Result<(), Stop> {
    let phase = phase_of(step);
    let broken = |stop: Stop| stop.broken_by_agent(phase);
    put_tests(program, course, container, index, step, phase).await.map_err(broken)?;
    let line = format!("bash {TESTS}/run-tests.sh 2>&1");
    let command = Command {
        line: &line,
        user: old_user(is_same_shell),
        env: [("TEST_DIR".to_owned(), TESTS.to_owned())].into(),
        time_limit: step.verifier.timeout,
        phase,
    };
    let exec = Exec { stdout_bytes_max: OUTPUT_BYTES_MAX, ..container.exec(command) };
    let operation = format!("s{index}-tests");
    let output = program.run(&container.environment, &operation, &exec, phase).await.map_err(broken)?;
    let tested = read(parser, &output);
    let text = output.stdout.text();
    let bytes = text.len() as u64;
    let name = step_folder(step, "verifier/test-stdout.txt");
    course.report.logs.push(EpisodeLog { name, text, bytes, omitted: output.stdout.omitted });
    result.verifier_ms = Some(tested.elapsed_ms);
    result.tests = tested.results;
    if tested.is_timed_out {
        let seconds = step.verifier.timeout.as_secs();
        let message = format!("the tests did not end within their {seconds} s, which counts as failed");
        result.exception.get_or_insert(EpisodeException { name: "VerifierTimeoutError".to_owned(), message });
    }
    let passed = tested.results.is_some_and(|counts| counts.failed == 0) && !tested.is_timed_out;
    result.rewards = Some([("reward".to_owned(), f64::from(u8::from(passed)))].into());
    Ok(())
}

fn read(parser: PaneParser, output: &ExecResult) -> Tested {
    let results = parse_pane(parser, &output.stdout.text()).ok();
    let results = results.map(|results| {
        let passed = results.0.values().filter(|passed| **passed).count() as u64;
        let total = results.0.len() as u64;
        TestCounts { total, passed, failed: total - passed }
    });
    Tested { is_timed_out: output.is_timed_out(), elapsed_ms: output.elapsed_ms, results }
}
