//! `docs/cost.md`.

use std::fmt::Write;

use crate::counters::Counters;
use crate::measured::MeasuredRun;
use crate::model::{Arch, TURNS_BATCH, Workload, run};
use crate::month::{DAYS, Episodes, Installation, episodes, idle, nightly};
use crate::prices::{PRICES, PRICES_AS_OF, REGION};

/// Aim for the cost of 12,032 samples at 30 s per answer, in USD.
pub const AIM_USD: f64 = 0.30;
/// Aim for a month without users, in USD.
pub const IDLE_AIM_USD: f64 = 5.00;
/// Samples of the whole MMLU-Pro.
pub const AIM_SAMPLES: f64 = 12_032.0;
/// Time of the slowest of 25 answers, relative to the average, if times are distributed lognormally with σ = 0.3: by
/// simulation. Of ten it is 1.54.
const SLOWEST: f64 = 1.74;
/// Samples of the nightly run.
const NIGHTLY_SAMPLES: f64 = 1_500.0;

/// Renders the page.
pub fn page(measured: &[MeasuredRun]) -> String {
    let mut page = String::new();
    let sizes: Vec<String> = measured.iter().map(|run| run.samples.to_string()).collect();
    let month = &Installation::OURS;
    let _ = write!(
        page,
        "# Cost on AWS\n\n\
         `make cost` writes this page, and a test checks that it is current. Prices are AWS's list prices in\n\
         {REGION} as of {PRICES_AS_OF}, without free tier, taxes, models and sandboxes; they are in\n\
         `infra/cost/src/prices.rs` with their sources. Calls, bytes and DynamoDB units are measured: `bench-measure`\n\
         executed runs of {} samples on the embedded services and recorded every call of every function\n\
         (`infra/cost/measured.json`); other sizes are extrapolated linearly. Everything else is\n\
         assumed, as listed below.\n\n",
        sizes.join(" and ")
    );
    page.push_str("| what | USD |\n| --- | ---: |\n");
    let reference = Workload::with_samples(AIM_SAMPLES);
    let slowest_s = SLOWEST * reference.answer_s;
    let with_dashboard = Installation { dashboards: 1.0, ..*month };
    let rows: [(String, Counters); 9] = [
        ("a run of 1 sample".to_owned(), run(measured, &Workload::with_samples(1.0))),
        ("a run of 12,032 samples, 30 s per answer".to_owned(), run(measured, &reference)),
        (
            format!(
                "the same, the slowest answer of {} takes {} s",
                count(reference.batch),
                count(slowest_s)
            ),
            run(measured, &Workload { slowest: SLOWEST, ..reference }),
        ),
        ("the same on x86-64".to_owned(), run(measured, &Workload { arch: Arch::X86, ..reference })),
        (
            "the same, one message per invocation".to_owned(),
            run(measured, &Workload { batch: 1.0, ..reference }),
        ),
        ("750 episodes of 40 turns (model)".to_owned(), episodes(measured, &Episodes::OURS)),
        (
            format!("a month with a run of {} samples every night", count(NIGHTLY_SAMPLES)),
            nightly(measured, NIGHTLY_SAMPLES),
        ),
        ("a month without users".to_owned(), idle(month)),
        ("the same with the dashboard (`CreateDashboard`)".to_owned(), idle(&with_dashboard)),
    ];
    for (what, counters) in &rows {
        let _ = writeln!(page, "| {what} | {} |", usd(counters.usd()));
    }
    let _ = write!(
        page,
        "\nThe aims are at most {AIM_USD:.2} USD for 12,032 samples, and {IDLE_AIM_USD:.2} USD for a month without users.\n\n"
    );
    assumptions(&mut page, &reference);
    for (title, which) in [
        ("1 sample", 0),
        ("12,032 samples, 30 s per answer", 1),
        ("750 episodes of 40 turns", 5),
        ("Every night for a month", 6),
        ("Idle for a month", 7),
    ] {
        if let Some((_, counters)) = rows.get(which) {
            let _ = write!(page, "## {title}\n\n{}\n", bill(counters));
        }
    }
    page.push_str("## Prices\n\n| service | unit | USD | for | page |\n| --- | --- | ---: | ---: | --- |\n");
    for price in &PRICES {
        let per = count(price.per);
        let _ =
            writeln!(page, "| {} | {} | {} | {per} | {} |", price.service, price.unit, price.usd, price.page);
    }
    page
}

fn assumptions(page: &mut String, reference: &Workload) {
    let (episodes, month) = (&Episodes::OURS, &Installation::OURS);
    let _ = write!(
        page,
        "## Assumed\n\n\
         - A run: {} messages per worker invocation, {} MB, arm64, {} samples answered at once, so 12,032 samples take\n  \
           {} minutes; a client requests the status every five seconds, and one signed archive is built; bodies and\n  \
           records are stored for a month.\n\
         - An invocation lasts {:.1} s longer than the slowest of its answers ({:.1} s for the ten turns of an invocation of `turns`):\n  \
           `bench-coldstart` measured 0.37 s of an optimized worker that had the 0.145 CPUs of 256 MB, with the services on loopback\n  \
           and without TLS; the rest is assumed, for AWS's latency and TLS. Items as large as LiveCodeBench's take 7 s.\n\
         - `--slowest` is the time of the slowest answer of an invocation relative to the average. The row with {} s assumes {SLOWEST}, as if the\n  \
           times of answers were distributed lognormally with σ = 0.3.\n\
         - While it waits for answers, each invocation checks every two seconds whether the run was canceled, and each\n  \
           environment tries once a second to write a progress event.\n\
         - Each environment of the worker reads the dataset as often as the one process of the measured runs, and once more for each\n  \
           invocation.\n\
         - Lambda receives and deletes up to ten messages of an invocation with one request each. At an idle queue it keeps {} long polls of {} s\n  \
           open; there are {} such queues. Dead-letter queues have no event source mapping: a schedule invokes `dead-letters`\n  \
           every five minutes.\n\
         - An episode: {} turns of {} s, each a message, an answer and a command; modeled, not measured, as samples\n  \
           that read their transcript ({} KB at the end) first, in `turns` with 512 MB. The sandbox host is not included.\n\
         - A month has {DAYS} days; the nightly run is of {} samples at 30 s, without status requests.\n\
         - Monthly: {} metrics under alarms, {} secrets, {} key, no dashboard, {} GB in the bucket. A test compares these numbers\n  \
           with the template. Without users, functions write no metrics of their own.\n\
         - The key is in its first years: each of its first two rotations adds 1 USD a month. By default KMS rotates it after seven\n  \
           years (`KeyRotationDays`).\n\n",
        count(reference.batch),
        count(reference.memory_mb),
        count(reference.concurrency),
        count((reference.duration_s() / 60.0).ceil()),
        reference.own_s(),
        Workload { batch: TURNS_BATCH, ..*reference }.own_s(),
        count(SLOWEST * reference.answer_s),
        month.pollers,
        month.long_poll_s,
        month.queues,
        episodes.turns,
        episodes.turn_s,
        episodes.transcript_bytes / 1_000.0,
        count(NIGHTLY_SAMPLES),
        month.alarms,
        month.secrets,
        month.keys,
        month.stored_gb,
    );
}

/// Renders a bill as a table, most expensive line first.
pub fn bill(counters: &Counters) -> String {
    let mut lines = counters.bill();
    lines.sort_by(|a, b| b.usd.total_cmp(&a.usd));
    let mut table = "| service | unit | units | USD |\n| --- | --- | ---: | ---: |\n".to_owned();
    for line in lines {
        let (price, units) = (line.price, count(line.units));
        let _ = writeln!(table, "| {} | {} | {units} | {} |", price.service, price.unit, usd(line.usd));
    }
    let _ = writeln!(table, "| **sum** | | | **{}** |", usd(counters.usd()));
    table
}

/// Formats an amount in USD: cents, or more digits for small amounts.
fn usd(amount: f64) -> String {
    match amount {
        amount if amount >= 0.10 => format!("{amount:.2}"),
        amount if amount >= 0.001 => format!("{amount:.4}"),
        amount if amount >= 0.000_000_5 => format!("{amount:.6}"),
        _ => "0".to_owned(),
    }
}

/// Formats a number with thousands separators; small fractions with four digits.
fn count(number: f64) -> String {
    if number < 10.0 && number.fract() != 0.0 {
        return format!("{number:.4}");
    }
    let digits = format!("{:.0}", number.round());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(12_032.0), "12,032");
        assert_eq!(count(999.6), "1,000");
        assert_eq!(count(0.25), "0.2500");
        assert_eq!(count(3.0), "3");
        assert_eq!(
            (usd(1.234), usd(0.0567), usd(0.000_2)),
            ("1.23".into(), "0.0567".into(), "0.000200".into())
        );
        assert_eq!(usd(0.0), "0");
    }
}
