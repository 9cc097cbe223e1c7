//! Prints the records of a log as JSON.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use logline::{ParseError, Record, Stream, Value};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let chunk = match arguments.as_slice() {
        [] => None,
        [option, size] if option == "--chunk" => match size.parse() {
            Ok(size) if size > 0 => Some(size),
            _ => return usage(),
        },
        _ => return usage(),
    };
    match run(chunk) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: logline [--chunk SIZE] < LOG");
    ExitCode::from(2)
}

fn run(chunk: Option<usize>) -> io::Result<()> {
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    match chunk {
        None => print_items(&mut out, logline::parse(&input))?,
        Some(size) => {
            let mut stream = Stream::new();
            for chunk in input.chunks(size) {
                print_items(&mut out, stream.push(chunk))?;
            }
            print_items(&mut out, stream.finish())?;
        }
    }
    out.flush()
}

fn print_items(out: &mut impl Write, items: Vec<Result<Record, ParseError>>) -> io::Result<()> {
    for item in items {
        writeln!(out, "{}", item_text(&item))?;
    }
    Ok(())
}

fn item_text(item: &Result<Record, ParseError>) -> String {
    let record = match item {
        Ok(record) => record,
        Err(error) => return format!("{{\"error\":{}}}", quoted(&error.to_string())),
    };
    let fields: Vec<String> = record
        .fields
        .iter()
        .map(|field| match &field.value {
            Value::Flag => format!("{}:true", quoted(&field.key)),
            Value::Text(text) => format!("{}:{}", quoted(&field.key), quoted(text)),
        })
        .collect();
    format!("{{\"line\":{},\"fields\":{{{}}}}}", record.line, fields.join(","))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
