//! The `bench` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    bench_cli::main()
}
