//! The pages: summary, one part per benchmark, environment and verification.

use crate::bidi_lines::TextBox;
use crate::canvas::{Area, Page};
use crate::chart::percent;
use crate::content::{Benchmark, Report, Table};
use crate::flow::{Align, Flow};
use crate::qr::qr_code;
use crate::shaping::Typesetter;
use crate::style::{
    ALERT, BODY, BOTTOM, INK, LINE, MARGIN_X, MUTED, SMALL, SUBTITLE, TITLE, TextStyle, Typeface, WIDTH,
};
use crate::tables::{Cell, Column};

/// Side of the QR code.
const QR_SIZE: f32 = 96.0;
/// Style of the code's address.
const LINK: TextStyle = TextStyle { size: 9.0, typeface: Typeface::Regular, color: crate::style::ACCENT };

/// Lays out a report.
pub(crate) fn lay_out(report: &Report, typesetter: &Typesetter<'_>) -> Vec<Page> {
    let mut flow = Flow::new(typesetter);
    summary(&mut flow, report);
    for benchmark in &report.benchmarks {
        benchmark_pages(&mut flow, benchmark);
    }
    verification(&mut flow, report);
    let mut pages = flow.into_pages();
    let total = pages.len();
    for (index, page) in pages.iter_mut().enumerate() {
        footer(page, report, typesetter, index + 1, total);
    }
    pages
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
        flow.heading("Scores");
        flow.chart(&report.benchmarks);
        flow.gap(2.0);
        flow.paragraph(&report.chart_legend, SMALL);
        flow.heading("Benchmark Results");
        results(flow, &report.benchmarks);
    }
    flow.heading("Notes");
    flow.bullets(&report.notes);
}

fn results(flow: &mut Flow<'_>, benchmarks: &[Benchmark]) {
    let column = |title: &str, align| Column { title: title.to_owned(), align };
    let columns = [
        column("Benchmark", Align::Left),
        column("Status", Align::Left),
        column("Score", Align::Right),
        column("Items (sampled/completed)", Align::Right),
        column("Coverage", Align::Right),
    ];
    let row = |benchmark: &Benchmark| {
        vec![
            Cell::strong(&benchmark.name),
            Cell::colored(&benchmark.status, status_color(&benchmark.status)),
            Cell::new(benchmark.score.map_or("-".to_owned(), |score| percent(score.value))),
            Cell::new(&benchmark.items),
            Cell::new(&benchmark.coverage),
        ]
    };
    flow.table(&columns, &benchmarks.iter().map(row).collect::<Vec<_>>());
}

fn status_color(status: &str) -> crate::style::Color {
    if status == "failed" { ALERT } else { INK }
}

fn benchmark_pages(flow: &mut Flow<'_>, benchmark: &Benchmark) {
    flow.new_page();
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
        flow.heading(heading);
        flow.facts(facts);
    }
    for (heading, sentences) in &benchmark.lists {
        if !sentences.is_empty() {
            flow.heading(heading);
            flow.bullets(sentences);
        }
    }
}

fn outcomes(flow: &mut Flow<'_>, benchmark: &Benchmark) {
    let total: u64 = benchmark.outcomes.iter().map(|(_, count)| count).sum();
    if total == 0 {
        return;
    }
    flow.heading("Outcomes");
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
    flow.heading(&table.heading);
    let align = |index| if index == 0 { Align::Left } else { Align::Right };
    let columns: Vec<Column> = (0..)
        .zip(&table.columns)
        .map(|(index, title)| Column { title: title.clone(), align: align(index) })
        .collect();
    let rows: Vec<Vec<Cell>> = table.rows.iter().map(|row| row.iter().map(Cell::new).collect()).collect();
    flow.table(&columns, &rows);
}

fn verification(flow: &mut Flow<'_>, report: &Report) {
    flow.new_page();
    flow.outline("Environment and verification");
    flow.limited("Environment and verification", TextStyle { size: 17.0, ..TITLE }, 2);
    flow.heading("Environment");
    flow.facts(&report.environment);
    flow.heading("Verification");
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

/// Formats a number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        let numbers = [0, 12, 123, 1_234, 12_345, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "12", "123", "1,234", "12,345", "1,234,567"]);
    }
}
