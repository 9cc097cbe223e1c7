//! Prints the requests to AWS of runs of several sizes: `bench-measure [ITEMS]...`, default 40 and 400.
//!
//! Its output is stored as `infra/cost/measured.json`; `bench-cost` predicts other sizes from it.

use bench_cost::MeasuredRun;
use bench_tests::measure::measure;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sizes: Vec<usize> = std::env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let sizes = if sizes.is_empty() { vec![40, 400] } else { sizes };
    let dir = tempfile::tempdir()?;
    let mut runs: Vec<MeasuredRun> = Vec::new();
    for items in sizes {
        runs.push(measure(items, dir.path()).await?);
    }
    println!("{}", serde_json::to_string_pretty(&runs)?);
    Ok(())
}
