//! The pages: summary, one part per benchmark, environment and verification.

use bench_domain::budget::grouped;

use crate::bidi_lines::TextBox;
use crate::canvas::{Area, Page};
use crate::chart::{CHART_MIN, percent};
use crate::content::{Benchmark, Report, Table};
use crate::flow::{Align, Flow, Spacing};
use crate::qr::qr_code;
use crate::shaping::Typesetter;
use crate::style::{
    ALERT, BODY, BOTTOM, INK, LINE, MARGIN_X, MARGIN_Y, MUTED, SMALL, SUBTITLE, TITLE, TextStyle, Typeface,
    WIDTH,
};
use crate::tables::{Cell, Column, TABLE_MIN};

/// Gap between the last benchmark and the environment on the same page.
const PART_GAP: f32 = 26.0;
/// Side of the QR code.
const QR_SIZE: f32 = 96.0;
/// Style of the code's address.
const LINK: TextStyle = TextStyle { size: 9.0, typeface: Typeface::Regular, color: crate::style::ACCENT };

/// Lays out a report.
pub(crate) fn lay_out(report: &Report, typesetter: &Typesetter<'_>) -> Vec<Page> {
    let (last, others) = match report.benchmarks.split_last() {
        Some((last, others)) => (Some(last), others),
        None => (None, &[][..]),
    };
    let mut pages = Vec::new();
    if last.is_some() {
        pages.extend(part(typesetter, |flow| summary(flow, report)));
    }
    for benchmark in others {
        pages.extend(part(typesetter, |flow| benchmark_pages(flow, benchmark)));
    }
    let mut alone = Flow::new(typesetter, Spacing::NORMAL);
    verification(&mut alone, report);
    // More than a page if it takes several.
    let height = if alone.page_count() > 1 { f32::MAX } else { alone.y() - MARGIN_Y };
    pages.extend(part(typesetter, |flow| {
        match last {
            Some(benchmark) => benchmark_pages(flow, benchmark),
            None => summary(flow, report),
        }
        if flow.has_room(PART_GAP + height) {
            flow.gap(PART_GAP);
        } else {
            flow.new_page();
        }
        verification(flow, report);
    }));
    let total = pages.len();
    for (index, page) in pages.iter_mut().enumerate() {
        footer(page, report, typesetter, index + 1, total);
    }
    pages
}

/// Lays out a part that begins on a page of its own, so that its last page has more than a few lines if possible.
fn part<'a>(typesetter: &'a Typesetter<'a>, place: impl Fn(&mut Flow<'a>)) -> Vec<Page> {
    let placed = |spacing| {
        let mut flow = Flow::new(typesetter, spacing);
        place(&mut flow);
        flow
    };
    let normal = placed(Spacing::NORMAL);
    let Some(before_last) = normal.page_count().checked_sub(2).filter(|_| normal.has_sparse_end()) else {
        return normal.into_pages();
    };
    let count = normal.page_count();
    let tight = placed(Spacing::TIGHT);
    if tight.page_count() < count {
        return tight.into_pages();
    }
    let short = placed(Spacing::short(before_last));
    match short.page_count() == count && !short.has_sparse_end() {
        true => short.into_pages(),
        false => normal.into_pages(),
    }
}

fn summary(flow: &mut Flow<'_>, report: &Report) {
    flow.outline(&report.title);
    flow.limited(&report.title, TITLE, 2);
    flow.gap(2.0);
    flow.limited(&report.model, SUBTITLE, 3);
    flow.gap(10.0);
    if let Some(warning) = &report.warning {
        flow.notice(warning);
        flow.gap(10.0);
    }
    flow.figures(&report.figures);
    flow.gap(12.0);
    flow.facts(&report.facts);
    if !report.benchmarks.is_empty() {
        flow.heading("Scores", CHART_MIN);
        flow.chart(&report.benchmarks);
        flow.gap(2.0);
        flow.paragraph(&report.chart_legend, SMALL);
        flow.heading("Benchmark Results", TABLE_MIN);
        results(flow, &report.benchmarks);
    }
    flow.heading("Notes", flow.bullet_height(&report.notes));
    flow.bullets(&report.notes);
}

fn results(flow: &mut Flow<'_>, benchmarks: &[Benchmark]) {
    let column = |title: &str, align| Column { title: title.to_owned(), align };
    let has_samples = benchmarks.iter().any(|benchmark| benchmark.samples.is_some());
    let mut columns = vec![
        column("Benchmark", Align::Left),
        column("Status", Align::Left),
        column("Score", Align::Right),
        column("Items (sampled/completed)", Align::Right),
    ];
    columns.extend(has_samples.then(|| column("Samples", Align::Right)));
    columns.push(column("Coverage", Align::Right));
    let row = |benchmark: &Benchmark| {
        let mut cells = vec![
            Cell::strong(&benchmark.name),
            Cell::colored(&benchmark.status, status_color(&benchmark.status)),
            Cell::new(benchmark.score.map_or("-".to_owned(), |score| percent(score.value))),
            Cell::new(&benchmark.items),
        ];
        cells.extend(has_samples.then(|| Cell::new(benchmark.samples.as_deref().unwrap_or("-"))));
        cells.push(Cell::new(&benchmark.coverage));
        cells
    };
    flow.table(&columns, &benchmarks.iter().map(row).collect::<Vec<_>>());
}

fn status_color(status: &str) -> crate::style::Color {
    if status == "failed" { ALERT } else { INK }
}

fn benchmark_pages(flow: &mut Flow<'_>, benchmark: &Benchmark) {
    flow.outline(&benchmark.heading);
    flow.limited(&benchmark.heading, TextStyle { size: 17.0, ..TITLE }, 2);
    flow.limited(&benchmark.description, BODY.colored(MUTED), 4);
    flow.gap(10.0);
    if let Some(problem) = &benchmark.problem {
        flow.notice(problem);
        flow.gap(10.0);
    }
    flow.figures(&benchmark.figures);
    if benchmark.score.is_some() {
        flow.gap(12.0);
        flow.chart(std::slice::from_ref(benchmark));
    }
    outcomes(flow, benchmark);
    for table in &benchmark.tables {
        scores(flow, table);
    }
    for (heading, facts) in &benchmark.facts {
        flow.heading(heading, flow.fact_height(facts));
        flow.facts(facts);
    }
    for (heading, sentences) in &benchmark.lists {
        if !sentences.is_empty() {
            flow.heading(heading, flow.bullet_height(sentences));
            flow.bullets(sentences);
        }
    }
}

fn outcomes(flow: &mut Flow<'_>, benchmark: &Benchmark) {
    let total: u64 = benchmark.outcomes.iter().map(|(_, count)| count).sum();
    if total == 0 {
        return;
    }
    flow.heading("Outcomes", TABLE_MIN);
    let column = |title: &str, align| Column { title: title.to_owned(), align };
    let columns = [
        column("Outcome", Align::Left),
        column("", Align::Left),
        column("Samples", Align::Right),
        column("Share", Align::Right),
    ];
    let row = |(outcome, count): &(String, u64)| {
        #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
        let share = *count as f64 / total as f64;
        #[allow(clippy::cast_possible_truncation)] // 0 to 1
        let bar = Cell::bar(share as f32);
        vec![Cell::new(outcome), bar, Cell::new(grouped(*count)), Cell::new(percent(share))]
    };
    flow.table(&columns, &benchmark.outcomes.iter().map(row).collect::<Vec<_>>());
}

fn scores(flow: &mut Flow<'_>, table: &Table) {
    flow.heading(&table.heading, TABLE_MIN);
    let align = |index| if index == 0 { Align::Left } else { Align::Right };
    let columns: Vec<Column> = (0..)
        .zip(&table.columns)
        .map(|(index, title)| Column { title: title.clone(), align: align(index) })
        .collect();
    let rows: Vec<Vec<Cell>> = table.rows.iter().map(|row| row.iter().map(Cell::new).collect()).collect();
    flow.table(&columns, &rows);
}

fn verification(flow: &mut Flow<'_>, report: &Report) {
    flow.outline("Environment and verification");
    flow.limited("Environment and verification", TextStyle { size: 17.0, ..TITLE }, 2);
    flow.heading("Environment", flow.fact_height(&report.environment));
    flow.facts(&report.environment);
    let first = report.verification.first().map(String::as_str).unwrap_or_default();
    flow.heading("Verification", flow.paragraph_height(first, BODY, 0.0));
    for paragraph in &report.verification {
        flow.paragraph(paragraph, BODY);
        flow.gap(5.0);
    }
    flow.gap(3.0);
    flow.facts(&report.signature);
    let Some(url) = &report.verify_url else { return };
    flow.gap(12.0);
    flow.make_room(QR_SIZE + 12.0);
    let top = flow.y();
    let (text_x, text_width) = match qr_code(url, MARGIN_X, top, QR_SIZE) {
        Some(code) => {
            flow.page().drawings.push(code);
            flow.link(Area { x: MARGIN_X, y: top, width: QR_SIZE, height: QR_SIZE }, url);
            (MARGIN_X + QR_SIZE + 22.0, WIDTH - QR_SIZE - 22.0)
        }
        None => (MARGIN_X, WIDTH),
    };
    flow.text_at("Check the signed archive here:", BODY, text_x, top + 28.0, text_width, Align::Left);
    let text_box = TextBox { width: text_width, lines_max: 3, chars_max: 400 };
    let mut line_top = top + 42.0;
    for line in flow.typesetter().lines(url, LINK, text_box) {
        let area = Area { x: text_x, y: line_top, width: line.width, height: LINK.line_height() };
        flow.line_at(line, LINK, text_x, line_top, text_width, Align::Left);
        flow.link(area, url);
        line_top += LINK.line_height();
    }
    flow.move_to(top + QR_SIZE);
}

fn footer(page: &mut Page, report: &Report, typesetter: &Typesetter<'_>, number: usize, total: usize) {
    let rule = Area { x: MARGIN_X, y: BOTTOM + 8.0, width: WIDTH, height: 0.6 };
    page.rectangle(rule, LINE);
    let baseline = BOTTOM + 11.0 + SMALL.baseline();
    let left = format!("{} · {}", report.title, report.run_id);
    let texts = [(left, Align::Left), (format!("Page {number} of {total}"), Align::Right)];
    for (text, align) in texts {
        let text_box = TextBox { width: WIDTH - 90.0, lines_max: 1, chars_max: 200 };
        for line in typesetter.lines(&text, SMALL, text_box) {
            let x = if align == Align::Right { MARGIN_X + WIDTH - line.width } else { MARGIN_X };
            let style = SMALL;
            page.drawings.push(crate::canvas::Drawing::Text { x, baseline, line, style });
        }
    }
}

#[cfg(test)]
mod tests;
