//! The `bench` command.

use std::process::ExitCode;

/// Allocator of the command. Runs allocate many short-lived texts on one thread and free them on another. With the C library's
/// allocator, a sample took up to half as much CPU time again (docs/speed.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Must run before any thread exists: processes of this program that create sandboxes may have one thread only.
    if let Some(code) = bench_sandbox::isolation::stage_main() {
        return code;
    }
    bench_cli::main()
}
