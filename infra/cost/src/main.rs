//! Prints the cost of runs on AWS.

use std::path::PathBuf;

use anyhow::Context;
use bench_cost::{
    AIM_SAMPLES, AIM_USD, Arch, Counters, MEASURED, MeasuredRun, WORKER_BATCH, WORKER_MB, Workload, bill,
    page, predict, read,
};
use clap::{Parser, Subcommand, ValueEnum};

/// Print the cost of runs on AWS, from measured calls and list prices.
#[derive(Parser)]
#[command(name = "bench-cost", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
    /// Measured runs to predict from, as `bench-measure` prints them, instead of the bundled ones.
    #[arg(long, global = true, value_name = "FILE")]
    measured: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Print the bill for the counters in a JSON file, as `model --counters` prints them.
    Bill {
        /// The file.
        file: PathBuf,
    },
    /// Print the bill of a run of any size.
    Model {
        /// Samples of the run.
        #[arg(long, default_value_t = AIM_SAMPLES)]
        items: f64,
        /// Average seconds for an answer.
        #[arg(long, default_value_t = 30.0)]
        answer_s: f64,
        /// Time of the slowest answer of a batch, relative to the average.
        #[arg(long, default_value_t = 1.0)]
        slowest: f64,
        /// Messages per invocation.
        #[arg(long, default_value_t = WORKER_BATCH)]
        batch: f64,
        /// Memory of the worker, in MB.
        #[arg(long, default_value_t = WORKER_MB)]
        memory: f64,
        /// Samples answered at once.
        #[arg(long, default_value_t = 750.0)]
        concurrency: f64,
        /// Processor of the functions.
        #[arg(long, value_enum, default_value_t = Processor::Arm64)]
        arch: Processor,
        /// Print the counters as JSON instead of their bill.
        #[arg(long)]
        counters: bool,
    },
    /// Print the page `docs/cost.md`.
    Tables,
}

#[derive(Clone, Copy, ValueEnum)]
enum Processor {
    Arm64,
    X86,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let measured = read_measured(args.measured.as_deref())?;
    match args.command {
        Command::Bill { file } => {
            let text = std::fs::read_to_string(&file);
            let text = text.with_context(|| format!("could not read {}", file.display()))?;
            let counters: Counters =
                serde_json::from_str(&text).with_context(|| format!("{} has no counters", file.display()))?;
            print!("{}", bill(&counters));
        }
        Command::Model { items, answer_s, slowest, batch, memory, concurrency, arch, counters } => {
            for (name, value) in [
                ("items", items),
                ("answer-s", answer_s),
                ("slowest", slowest),
                ("batch", batch),
                ("memory", memory),
                ("concurrency", concurrency),
            ] {
                anyhow::ensure!(value.is_finite() && value > 0.0, "--{name} is a number above 0");
            }
            let arch = match arch {
                Processor::Arm64 => Arch::Arm64,
                Processor::X86 => Arch::X86,
            };
            let workload = Workload {
                answer_s,
                slowest,
                batch,
                memory_mb: memory,
                concurrency,
                arch,
                ..Workload::with_samples(items)
            };
            let run = predict(&measured, &workload.polled_every(5.0));
            if counters {
                println!("{}", serde_json::to_string_pretty(&run)?);
            } else {
                print!("{}", bill(&run));
                if items == AIM_SAMPLES && answer_s == 30.0 {
                    println!("\nThe aim is at most {AIM_USD:.2} USD.");
                }
            }
        }
        Command::Tables => print!("{}", page(&measured)),
    }
    Ok(())
}

fn read_measured(file: Option<&std::path::Path>) -> anyhow::Result<Vec<MeasuredRun>> {
    let text = match file {
        Some(file) => {
            std::fs::read_to_string(file).with_context(|| format!("could not read {}", file.display()))?
        }
        None => MEASURED.to_owned(),
    };
    let runs = read(&text).context("no measured runs")?;
    anyhow::ensure!(runs.len() >= 2, "two measured runs of different sizes are needed");
    Ok(runs)
}
