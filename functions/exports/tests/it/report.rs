//! The report as a PDF.

use std::io::Read;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use bench_exports::{ExportFormat, Exports, ExportsConfig, FontSource, router};
use bench_signing::KeyError;
use bench_web::{ServerConfig, finish};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::support::{Said, Script, Stack, config, key_ring, owner_of, script};

const PROMPT: &str = "Which metal is liquid at room temperature, Zarquon?";
const RESPONSE: &str = "The answer is Quxmercury.";

fn app(exports: Exports) -> Router {
    finish(router(Arc::new(exports)), ServerConfig::default())
}

async fn get(app: &Router, path: &str) -> Response<Body> {
    app.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap()
}

async fn bytes(response: Response<Body>) -> Vec<u8> {
    response.into_body().collect().await.unwrap().to_bytes().to_vec()
}

fn said() -> Said {
    Said { prompt: PROMPT.to_owned(), expected: "Quxmercury".to_owned(), ..Said::right(RESPONSE) }
}

/// Returns the letters of a report that its fonts map to text, from their tables for copying.
fn letters(pdf: &[u8]) -> String {
    let mut letters = String::new();
    let mut rest = pdf;
    while let Some(start) = find(rest, b"stream\n") {
        rest = &rest[start + 7..];
        let end = find(rest, b"endstream").unwrap();
        let mut text = Vec::new();
        // Streams that aren't compressed have no such table.
        let _ = flate2::read::ZlibDecoder::new(&rest[..end]).read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        for line in text.lines().skip_while(|line| !line.contains("beginbfchar")) {
            let Some((_, mapped)) = line.split_once("> <") else { continue };
            let units = mapped.trim_end_matches('>').as_bytes().chunks(4);
            let units = units.filter_map(|hex| u16::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
            letters.extend(char::decode_utf16(units).flatten());
        }
        rest = &rest[end + 9..];
    }
    letters
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_for_everybody_who_sees_the_run() {
    let stack = Stack::open().await;
    let gated = Script { benchmark: "gpqa_diamond", owner: owner_of("cpk_1"), ..script(3, |_| Some(said())) };
    gated.play(&stack).await;
    let app = app(stack.exports());
    let path = format!("/api/runs/{}/export", gated.run);
    assert_eq!(get(&app, &format!("{path}?format=jsonl")).await.status(), StatusCode::UNAUTHORIZED);
    let answer = get(&app, &format!("{path}?format=pdf")).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let header = |name| answer.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "application/pdf");
    let name = header("content-disposition");
    assert!(name.contains(&format!("benchmark_report_{}_", gated.run)) && name.ends_with(".pdf\""), "{name}");
    let pdf = bytes(answer).await;
    assert!(pdf.starts_with(b"%PDF-1.7"));
    let letters = letters(&pdf);
    for letter in "Benchmark Run Report 66%".chars().filter(|c| *c != ' ') {
        assert!(letters.contains(letter), "{letter} can be copied: {letters}");
    }
    // No text of the report has these letters, but the prompt has them.
    assert!(!letters.contains('Z') && PROMPT.contains('Z'), "{letters}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_run_gives_the_same_bytes() {
    let stack = Stack::open().await;
    let script = script(20, |position| {
        (position.item != 7).then(|| match position.item % 3 {
            0 => Said::wrong("B"),
            1 => said(),
            _ => Said::failed("the provider is down"),
        })
    });
    script.play(&stack).await;
    let exports = stack.exports();
    let first = exports.build(script.run, ExportFormat::Pdf).await.unwrap();
    let built = stack.bytes(&first.key).await;
    stack.blobs.delete(&first.key).await.unwrap();
    // Another process: nothing is remembered.
    let again = stack.exports().build(script.run, ExportFormat::Pdf).await.unwrap();
    assert_eq!(again, first);
    assert!(stack.bytes(&again.key).await == built, "the bytes differ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_takes_its_sums_from_the_stored_ones() {
    let several = |older| Script {
        samples: 2,
        is_closed_by_older: older,
        ..script(100, |position| {
            let model = format!("acme/model-{}", position.item % 3);
            Some(match position.item % 20 {
                0 => Said { model, ..Said::failed("the provider is down") },
                1..8 => Said { model, ..Said::wrong("B") },
                _ => Said { model, ..Said::right("A") },
            })
        })
    };
    let mut built = Vec::new();
    for older in [false, true] {
        let stack = Stack::open().await;
        let script = several(older);
        script.play(&stack).await;
        stack.calls.clear();
        let export = stack.exports().build(script.run, ExportFormat::Pdf).await.unwrap();
        // Without stored sums, an excerpt of each sample is read: 200 samples in batches of 100.
        let (reads, bytes) = stack.calls.of("BatchGetItem");
        assert_eq!(reads, if older { 2 } else { 0 });
        assert!(bytes < 200 * 400, "whole records are larger: {bytes} bytes");
        assert_eq!(stack.calls.of("GetObject"), (0, 0));
        built.push(stack.bytes(&export.key).await);
    }
    assert!(built[0] == built[1], "the bytes differ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_of_a_stopped_run_counts_its_samples() {
    let stack = Stack::open().await;
    // Reports count samples, so that of an incomplete run can't tell the items whose samples all ended.
    let stopped = Script {
        samples: 2,
        ..script(10, |position| (position.item < 9 || position.sample == 0).then(|| Said::right("A")))
    };
    stopped.play(&stack).await;
    stack.calls.clear();
    let built = stack.exports().build(stopped.run, ExportFormat::Csv).await.unwrap();
    assert!(stack.calls.of("BatchGetItem").0 > 0);
    let table = String::from_utf8(stack.bytes(&built.key).await).unwrap();
    let mut reader = csv::Reader::from_reader(table.trim_start_matches('\u{feff}').as_bytes());
    let column = reader.headers().unwrap().iter().position(|name| name == "completed_items").unwrap();
    assert_eq!(&reader.records().next().unwrap().unwrap()[column], "9");
}

/// Length of a large answer.
const LARGE: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_report_reads_no_answers_and_a_protocol_each_one_once() {
    let stack = Stack::open().await;
    let script = script(4, |position| {
        let letter = char::from(b'a' + u8::try_from(position.item).unwrap());
        // Random digits, so that compression leaves most of them.
        let mut state = u64::from(position.item) + 1;
        let digits = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b'A' + u8::try_from(state % 26).unwrap())
        });
        Some(Said::right(&format!("{letter}{}", digits.take(LARGE).collect::<String>())))
    });
    script.play(&stack).await;
    stack.calls.clear();
    let report = stack.exports().build(script.run, ExportFormat::Pdf).await.unwrap();
    assert_eq!(stack.calls.of("GetObject"), (0, 0), "a report reads no stored answer");
    assert!(report.length < 200_000, "{} bytes", report.length);

    let protocol = stack.exports().build(script.run, ExportFormat::Markdown).await.unwrap();
    let (reads, bytes) = stack.calls.of("GetObject");
    assert_eq!(reads, 4, "one body per sample");
    assert!(bytes > 4 * LARGE as u64 / 2, "{bytes} bytes of bodies are counted");
    assert!(protocol.length > 4 * LARGE as u64, "texts are whole: {} bytes", protocol.length);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_follows_the_key_and_the_address() {
    let stack = Stack::open().await;
    let script = script(2, |_| Some(said()));
    script.play(&stack).await;
    let build = async |keys, address| {
        let exports = stack.exports_with(keys, config().with_public_address(address));
        exports.build(script.run, ExportFormat::Pdf).await.unwrap()
    };
    let plain = build(key_ring(), None).await;
    let addressed = build(key_ring(), Some("https://bench.example/")).await;
    let keyless = build(Err(KeyError::NotConfigured), None).await;
    assert!(plain.key != addressed.key && plain.key != keyless.key);
    assert_eq!(build(key_ring(), Some("https://bench.example")).await.key, addressed.key);
    let link = b"https://bench.example/verify";
    assert!(find(&stack.bytes(&addressed.key).await, link).is_some());
    assert!(find(&stack.bytes(&plain.key).await, link).is_none());
    // Only web addresses become links.
    assert_eq!(build(key_ring(), Some("javascript:alert(1)")).await.key, plain.key);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_fonts_are_an_error_of_the_report_alone() {
    let stack = Stack::open().await;
    let script = script(1, |_| Some(said()));
    script.play(&stack).await;
    let fonts = FontSource::Folder("/nonexistent".into());
    let exports = stack.exports_with(key_ring(), ExportsConfig { fonts, ..config() });
    let error = exports.build(script.run, ExportFormat::Pdf).await.unwrap_err().to_string();
    assert!(error.contains("the font `Inter-Regular.ttf` of reports can't be used"), "{error}");
    exports.build(script.run, ExportFormat::Zip).await.unwrap();
}
