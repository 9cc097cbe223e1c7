//! Breaks paragraphs from standard input into lines.

mod greedy;
mod line;
mod measure;
mod piece;
mod width;

use std::io::{self, Read, Write};
use std::process::ExitCode;

use crate::measure::Measure;

const USAGE: &str = "usage: flow [--width N] [--first N] [--hang N]";

fn main() -> ExitCode {
    let Some(measure) = parse_arguments(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&measure) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Parses command-line arguments. Returns `None` for wrong usage.
fn parse_arguments(mut arguments: impl Iterator<Item = String>) -> Option<Measure> {
    let mut measure = Measure { width: 72, first: 0, hang: 0 };
    while let Some(option) = arguments.next() {
        let target = match option.as_str() {
            "--width" => &mut measure.width,
            "--first" => &mut measure.first,
            "--hang" => &mut measure.hang,
            _ => return None,
        };
        *target = arguments.next()?.parse().ok()?;
    }
    (measure.first.max(measure.hang) < measure.width).then_some(measure)
}

fn run(measure: &Measure) -> io::Result<()> {
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for (number, pieces) in piece::paragraphs(&text).iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        for (number, range) in greedy::lay_out(pieces, measure).into_iter().enumerate() {
            let indent = " ".repeat(measure.indent(number + 1));
            writeln!(out, "{indent}{}", line::text(&pieces[range]))?;
        }
    }
    out.flush()
}
