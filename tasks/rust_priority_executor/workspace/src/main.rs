//! Runs jobs from standard input.

mod job;

use std::io::{self, Read};
use std::process::ExitCode;

use taskpool::{Handle, Pool};

use crate::job::Job;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let threads = match arguments.as_slice() {
        [] => Some(4),
        [option, threads] if option == "--threads" => threads.parse().ok().filter(|threads| *threads > 0),
        _ => None,
    };
    let Some(threads) = threads else {
        eprintln!("usage: jobrun [--threads N] < JOBS");
        return ExitCode::from(2);
    };
    // Panics are a part of the results.
    std::panic::set_hook(Box::new(|_| {}));
    let mut text = String::new();
    if let Err(error) = io::stdin().lock().read_to_string(&mut text) {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    if run(&text, threads) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs all jobs and prints their results. Returns true if all have one.
fn run(text: &str, threads: usize) -> bool {
    let pool = Pool::new(threads);
    let handles: Vec<(usize, Option<Handle<u64>>)> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| (number + 1, Job::parse(line).map(|job| pool.run(move || job.compute()))))
        .collect();
    let mut is_complete = true;
    for (number, handle) in handles {
        let outcome = handle.map(Handle::wait);
        is_complete &= matches!(outcome, Some(Ok(_)));
        match outcome {
            Some(Ok(value)) => println!("{number}: {value}"),
            Some(Err(message)) => println!("{number}: failed: {message}"),
            None => println!("{number}: invalid"),
        }
    }
    is_complete
}
