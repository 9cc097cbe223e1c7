//! The `bench` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Must run before any thread exists: processes of this program that create sandboxes may have one thread only.
    if let Some(code) = bench_sandbox::isolation::stage_main() {
        return code;
    }
    bench_cli::main()
}
