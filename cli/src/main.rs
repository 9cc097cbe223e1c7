//! The `bench` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before any thread exists: sandboxes are made by processes of this program that have one thread only.
    if let Some(code) = bench_sandbox::isolation::stage_main() {
        return code;
    }
    bench_cli::main()
}
