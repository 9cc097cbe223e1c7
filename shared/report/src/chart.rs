//! Chart of the scores with their intervals.

use crate::canvas::{Area, Drawing};
use crate::content::{Benchmark, Score};
use crate::flow::{Align, Flow};
use crate::style::{ACCENT, ACCENT_LIGHT, BODY, LINE, MARGIN_X, MUTED, SMALL, STRONG, WIDTH};

/// Width of the benchmarks' names.
const NAME_WIDTH: f32 = 122.0;
/// Width of the scores.
const SCORE_WIDTH: f32 = 52.0;
/// Width of the intervals.
const INTERVAL_WIDTH: f32 = 92.0;
/// Height of a row.
const ROW_HEIGHT: f32 = 19.0;
/// Left edge of the plot.
const PLOT_X: f32 = MARGIN_X + NAME_WIDTH + 6.0;
/// Width of the plot.
const PLOT_WIDTH: f32 = WIDTH - NAME_WIDTH - SCORE_WIDTH - INTERVAL_WIDTH - 18.0;
/// Height of the labels of the axis.
const AXIS_HEIGHT: f32 = 16.0;
/// Minimum height of a part of the chart.
pub(crate) const CHART_MIN: f32 = AXIS_HEIGHT + ROW_HEIGHT * 2.0;

/// Values at the ends of the axis.
#[derive(Debug, Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Returns 0 to 1, or −1 to 1 if any score or interval is below 0.
    fn new<'a>(scores: impl Iterator<Item = &'a Score>) -> Self {
        let lowest = scores.map(|score| score.interval.map_or(score.value, |(low, _)| low.min(score.value)));
        let low = if lowest.fold(0.0, f64::min) < 0.0 { -1.0 } else { 0.0 };
        Self { low, high: 1.0 }
    }

    fn x(self, value: f64) -> f32 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        #[allow(clippy::cast_possible_truncation)] // 0 to 1
        let share = share as f32;
        PLOT_X + PLOT_WIDTH * share
    }

    fn ticks(self) -> [f64; 5] {
        let step = (self.high - self.low) / 4.0;
        [0.0, 1.0, 2.0, 3.0, 4.0].map(|index| self.low + step * index)
    }
}

impl Flow<'_> {
    /// Places one row per benchmark: its name, the score as a dot on its interval, and both as numbers.
    pub(crate) fn chart(&mut self, benchmarks: &[Benchmark]) {
        let axis = Axis::new(benchmarks.iter().filter_map(|benchmark| benchmark.score.as_ref()));
        let mut rest = benchmarks;
        while !rest.is_empty() {
            self.make_room(CHART_MIN);
            let room = self.bottom() - self.y() - AXIS_HEIGHT;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            // positive, and less than a page
            let fitting = ((room / ROW_HEIGHT) as usize).clamp(1, rest.len());
            let (here, later) = rest.split_at(fitting);
            self.chart_part(here, axis);
            rest = later;
        }
    }

    fn chart_part(&mut self, benchmarks: &[Benchmark], axis: Axis) {
        #[allow(clippy::cast_precision_loss)] // rows of a page
        let height = ROW_HEIGHT * benchmarks.len() as f32;
        let top = self.y();
        for tick in axis.ticks() {
            let x = axis.x(tick);
            self.page().rectangle(Area { x: x - 0.3, y: top, width: 0.6, height }, LINE);
            let label = format!("{:.0}%", tick * 100.0);
            self.text_at(&label, SMALL, x - 20.0, top + height + 2.0, 40.0, Align::Center);
        }
        for (benchmark, index) in benchmarks.iter().zip(0_u16..) {
            self.chart_row(benchmark, axis, top + ROW_HEIGHT * f32::from(index));
        }
        self.move_to(top + height + AXIS_HEIGHT);
    }

    fn chart_row(&mut self, benchmark: &Benchmark, axis: Axis, top: f32) {
        let middle = top + ROW_HEIGHT / 2.0;
        let text_top = middle - BODY.line_height() / 2.0;
        self.text_at(&benchmark.name, BODY, MARGIN_X, text_top, NAME_WIDTH, Align::Left);
        let interval_x = MARGIN_X + WIDTH - INTERVAL_WIDTH;
        let score_x = interval_x - SCORE_WIDTH;
        let Some(score) = benchmark.score else {
            let style = BODY.colored(MUTED);
            self.text_at("no score", style, score_x, text_top, SCORE_WIDTH, Align::Right);
            return;
        };
        if let Some((low, high)) = score.interval {
            let (left, right) = (axis.x(low), axis.x(high));
            let bar = Area { x: left, y: middle - 3.0, width: (right - left).max(0.6), height: 6.0 };
            self.page().rectangle(bar, ACCENT_LIGHT);
        }
        let dot = Drawing::Dot { x: axis.x(score.value), y: middle, radius: 3.2, color: ACCENT };
        self.page().drawings.push(dot);
        self.text_at(&percent(score.value), STRONG, score_x, text_top, SCORE_WIDTH, Align::Right);
        let interval = match score.interval {
            Some((low, high)) => format!("{} – {}", percent_short(low), percent_short(high)),
            None => "no interval".to_owned(),
        };
        self.text_at(&interval, BODY.colored(MUTED), interval_x, text_top, INTERVAL_WIDTH, Align::Right);
    }
}

/// Formats a share in percent with two decimals.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

/// Formats a share in percent with one decimal.
fn percent_short(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
