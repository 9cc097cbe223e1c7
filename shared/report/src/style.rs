//! Page size, colors and text styles.

/// US Letter, in points.
pub(crate) const PAGE_WIDTH: f32 = 612.0;
/// US Letter, in points.
pub(crate) const PAGE_HEIGHT: f32 = 792.0;
/// Left and right margin.
pub(crate) const MARGIN_X: f32 = 72.0;
/// Top and bottom margin. The footer is within the bottom margin's upper edge.
pub(crate) const MARGIN_Y: f32 = 36.0;
/// Width of the text.
pub(crate) const WIDTH: f32 = PAGE_WIDTH - 2.0 * MARGIN_X;
/// Lowest edge of content; the footer follows.
pub(crate) const BOTTOM: f32 = PAGE_HEIGHT - MARGIN_Y - 24.0;

/// Color as red, green and blue.
pub(crate) type Color = (u8, u8, u8);

/// Text.
pub(crate) const INK: Color = (23, 28, 38);
/// Labels and secondary text.
pub(crate) const MUTED: Color = (95, 104, 120);
/// Lines between rows.
pub(crate) const LINE: Color = (222, 226, 233);
/// Background of tables' heads and of the chart's track.
pub(crate) const FAINT: Color = (244, 246, 249);
/// Scores.
pub(crate) const ACCENT: Color = (29, 95, 190);
/// Intervals.
pub(crate) const ACCENT_LIGHT: Color = (173, 202, 240);
/// Warnings and failures.
pub(crate) const ALERT: Color = (170, 56, 20);
/// Background of warnings.
pub(crate) const ALERT_FAINT: Color = (253, 243, 238);

/// Typeface of the first choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typeface {
    /// Running text.
    Regular,
    /// Headings and values.
    Bold,
    /// Digests and ids, in equal widths.
    Mono,
}

/// Size, typeface and color of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TextStyle {
    pub(crate) size: f32,
    pub(crate) typeface: Typeface,
    pub(crate) color: Color,
}

impl TextStyle {
    const fn new(size: f32, typeface: Typeface, color: Color) -> Self {
        Self { size, typeface, color }
    }

    /// Returns the distance between two baselines.
    pub(crate) fn line_height(self) -> f32 {
        (self.size * 1.42).round()
    }

    /// Returns the distance from the top of a line to its baseline.
    pub(crate) fn baseline(self) -> f32 {
        (self.line_height() - self.size) / 2.0 + self.size * 0.87
    }

    /// Returns the same style in another color.
    pub(crate) const fn colored(self, color: Color) -> Self {
        Self { color, ..self }
    }
}

pub(crate) const TITLE: TextStyle = TextStyle::new(22.0, Typeface::Bold, INK);
pub(crate) const SUBTITLE: TextStyle = TextStyle::new(13.0, Typeface::Regular, INK);
pub(crate) const HEADING: TextStyle = TextStyle::new(12.0, Typeface::Bold, INK);
pub(crate) const FIGURE: TextStyle = TextStyle::new(18.0, Typeface::Bold, INK);
pub(crate) const BODY: TextStyle = TextStyle::new(9.0, Typeface::Regular, INK);
pub(crate) const STRONG: TextStyle = TextStyle::new(9.0, Typeface::Bold, INK);
pub(crate) const CODE: TextStyle = TextStyle::new(8.5, Typeface::Mono, INK);
pub(crate) const LABEL: TextStyle = TextStyle::new(9.0, Typeface::Regular, MUTED);
pub(crate) const SMALL: TextStyle = TextStyle::new(8.0, Typeface::Regular, MUTED);
