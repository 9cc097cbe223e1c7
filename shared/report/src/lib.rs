//! Report of a run as a PDF that one can hand to others: a summary with a chart of the scores, one page per benchmark,
//! and a page about the environment and the verification.
//!
//! [`render`] lays out a [`Report`] with [`Fonts`] and returns the bytes. It reads and writes nothing, and the same
//! report gives the same bytes. Every text may come from a stranger: [`clean`](clean::clean) removes what could hide or
//! reorder other text, and each place limits the length.

mod bidi_lines;
mod canvas;
mod chart;
mod clean;
pub mod content;
mod flow;
mod fonts;
mod pages;
mod pdf;
mod qr;
mod shaping;
mod style;
mod tables;

pub use content::Report;
pub use fonts::{FONT_FILES, FontError, Fonts};

/// A report that couldn't be rendered.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The PDF couldn't be written.
    #[error("the report could not be written as a PDF: {0}")]
    Pdf(String),
    /// A font is unusable.
    #[error(transparent)]
    Font(#[from] FontError),
}

/// Renders a report as a PDF.
///
/// # Errors
/// [`ReportError`] if a font is damaged, or the PDF would exceed a limit of its format.
pub fn render(report: &Report, fonts: &Fonts) -> Result<Vec<u8>, ReportError> {
    let typesetter = shaping::Typesetter::new(fonts)?;
    let pages = pages::lay_out(report, &typesetter);
    pdf::write(report, pages, fonts)
}
