//! The helper program as a separate binary, for tests and benchmarks of this crate. In the product, the `bench` command
//! is its own helper.

use std::process::ExitCode;

fn main() -> ExitCode {
    bench_sandbox::isolation::stage_main().unwrap_or(ExitCode::FAILURE)
}
