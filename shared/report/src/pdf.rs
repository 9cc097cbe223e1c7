//! Writes pages as a PDF.

use krilla::Document;
use krilla::SerializeSettings;
use krilla::action::{Action, LinkAction};
use krilla::annotation::{Annotation, LinkAnnotation, Target};
use krilla::color::rgb;
use krilla::destination::XyzDestination;
use krilla::geom::{Path, PathBuilder, Point, Rect};
use krilla::metadata::{DateTime, Metadata};
use krilla::num::NormalizedF32;
use krilla::outline::{Outline, OutlineNode};
use krilla::page::PageSettings;
use krilla::paint::{Fill, FillRule};
use krilla::surface::Surface;

use crate::ReportError;
use crate::canvas::{Area, Drawing, Page};
use crate::clean::clean;
use crate::content::{Date, Report};
use crate::fonts::{FontError, Fonts};
use crate::style::{Color, PAGE_HEIGHT, PAGE_WIDTH};

/// Maximum length of a text in the document's metadata, in characters.
const METADATA_CHARS_MAX: usize = 200;
/// Ratio of control points that makes four curves a circle.
const CIRCLE: f32 = 0.552_284_8;

/// Writes the pages. The same pages give the same bytes: the document's date and id are those of the run.
pub(crate) fn write(report: &Report, pages: Vec<Page>, fonts: &Fonts) -> Result<Vec<u8>, ReportError> {
    let mut document = Document::new_with(SerializeSettings::default());
    let mut outline = Outline::new();
    for (index, page) in pages.iter().enumerate() {
        let settings = PageSettings::from_wh(PAGE_WIDTH, PAGE_HEIGHT)
            .ok_or_else(|| ReportError::Pdf("the page has no size".to_owned()))?;
        let mut output = document.start_page_with(settings);
        let mut surface = output.surface();
        for drawing in &page.drawings {
            draw(&mut surface, drawing, fonts)?;
        }
        surface.finish();
        for link in &page.links {
            if let Some(area) = rect(link.area) {
                let target = Target::Action(Action::Link(LinkAction::new(link.url.clone())));
                output.add_annotation(Annotation::new_link(LinkAnnotation::new(area, target), None));
            }
        }
        output.finish();
        for entry in &page.outline {
            let place = XyzDestination::new(index, Point::from_xy(0.0, entry.y));
            let title = clean(&entry.title, METADATA_CHARS_MAX).into_owned();
            outline.push_child(OutlineNode::new(title, place));
        }
    }
    document.set_outline(outline);
    let text = |text: &str| clean(text, METADATA_CHARS_MAX).into_owned();
    let metadata = Metadata::new()
        .title(format!("{}: {}", text(&report.title), text(&report.model)))
        .producer(text(&report.producer))
        .creator(text(&report.producer))
        .language("en".to_owned())
        .creation_date(date(report.created))
        .document_id(text(&report.run_id));
    document.set_metadata(metadata);
    document.finish().map_err(|error| ReportError::Pdf(error.to_string()))
}

fn date(date: Date) -> DateTime {
    DateTime::new(date.year)
        .month(date.month)
        .day(date.day)
        .hour(date.hour)
        .minute(date.minute)
        .second(date.second)
        .utc_offset_hour(0)
}

fn draw(surface: &mut Surface<'_>, drawing: &Drawing, fonts: &Fonts) -> Result<(), ReportError> {
    match drawing {
        Drawing::Text { x, baseline, line, style } => {
            surface.set_fill(Some(fill(style.color)));
            let mut x = *x;
            for run in &line.runs {
                let Some(face) = fonts.faces().get(run.font) else { continue };
                let font = face.embedded().ok_or_else(|| FontError {
                    name: face.name(),
                    problem: "it can't be part of a PDF".to_owned(),
                })?;
                let start = Point::from_xy(x, *baseline);
                surface.draw_glyphs(start, &run.glyphs, font, &run.text, style.size, false);
                x += run.width * style.size;
            }
        }
        Drawing::Rectangles { areas, color } => {
            let mut path = PathBuilder::new();
            areas.iter().filter_map(|area| rect(*area)).for_each(|area| path.push_rect(area));
            fill_path(surface, path.finish(), *color);
        }
        Drawing::Dot { x, y, radius, color } => fill_path(surface, circle(*x, *y, *radius), *color),
    }
    Ok(())
}

fn fill_path(surface: &mut Surface<'_>, path: Option<Path>, color: Color) {
    if let Some(path) = path {
        surface.set_fill(Some(fill(color)));
        surface.draw_path(&path);
    }
}

fn fill((red, green, blue): Color) -> Fill {
    Fill {
        paint: rgb::Color::new(red, green, blue).into(),
        opacity: NormalizedF32::ONE,
        rule: FillRule::NonZero,
    }
}

fn rect(area: Area) -> Option<Rect> {
    Rect::from_xywh(area.x, area.y, area.width, area.height)
}

fn circle(x: f32, y: f32, radius: f32) -> Option<Path> {
    let reach = radius * CIRCLE;
    let mut path = PathBuilder::new();
    path.move_to(x + radius, y);
    path.cubic_to(x + radius, y + reach, x + reach, y + radius, x, y + radius);
    path.cubic_to(x - reach, y + radius, x - radius, y + reach, x - radius, y);
    path.cubic_to(x - radius, y - reach, x - reach, y - radius, x, y - radius);
    path.cubic_to(x + reach, y - radius, x + radius, y - reach, x + radius, y);
    path.close();
    path.finish()
}
