//! Tests of the layout: what stays on a page, and where pages begin.

use std::borrow::Cow;
use std::path::Path;

use super::*;
use crate::canvas::Drawing;
use crate::content::Fact;
use crate::fonts::Fonts;
use crate::style::CODE;

const SENTENCE: &str = "Files that are already there are removed before the tests are copied, so that an agent can't leave \
                        traps, and the same is true of the folders that images are built from, unless a compose file \
                        names them by a path that is within the task.";

fn fonts() -> Fonts {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/fonts");
    Fonts::read(|name| std::fs::read(folder.join(name)).map(Cow::Owned)).unwrap()
}

/// Returns a report whose only benchmark has this many facts, each with a digest below, and sentences.
fn report(facts: usize, sentences: usize) -> Report {
    let fact = |index| [Fact::new(format!("Fact {index}"), "official"), Fact::code("", "2cf24dba5fb0a30e")];
    Report {
        title: "Report".to_owned(),
        benchmarks: vec![Benchmark {
            heading: "Benchmark".to_owned(),
            facts: vec![("Facts".to_owned(), (0..facts).flat_map(fact).collect())],
            lists: vec![("List".to_owned(), vec![SENTENCE.to_owned(); sentences])],
            ..Benchmark::default()
        }],
        environment: vec![Fact::new("Program", "bench-runner")],
        verification: vec![SENTENCE.to_owned()],
        ..Report::default()
    }
}

/// Returns the pages without the summary.
fn benchmark_part(report: &Report, typesetter: &Typesetter<'_>) -> Vec<Page> {
    lay_out(report, typesetter).split_off(1)
}

/// Returns the baselines of a page's texts in a typeface, from a left edge on.
fn baselines(page: &Page, typeface: Typeface, left: f32) -> Vec<f32> {
    let texts = page.drawings.iter().filter_map(|drawing| match drawing {
        Drawing::Text { x, baseline, style, .. } if style.typeface == typeface && (x - left).abs() < 0.1 => {
            Some(*baseline)
        }
        _ => None,
    });
    texts.filter(|baseline| *baseline < BOTTOM).collect()
}

#[test]
fn numbers_have_commas() {
    let numbers = [0, 12, 123, 1_234, 12_345, 1_234_567].map(grouped);
    assert_eq!(numbers, ["0", "12", "123", "1,234", "12,345", "1,234,567"]);
}

#[test]
fn sentences_and_facts_stay_whole() {
    let fonts = fonts();
    let typesetter = Typesetter::new(&fonts).unwrap();
    let text_box = TextBox { width: WIDTH - 11.0, lines_max: usize::MAX, chars_max: 1_200 };
    let lines = typesetter.lines(SENTENCE, BODY, text_box).len();
    assert!(lines > 1);
    let mut has_breaks = false;
    for count in 0..24 {
        let pages = benchmark_part(&report(count, 16), &typesetter);
        has_breaks |= pages.len() > 2;
        for page in &pages {
            let dots = page.drawings.iter().filter(|drawing| matches!(drawing, Drawing::Dot { .. })).count();
            let texts = baselines(page, Typeface::Regular, MARGIN_X + 11.0);
            assert_eq!(texts.len(), dots * lines, "{count} facts");
            // Each digest is below the fact that it belongs to.
            let digests = baselines(page, CODE.typeface, MARGIN_X + 118.0);
            let labels = baselines(page, Typeface::Regular, MARGIN_X);
            assert!(digests.len() <= labels.len(), "{count} facts");
            for digest in digests {
                let above = |label: &f32| (8.0..20.0).contains(&(digest - label));
                assert!(labels.iter().any(above), "a digest at {digest} without its fact, {count} facts");
            }
        }
    }
    assert!(has_breaks);
}

#[test]
fn no_heading_ends_a_page() {
    let fonts = fonts();
    let typesetter = Typesetter::new(&fonts).unwrap();
    for count in (1..25).chain(40..50) {
        for page in benchmark_part(&report(count, 4), &typesetter) {
            let headings = baselines(&page, Typeface::Bold, MARGIN_X);
            let last_heading = headings.into_iter().fold(0.0, f32::max);
            let texts = page.drawings.iter().filter_map(|drawing| match drawing {
                Drawing::Text { baseline, .. } if *baseline < BOTTOM => Some(*baseline),
                _ => None,
            });
            let last = texts.fold(0.0, f32::max);
            assert!(last > last_heading, "{count} facts");
        }
    }
}

#[test]
fn the_environment_follows_where_it_fits() {
    let fonts = fonts();
    let typesetter = Typesetter::new(&fonts).unwrap();
    assert_eq!(benchmark_part(&report(3, 3), &typesetter).len(), 1);
    let full = benchmark_part(&report(18, 0), &typesetter);
    assert_eq!(full.len(), 2);
    assert_eq!(full[1].outline.len(), 1, "the environment begins the page");
}

#[test]
fn a_page_has_more_than_a_few_lines() {
    let fonts = fonts();
    let typesetter = Typesetter::new(&fonts).unwrap();
    let mut is_rearranged = false;
    for count in 15..60 {
        let facts = report(count, 0);
        let place = |flow: &mut Flow<'_>| benchmark_pages(flow, &facts.benchmarks[0]);
        let mut plain = Flow::new(&typesetter, Spacing::NORMAL);
        place(&mut plain);
        is_rearranged |= plain.has_sparse_end();
        let pages = part(&typesetter, place);
        let last = pages.last().unwrap();
        let lines = baselines(last, Typeface::Regular, MARGIN_X + 118.0).len();
        assert!(pages.len() == 1 || lines > 2, "{lines} facts on the last page, {count} in all");
    }
    assert!(is_rearranged, "some number of facts would leave a few lines");
}
