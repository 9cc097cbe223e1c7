//! Command line of the event log.

mod batch;
mod crc;
mod error;
mod index;
mod log;
mod segment;
mod source;
mod varint;
mod writer;

use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::batch::Record;
use crate::error::LogError;
use crate::log::Log;
use crate::writer::{NewRecord, Options, Writer};

const USAGE: &str = "usage: seglog append|cat|find|verify|reindex DIR [TIME] [--OPTION NUMBER]";

/// Error that ends the program.
enum Failure {
    Usage(String),
    Log(LogError),
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Log(error.into())
    }
}

/// Command-line arguments after the command.
struct Arguments {
    positional: Vec<String>,
    options: Vec<(String, u64)>,
}

impl Arguments {
    fn parse(arguments: impl Iterator<Item = String>, known: &[&str]) -> Result<Self, Failure> {
        let mut parsed = Self { positional: Vec::new(), options: Vec::new() };
        let mut arguments = arguments.peekable();
        while let Some(argument) = arguments.next() {
            let Some(name) = argument.strip_prefix("--") else {
                parsed.positional.push(argument);
                continue;
            };
            if !known.contains(&name) {
                return Err(Failure::Usage(format!("unknown option `{argument}`; {USAGE}")));
            }
            let value = arguments.next().and_then(|value| value.parse().ok());
            let value = value.ok_or_else(|| Failure::Usage(format!("`{argument}` needs a number; {USAGE}")))?;
            parsed.options.push((name.to_owned(), value));
        }
        Ok(parsed)
    }

    fn option(&self, name: &str, default: u64) -> u64 {
        let given = self.options.iter().rev().find(|(option, _)| option == name);
        given.map_or(default, |(_, value)| *value)
    }

    fn folder(&self) -> Result<PathBuf, Failure> {
        let folder = self.positional.first().ok_or_else(|| Failure::Usage(USAGE.to_owned()))?;
        Ok(PathBuf::from(folder))
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(status) => status,
        Err(Failure::Usage(message)) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
        Err(Failure::Log(error)) => {
            eprintln!("error: {error}");
            ExitCode::from(if matches!(error, LogError::Corrupt { .. }) { 3 } else { 1 })
        }
    }
}

fn run() -> Result<ExitCode, Failure> {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    match command.as_str() {
        "append" => append(&Arguments::parse(arguments, &["segment-bytes", "index-every"])?),
        "cat" => cat(&Arguments::parse(arguments, &["from", "count"])?),
        "find" => find(&Arguments { positional: arguments.collect(), options: Vec::new() }),
        "verify" => verify(&Arguments::parse(arguments, &[])?),
        "reindex" => {
            let arguments = Arguments::parse(arguments, &["index-every"])?;
            Log::open(&arguments.folder()?)?.reindex(index_every(&arguments))?;
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(Failure::Usage(USAGE.to_owned())),
    }
}

fn index_every(arguments: &Arguments) -> u64 {
    arguments.option("index-every", 4096).max(1)
}

fn append(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let options = Options {
        segment_bytes: arguments.option("segment-bytes", 1 << 20),
        index_every: index_every(arguments),
    };
    let mut writer = Writer::open(&arguments.folder()?, options)?;
    let mut batch = Vec::new();
    for (number, line) in io::stdin().lock().lines().enumerate() {
        let line = line?;
        if line.is_empty() {
            append_batch(&mut writer, &mut batch)?;
            continue;
        }
        let record = parse_record(&line);
        batch.push(record.ok_or_else(|| Failure::Usage(format!("line {} is no record", number + 1)))?);
    }
    append_batch(&mut writer, &mut batch)?;
    Ok(ExitCode::SUCCESS)
}

fn append_batch(writer: &mut Writer, batch: &mut Vec<NewRecord>) -> Result<(), Failure> {
    if !batch.is_empty() {
        let (first, last) = writer.append(std::mem::take(batch))?;
        println!("{first} {last}");
    }
    Ok(())
}

fn parse_record(line: &str) -> Option<NewRecord> {
    let mut fields = line.split('\t');
    let record = NewRecord {
        time: fields.next()?.parse().ok()?,
        key: parse_bytes(fields.next()?),
        value: parse_bytes(fields.next()?),
    };
    fields.next().is_none().then_some(record)
}

fn parse_bytes(field: &str) -> Option<Vec<u8>> {
    (field != "\\N").then(|| field.as_bytes().to_vec())
}

fn cat(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let log = Log::open(&arguments.folder()?)?;
    let mut left = arguments.option("count", u64::MAX);
    if left == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    let outcome = log.read(arguments.option("from", 0), |record| {
        print_record(&mut out, record)?;
        left -= 1;
        Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    out.flush()?;
    outcome?;
    Ok(ExitCode::SUCCESS)
}

fn print_record(out: &mut impl Write, record: &Record) -> io::Result<()> {
    write!(out, "{}\t{}", record.offset, record.time)?;
    for bytes in [&record.key, &record.value] {
        out.write_all(b"\t")?;
        out.write_all(bytes.as_deref().unwrap_or(b"\\N"))?;
    }
    out.write_all(b"\n")
}

fn find(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let log = Log::open(&arguments.folder()?)?;
    let time = arguments.positional.get(1).and_then(|time| time.parse().ok());
    let time = time.ok_or_else(|| Failure::Usage(USAGE.to_owned()))?;
    match log.find(time)? {
        Some(record) => print_record(&mut io::stdout().lock(), &record)?,
        None => println!("none"),
    }
    Ok(ExitCode::SUCCESS)
}

fn verify(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut status = ExitCode::SUCCESS;
    for report in Log::open(&arguments.folder()?)?.verify()? {
        println!(
            "{} batches={} records={} next={} end={} {}",
            report.name, report.batches, report.records, report.next, report.end, report.state
        );
        if report.state == "corrupt" {
            status = ExitCode::from(3);
        }
    }
    Ok(status)
}
