//! The helper program by itself, for tests and benchmarks of this crate. The product's command is its own helper.

use std::process::ExitCode;

fn main() -> ExitCode {
    bench_sandbox::isolation::stage_main().unwrap_or(ExitCode::FAILURE)
}
