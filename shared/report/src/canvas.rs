//! Pages as lists of drawings, before they become a PDF.

use crate::bidi_lines::Line;
use crate::style::{Color, TextStyle};

/// Page of drawings. The origin is the upper left corner.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) drawings: Vec<Drawing>,
    /// Entry of the table of contents, if a part begins on this page.
    pub(crate) outline: Vec<OutlineEntry>,
    /// Links to web pages.
    pub(crate) links: Vec<Link>,
}

/// Entry of the table of contents of the PDF.
#[derive(Debug)]
pub(crate) struct OutlineEntry {
    pub(crate) title: String,
    pub(crate) y: f32,
}

/// Rectangle that leads to a web page.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) area: Area,
    pub(crate) url: String,
}

/// Rectangle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Area {
    pub(crate) x: f32,
    pub(crate) y: f32,
    pub(crate) width: f32,
    pub(crate) height: f32,
}

/// Something drawn.
#[derive(Debug)]
pub(crate) enum Drawing {
    /// Line of text whose baseline starts here.
    Text { x: f32, baseline: f32, line: Line, style: TextStyle },
    /// Filled rectangles of one color.
    Rectangles { areas: Vec<Area>, color: Color },
    /// Filled circle.
    Dot { x: f32, y: f32, radius: f32, color: Color },
}

impl Page {
    pub(crate) fn rectangle(&mut self, area: Area, color: Color) {
        self.drawings.push(Drawing::Rectangles { areas: vec![area], color });
    }
}
