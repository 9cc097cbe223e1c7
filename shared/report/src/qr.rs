//! QR codes.

use qrcode::{Color, EcLevel, QrCode};

use crate::canvas::{Area, Drawing};
use crate::style::INK;

/// Returns a QR code of a text as rectangles, one per stretch of dark modules; `None` for a text that is too long.
/// The margin that readers need is left free by the caller: four modules.
pub(crate) fn qr_code(text: &str, x: f32, y: f32, size: f32) -> Option<Drawing> {
    let code = QrCode::with_error_correction_level(text, EcLevel::M).ok()?;
    let width = code.width();
    #[allow(clippy::cast_precision_loss)] // at most 177
    let module = size / width as f32;
    let mut areas = Vec::new();
    for (row, modules) in (0_u16..).zip(code.to_colors().chunks(width)) {
        let mut start = None;
        for (column, color) in (0_u16..).zip(modules.iter().chain([&Color::Light])) {
            match (color, start) {
                (Color::Dark, None) => start = Some(column),
                (Color::Light, Some(first)) => {
                    areas.push(Area {
                        x: x + module * f32::from(first),
                        y: y + module * f32::from(row),
                        width: module * f32::from(column - first),
                        // Rows overlap a little, so that no viewer shows seams between them.
                        height: module * 1.02,
                    });
                    start = None;
                }
                _ => {}
            }
        }
    }
    Some(Drawing::Rectangles { areas, color: INK })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_fills_its_square() {
        let Some(Drawing::Rectangles { areas, .. }) =
            qr_code("https://bench.example/verify", 10.0, 20.0, 90.0)
        else {
            panic!("no code");
        };
        let right = areas.iter().map(|area| area.x + area.width).fold(0.0, f32::max);
        let left = areas.iter().map(|area| area.x).fold(f32::MAX, f32::min);
        assert!((left - 10.0).abs() < 0.01 && (right - 100.0).abs() < 0.01, "{left} {right}");
    }

    #[test]
    fn a_text_beyond_the_largest_code_has_none() {
        assert!(qr_code(&"x".repeat(5_000), 0.0, 0.0, 90.0).is_none());
    }
}
