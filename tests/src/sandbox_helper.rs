//! Program that creates sandboxes for whole-system tests, since the program of such a test is the test harness.

use std::process::ExitCode;

fn main() -> ExitCode {
    bench_sandbox::isolation::stage_main().unwrap_or(ExitCode::FAILURE)
}
