//! Answers requests about the library, a line each: an operation and its arguments. Bytes are given as hexadecimal digits.

use std::alloc::{GlobalAlloc, Layout, System};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::atomic::{AtomicUsize, Ordering};

use logline::{Feed, Field, ParseError, Record, Records, Stream, Value};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grown(size: usize) {
    COUNT.fetch_add(1, Ordering::Relaxed);
    let live = LIVE.fetch_add(size, Ordering::Relaxed) + size;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        grown(size);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Item<'a> = Result<Record<'a>, ParseError>;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|index| u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap()).collect()
}

/// Says whether a text is borrowed from `input`: `b` if it is, `?` if it is borrowed from elsewhere, `o` if it is owned.
fn origin(text: &Cow<'_, str>, input: &[u8]) -> &'static str {
    match text {
        Cow::Owned(_) => "o",
        Cow::Borrowed(text) => {
            let (start, end) = (text.as_ptr() as usize, text.as_ptr() as usize + text.len());
            let range = input.as_ptr() as usize..=input.as_ptr() as usize + input.len();
            if range.contains(&start) && range.contains(&end) { "b" } else { "?" }
        }
    }
}

fn shown(item: &Item<'_>, input: &[u8]) -> String {
    let record = match item {
        Ok(record) => record,
        Err(error) => return format!("error {error}"),
    };
    let fields: Vec<String> = record
        .fields
        .iter()
        .map(|Field { key, value }| {
            let key_origin = origin(key, input);
            match value {
                Value::Flag => format!("{key}:{key_origin}"),
                Value::Text(text) => format!("{key}:{key_origin}={text:?}:{}", origin(text, input)),
            }
        })
        .collect();
    format!("{} {}", record.line, fields.join(" "))
}

fn lazily<'a>(input: &'a [u8]) -> Vec<Item<'a>> {
    let mut records: Records<'a> = logline::records(input);
    let mut items = Vec::new();
    for item in records.by_ref() {
        items.push(item);
    }
    assert!(records.next().is_none());
    items
}

/// Feeds chunks, takes at most `limit` items of each, and keeps all of them until the end.
fn feed<'c>(chunks: &'c [Vec<u8>], limit: usize) -> Vec<String> {
    let mut stream = Stream::new();
    let mut kept: Vec<(usize, Item<'c>)> = Vec::new();
    for (number, chunk) in chunks.iter().enumerate() {
        let feed: Feed<'_, 'c> = stream.feed(chunk);
        for item in feed.take(limit) {
            kept.push((number, item));
        }
    }
    let rest: Vec<Item<'static>> = stream.finish();
    let mut lines: Vec<String> =
        kept.iter().map(|(number, item)| format!("{number}: {}", shown(item, &chunks[*number]))).collect();
    lines.extend(rest.iter().map(|item| format!("end: {}", shown(item, &[]))));
    lines
}

fn push<'c>(chunks: &'c [Vec<u8>]) -> Vec<String> {
    let mut stream = Stream::default();
    let pushed: Vec<Vec<Item<'c>>> = chunks.iter().map(|chunk| stream.push(chunk)).collect();
    let mut lines = Vec::new();
    for (number, items) in pushed.iter().enumerate() {
        lines.extend(items.iter().map(|item| format!("{number}: {}", shown(item, &chunks[number]))));
    }
    lines.extend(stream.finish().iter().map(|item| format!("end: {}", shown(item, &[]))));
    lines
}

/// Counts the allocations of `run`. Returns their number and the highest number of bytes at a time.
fn counted(run: impl FnOnce() -> usize) -> String {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    COUNT.store(0, Ordering::Relaxed);
    let items = run();
    let (count, peak) = (COUNT.load(Ordering::Relaxed), PEAK.load(Ordering::Relaxed) - before);
    format!("{items} {count} {peak}")
}

fn owned(input: &[u8]) -> Vec<Record<'static>> {
    logline::parse(input).into_iter().flatten().map(Record::into_owned).collect()
}

fn answer(operation: &str, arguments: &[&str]) -> Vec<String> {
    let chunks = |from: usize| -> Vec<Vec<u8>> { arguments[from..].iter().map(|hex| bytes(hex)).collect() };
    match operation {
        "parse" => {
            let input = bytes(arguments[0]);
            logline::parse(&input).iter().map(|item| shown(item, &input)).collect()
        }
        "records" => {
            let input = bytes(arguments[0]);
            lazily(&input).iter().map(|item| shown(item, &input)).collect()
        }
        "owned" => {
            let input = bytes(arguments[0]);
            let records = owned(&input);
            let lines = records.iter().map(|record| shown(&Ok(record.clone()), &input)).collect();
            drop(input);
            lines
        }
        "get" => {
            let input = bytes(arguments[0]);
            let records = owned(&input);
            arguments[1..].iter().map(|key| format!("{:?}", records[0].get(key))).collect()
        }
        "feed" => feed(&chunks(1), arguments[0].parse().unwrap()),
        "push" => push(&chunks(0)),
        // A line, how often it is repeated, and the size of chunks (0: all at once).
        "count" => {
            let (repeat, size): (usize, usize) = (arguments[1].parse().unwrap(), arguments[2].parse().unwrap());
            let input = bytes(arguments[0]).repeat(repeat);
            let result = if size == 0 {
                counted(|| logline::records(&input).filter(Result::is_ok).count())
            } else {
                counted(|| {
                    let mut stream = Stream::new();
                    let count: usize = input.chunks(size).map(|chunk| stream.feed(chunk).filter(Result::is_ok).count()).sum();
                    count + stream.finish().len()
                })
            };
            vec![result]
        }
        // Takes the first item of an endless number of them.
        "first" => {
            let input = bytes(arguments[0]).repeat(arguments[1].parse().unwrap());
            vec![counted(|| logline::records(&input).take(1).count())]
        }
        _ => panic!("unknown operation"),
    }
}

fn main() {
    let mut answers: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line.unwrap();
        let mut words = line.split(' ');
        let operation = words.next().unwrap();
        let arguments: Vec<&str> = words.collect();
        answers.insert(number, answer(operation, &arguments));
    }
    for lines in answers.values() {
        for line in lines {
            println!("{line}");
        }
        println!("---");
    }
}
