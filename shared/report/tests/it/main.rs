//! Tests of whole reports: texts of strangers, sizes, and the text that readers copy.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod copied;

use std::borrow::Cow;
use std::path::Path;
use std::sync::LazyLock;

use bench_report::content::{Benchmark, Fact, Figure, Score, Table};
use bench_report::{FONT_FILES, Fonts, Report, render};
use proptest::prelude::*;

use crate::copied::{contents, copied};

static FONTS: LazyLock<Fonts> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/fonts");
    Fonts::read(|name| std::fs::read(folder.join(name)).map(Cow::Owned)).unwrap()
});

/// Returns a report in which every text is the given one.
fn report_of(text: &str) -> Report {
    let text = || text.to_owned();
    let figure = || Figure { label: text(), value: text(), detail: text() };
    Report {
        title: text(),
        model: text(),
        run_id: text(),
        warning: Some(text()),
        figures: vec![figure(); 4],
        facts: vec![Fact::new(text(), text()), Fact::code(text(), text())],
        chart_legend: text(),
        benchmarks: vec![Benchmark {
            name: text(),
            heading: text(),
            description: text(),
            status: text(),
            score: Some(Score { value: 0.5, interval: Some((0.25, 0.75)) }),
            problem: Some(text()),
            items: text(),
            samples: Some(text()),
            coverage: text(),
            figures: vec![figure()],
            facts: vec![(text(), vec![Fact::new(text(), text())])],
            outcomes: vec![(text(), 3)],
            tables: vec![Table {
                heading: text(),
                columns: vec![text(), text()],
                rows: vec![vec![text(), text()]],
            }],
            lists: vec![(text(), vec![text()])],
        }],
        notes: vec![text()],
        environment: vec![Fact::new(text(), text())],
        verification: vec![text()],
        signature: vec![Fact::code(text(), text())],
        verify_url: Some("https://bench.example/verify".to_owned()),
        ..Report::default()
    }
}

/// Returns the number of pages: those that have a size.
fn pages(pdf: &[u8]) -> usize {
    let dictionaries = contents(pdf).concat() + &String::from_utf8_lossy(pdf);
    dictionaries.matches("/MediaBox").count()
}

#[test]
fn text_of_every_script_can_be_copied() {
    for text in [
        "Benchmark",
        "Überprüfung",
        "Модель",
        "Μοντέλο",
        "模型",
        "モデル",
        "모델",
        "نموذج",
        "מודל",
        "भाषा",
        "🚀",
    ] {
        let pdf = render(&report_of(text), &FONTS).unwrap();
        let copied = copied(&pdf);
        for letter in text.chars() {
            assert!(copied.contains(&letter.to_string()), "`{letter}` of `{text}` in {copied:?}");
        }
    }
}

#[test]
fn a_glyph_stands_for_its_own_letters() {
    // Vowel signs and consonants are glyphs of their own; a ligature stands for all of its letters.
    let copied = copied(&render(&report_of("भाषा เก็บ"), &FONTS).unwrap());
    for letters in ["भ", "ष", "ा", "ก", "็", "บ"] {
        assert!(copied.contains(letters), "{letters} in {copied:?}");
    }
    assert!(copied.iter().all(|text| !text.is_empty()), "{copied:?}");
}

#[test]
fn markup_and_hidden_characters_are_plain_text() {
    let pdf = render(&report_of("<b> \u{202e}abc\u{2066}\u{0}\u{1b}[31m (a) \\ %PDF"), &FONTS).unwrap();
    let copied = copied(&pdf);
    assert!(copied.contains("<") && copied.contains("\u{fffd}"), "{copied:?}");
    for hidden in ["\u{202e}", "\u{2066}", "\u{0}", "\u{1b}"] {
        assert!(!copied.contains(hidden), "{hidden:?} in {copied:?}");
    }
}

#[test]
fn long_texts_take_a_bounded_number_of_pages() {
    for text in [
        "x".repeat(10_000),
        "模".repeat(10_000),
        "word ".repeat(2_000),
        "\u{301}".repeat(10_000),
        "ب".repeat(10_000),
    ] {
        let pdf = render(&report_of(&text), &FONTS).unwrap();
        let pages = pages(&pdf);
        assert!((3..=8).contains(&pages), "{pages} pages of {:?}", text.chars().next());
        assert!(pdf.len() < 200_000, "{} bytes", pdf.len());
    }
}

#[test]
fn long_tables_are_cut_and_many_benchmarks_fit() {
    let mut report = report_of("mmlu");
    let row = |row: u32| vec![format!("group {row}"), row.to_string()];
    report.benchmarks[0].tables[0].rows = (0..12_000).map(row).collect();
    report.benchmarks = vec![report.benchmarks[0].clone(); 40];
    let pdf = render(&report, &FONTS).unwrap();
    let pages = pages(&pdf);
    assert!((120..=300).contains(&pages), "{pages} pages");
    assert!(pdf.len() < 1_000_000, "{} bytes", pdf.len());
}

#[test]
fn an_empty_report_is_a_document() {
    let pdf = render(&Report::default(), &FONTS).unwrap();
    assert_eq!(pages(&pdf), 1);
}

#[test]
fn a_file_that_is_no_font_is_named() {
    let error = Fonts::read(|_| Ok(Cow::Borrowed(b"%PDF-1.7".as_slice()))).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("the font `{}` of reports can't be used: ", FONT_FILES[0])),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn any_text_gives_the_same_document_twice(text in "\\PC{0,60}|.{0,60}|[\u{600}-\u{6ff}\u{900}-\u{97f} a]{0,40}") {
        let report = report_of(&text);
        let first = render(&report, &FONTS).unwrap();
        prop_assert!(first == render(&report, &FONTS).unwrap());
    }
}
