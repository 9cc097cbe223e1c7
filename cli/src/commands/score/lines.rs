//! Reading and grading of responses.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Read};
use std::thread;

use anyhow::Context;
use bench_benchmarks::Benchmark;
use bench_benchmarks::score::{ScoreLine, score_line};
use bench_items::{Row, RowError};
use serde_json::Value;

use super::SharedItem;
use crate::exit::Problem;

/// Maximum length of a line, in bytes.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A line of input.
pub(super) struct Line {
    /// Line number, from 1.
    pub(super) number: u64,
    pub(super) row: Row,
}

/// Lines of a file, read on demand.
pub(super) struct Lines<R> {
    name: String,
    input: R,
    read: u64,
    over: bool,
    /// Error of an unusable line, reported after the lines before it are graded.
    bad: Option<anyhow::Error>,
}

impl<R: Read> Lines<BufReader<R>> {
    pub(super) fn new(name: String, input: R) -> Self {
        Self { name, input: BufReader::with_capacity(256 * 1024, input), read: 0, over: false, bad: None }
    }
}

impl<R: BufRead> Lines<R> {
    /// Returns up to `lines_max` lines, or none at the end. Skips empty lines.
    pub(super) fn batch(&mut self, lines_max: usize) -> anyhow::Result<Vec<Line>> {
        if let Some(error) = self.bad.take() {
            return Err(error);
        }
        let mut batch = Vec::new();
        while batch.len() < lines_max && !self.over {
            match self.next() {
                Ok(Some(line)) => batch.push(line),
                Ok(None) => {}
                Err(error) if batch.is_empty() => return Err(error),
                Err(error) => {
                    self.bad = Some(error);
                    break;
                }
            }
        }
        Ok(batch)
    }

    /// Builds an error about a line.
    pub(super) fn error_at(&self, line: u64, problem: &impl Display) -> anyhow::Error {
        Problem::failure(format!("{}, line {line}: {problem}", self.name)).into()
    }

    /// Returns the name of the input.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the next line that may name an item, or `None` at the end. Skips lines that aren't JSON objects.
    pub(super) fn next_with_item_name(&mut self) -> anyhow::Result<Option<Line>> {
        while !self.over {
            let Some((number, text)) = self.read_text()? else { continue };
            let text = content(number, &text);
            // Most files name no items, so most lines needn't be parsed. A name may be written with escapes.
            let may_name =
                str::from_utf8(text).is_ok_and(|text| text.contains("item_id") || text.contains("\\u"));
            if let (true, Ok(Value::Object(row))) = (may_name, serde_json::from_slice(text)) {
                return Ok(Some(Line { number, row }));
            }
        }
        Ok(None)
    }

    fn next(&mut self) -> anyhow::Result<Option<Line>> {
        let Some((number, text)) = self.read_text()? else { return Ok(None) };
        let text = content(number, &text);
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        match serde_json::from_slice::<Value>(text) {
            Ok(Value::Object(row)) => Ok(Some(Line { number, row })),
            Ok(_) => Err(self.error_at(number, &"it is not a JSON object")),
            Err(error) => {
                // serde counts lines within the text, so only its column is useful.
                let reason = error.to_string();
                let reason = reason.split(" at line ").next().unwrap_or_default();
                Err(self.error_at(number, &format!("it is not JSON (column {}): {reason}", error.column())))
            }
        }
    }

    /// Returns the number and bytes of the next line, or `None` at the end.
    fn read_text(&mut self) -> anyhow::Result<Option<(u64, Vec<u8>)>> {
        let mut text = Vec::new();
        let read = self.input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut text);
        let read = read.with_context(|| format!("could not read {}", self.name))?;
        if read == 0 {
            self.over = true;
            return Ok(None);
        }
        self.read += 1;
        if read as u64 == LINE_BYTES_MAX && text.last() != Some(&b'\n') {
            return Err(self.error_at(self.read, &format!("it is longer than {LINE_BYTES_MAX} bytes")));
        }
        Ok(Some((self.read, text)))
    }
}

/// Strips the byte order mark.
fn content(number: u64, text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").filter(|_| number == 1).unwrap_or(text)
}

/// Grades lines on all processors, and returns the verdicts in order, each with its line's number.
pub(super) fn grade(
    benchmark: &'static dyn Benchmark,
    asked: &[(Line, Option<SharedItem>)],
) -> Vec<(u64, Result<ScoreLine, RowError>)> {
    let one = |(line, item): &(Line, Option<SharedItem>)| {
        (line.number, score_line(benchmark, &line.row, item.as_deref()))
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(asked.len().div_ceil(64));
    if threads < 2 {
        return asked.iter().map(one).collect();
    }
    let part = asked.len().div_ceil(threads);
    thread::scope(|scope| {
        let parts: Vec<_> = asked
            .chunks(part)
            .map(|part| (part, scope.spawn(move || part.iter().map(one).collect::<Vec<_>>())))
            .collect();
        // The part of a thread that panicked is repeated here, so that the panic ends the command with its message.
        parts
            .into_iter()
            .flat_map(|(part, thread)| thread.join().unwrap_or_else(|_| part.iter().map(one).collect()))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_may_name_an_item_are_found() {
        let text = "\u{feff}{\"item_id\":1}\n\n{\"id\":2}\n[\"item_id\"]\n{\"item_id\n{\"item\\u005fid\":6}\n{\"id\":7}";
        let mut lines = Lines::new("f".into(), text.as_bytes());
        let mut numbers = Vec::new();
        while let Some(Line { number, row }) = lines.next_with_item_name().unwrap() {
            assert!(row.contains_key("item_id"));
            numbers.push(number);
        }
        assert_eq!(numbers, [1, 6]);
    }

    fn read(text: &str) -> Result<Vec<u64>, String> {
        let mut lines = Lines::new("f.jsonl".into(), text.as_bytes());
        let mut numbers = Vec::new();
        loop {
            let batch = lines.batch(2).map_err(|error| error.to_string())?;
            if batch.is_empty() {
                return Ok(numbers);
            }
            numbers.extend(batch.iter().map(|line| line.number));
        }
    }

    #[test]
    fn empty_lines_and_a_byte_order_mark_are_passed_over() {
        assert_eq!(read("\u{feff}{}\n\n  \r\n{}\n{}").unwrap(), [1, 4, 5]);
        assert_eq!(read("").unwrap(), [0_u64; 0]);
    }

    #[test]
    fn a_bad_line_is_named() {
        assert!(
            read("{}\n{\"a\":}\n").unwrap_err().starts_with("f.jsonl, line 2: it is not JSON (column 6)")
        );
        assert_eq!(read("{}\n\n[1]\n").unwrap_err(), "f.jsonl, line 3: it is not a JSON object");
        assert!(read("\u{fffd}").is_err());
    }

    #[test]
    fn many_lines_keep_their_order() {
        let benchmark = bench_benchmarks::find("mmlu_pro").unwrap();
        let text: String = (0..1_000)
            .map(|n| {
                format!(
                    "{{\"id\":{n},\"response\":\"the answer is (C)\",\"answer\":\"{}\"}}\n",
                    if n % 3 == 0 { "C" } else { "D" }
                )
            })
            .collect();
        let lines = Lines::new("f".into(), text.as_bytes()).batch(2_000).unwrap();
        let asked: Vec<_> = lines.into_iter().map(|line| (line, None)).collect();
        let graded = grade(benchmark, &asked);
        assert_eq!(graded.len(), 1_000);
        for (n, (number, line)) in graded.into_iter().enumerate() {
            let line = line.unwrap();
            assert_eq!((number, line.id), (n as u64 + 1, Value::from(n)));
            assert_eq!(line.correct, n % 3 == 0);
        }
    }
}
