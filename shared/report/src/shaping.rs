//! Shapes one-directional pieces of a text: chooses the font of each character, and turns characters into glyphs.

use std::ops::Range;

use harfrust::{Direction, Feature, FontRef, GlyphInfo, ShapeOptions, Tag, UnicodeBuffer};
use krilla::text::{GlyphId, KrillaGlyph};
use skrifa::MetadataProvider;
use skrifa::charmap::Charmap;
use unicode_normalization::char::is_combining_mark;

use crate::fonts::{EMOJI, Face, FontError, Fonts, OTHER_SCRIPTS};
use crate::style::{TextStyle, Typeface};

const ZERO_WIDTH_NON_JOINER: char = '\u{200c}';
const ZERO_WIDTH_JOINER: char = '\u{200d}';
const EMOJI_SELECTOR: char = '\u{fe0f}';

/// Glyphs in one font, from left to right.
#[derive(Debug, Clone)]
pub(crate) struct GlyphRun {
    /// Index of the font in [`Fonts`].
    pub(crate) font: usize,
    /// Text of the run, in reading order.
    pub(crate) text: String,
    /// Glyphs, with measures in units of the text's size.
    pub(crate) glyphs: Vec<KrillaGlyph>,
    /// Sum of the advances, in units of the text's size.
    pub(crate) width: f32,
}

/// Shapes texts with the fonts of a report.
pub(crate) struct Typesetter<'a> {
    fonts: Vec<UsableFont<'a>>,
    features: [Feature; 1],
}

struct UsableFont<'a> {
    face: &'a Face,
    font: FontRef<'a>,
    charmap: Charmap<'a>,
}

impl<'a> Typesetter<'a> {
    pub(crate) fn new(fonts: &'a Fonts) -> Result<Self, FontError> {
        let usable = |face: &'a Face| {
            let font = face.font()?;
            Ok(UsableFont { face, charmap: font.charmap(), font })
        };
        Ok(Self {
            fonts: fonts.faces().iter().map(usable).collect::<Result<_, FontError>>()?,
            // Digits of equal widths, so that columns of numbers align.
            features: [Feature::new(Tag::new(b"tnum"), 1, ..)],
        })
    }

    /// Shapes a text of one direction, and returns its runs from left to right.
    pub(crate) fn shape(&self, text: &str, is_rtl: bool, style: TextStyle) -> Vec<GlyphRun> {
        let mut runs: Vec<GlyphRun> = self
            .by_font(text, style.typeface)
            .into_iter()
            .filter_map(|(font, range)| self.shape_run(font, text.get(range)?, is_rtl))
            .collect();
        if is_rtl {
            runs.reverse();
        }
        runs
    }

    /// Splits a text into pieces of one font each.
    fn by_font(&self, text: &str, typeface: Typeface) -> Vec<(usize, Range<usize>)> {
        let mut pieces: Vec<(usize, Range<usize>)> = Vec::new();
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let end = at + c.len_utf8();
            let next = chars.peek().map(|(_, next)| *next);
            let current = pieces.last().map(|(font, _)| *font);
            let font = match current {
                Some(current) if self.stays(c, current, typeface) => current,
                _ => self.font_of(c, next, typeface),
            };
            match pieces.last_mut() {
                Some((last, range)) if *last == font => range.end = end,
                _ => pieces.push((font, at..end)),
            }
        }
        pieces
    }

    /// Returns true if a character is set in the font of the text before it.
    fn stays(&self, c: char, font: usize, typeface: Typeface) -> bool {
        // Spaces between words of another script keep its font, so that runs aren't split.
        let is_neutral = c == ' ' && font != typeface.index() && font != EMOJI;
        is_selector(c) || (is_attached(c) || is_neutral) && self.has(font, c)
    }

    fn font_of(&self, c: char, next: Option<char>, typeface: Typeface) -> usize {
        let preferred = typeface.index();
        if next == Some(EMOJI_SELECTOR) && self.has(EMOJI, c) {
            return EMOJI;
        }
        if self.has(preferred, c) {
            return preferred;
        }
        let regular = Typeface::Regular.index();
        std::iter::once(regular).chain(OTHER_SCRIPTS).find(|font| self.has(*font, c)).unwrap_or(preferred)
    }

    fn has(&self, font: usize, c: char) -> bool {
        self.fonts.get(font).is_some_and(|font| font.charmap.map(c).is_some_and(|glyph| glyph.to_u32() != 0))
    }

    /// Returns the text of each glyph, which readers copy. A cluster of several characters is divided among its glyphs
    /// if they are in the order of the characters; else all of them stand for the whole cluster.
    fn text_ranges(&self, font: usize, text: &str, infos: &[GlyphInfo], is_rtl: bool) -> Vec<Range<usize>> {
        let mut ranges = vec![0..0; infos.len()];
        for (cluster, glyphs) in clusters(text, infos, is_rtl) {
            let characters = text.get(cluster.clone()).unwrap_or_default();
            let first_glyph = glyphs.first().and_then(|place| infos.get(*place)).map(|info| info.glyph_id);
            let first = characters.chars().next();
            let nominal =
                first.and_then(|c| self.fonts.get(font)?.charmap.map(c)).map(|glyph| glyph.to_u32());
            let starts: Vec<usize> = characters.char_indices().map(|(at, _)| cluster.start + at).collect();
            let is_divided = glyphs.len() >= starts.len() && first_glyph == nominal;
            for (index, place) in glyphs.into_iter().enumerate() {
                let Some(range) = ranges.get_mut(place) else { continue };
                *range = cluster.clone();
                if is_divided {
                    // Glyphs beyond the last character belong to it.
                    let at = index.min(starts.len().saturating_sub(1));
                    let start = starts.get(at).copied().unwrap_or(cluster.start);
                    *range = start..starts.get(at + 1).copied().unwrap_or(cluster.end);
                }
            }
        }
        ranges
    }

    fn shape_run(&self, font: usize, text: &str, is_rtl: bool) -> Option<GlyphRun> {
        let used = self.fonts.get(font)?;
        let mut buffer = UnicodeBuffer::new();
        buffer.push_str(text);
        buffer.guess_segment_properties();
        buffer.set_direction(if is_rtl { Direction::RightToLeft } else { Direction::LeftToRight });
        let shaper = used.face.shaper().shaper(&used.font).build();
        // In words, the font's hyphens of a digit's width would look odd.
        let is_number = text.chars().all(|c| !c.is_alphabetic());
        let features = self.features.get(..usize::from(is_number)).unwrap_or_default();
        let shaped = shaper.shape(buffer, ShapeOptions::new().features(features));
        let infos = shaped.glyph_infos();
        let units = used.face.units_per_em();
        #[allow(clippy::cast_precision_loss)] // far below 2^24
        let share = |value: i32| value as f32 / units;
        let ranges = self.text_ranges(font, text, infos, is_rtl);
        let glyphs: Vec<KrillaGlyph> = infos
            .iter()
            .zip(shaped.glyph_positions())
            .zip(ranges)
            .map(|((info, position), text_range)| KrillaGlyph {
                glyph_id: GlyphId::new(info.glyph_id),
                text_range,
                x_advance: share(position.x_advance),
                x_offset: share(position.x_offset),
                y_offset: share(position.y_offset),
                y_advance: share(position.y_advance),
                location: None,
            })
            .collect();
        let width = glyphs.iter().map(|glyph| glyph.x_advance).sum();
        Some(GlyphRun { font, text: text.to_owned(), glyphs, width })
    }
}

/// Returns the range of each cluster, in reading order, with the places of its glyphs.
fn clusters(text: &str, infos: &[GlyphInfo], is_rtl: bool) -> Vec<(Range<usize>, Vec<usize>)> {
    let mut clusters: Vec<(Range<usize>, Vec<usize>)> = Vec::new();
    let mut places: Vec<usize> = (0..infos.len()).collect();
    if is_rtl {
        places.reverse();
    }
    for place in places {
        let start = infos.get(place).map_or(0, |info| info.cluster as usize);
        match clusters.last_mut() {
            Some((range, glyphs)) if range.start == start => glyphs.push(place),
            _ => {
                if let Some((range, _)) = clusters.last_mut() {
                    range.end = start;
                }
                clusters.push((start..text.len(), vec![place]));
            }
        }
    }
    clusters
}

/// Returns true if no line may break before this character, because it belongs to the one before.
pub(crate) fn is_attached(c: char) -> bool {
    is_combining_mark(c)
        || is_selector(c)
        || is_skin_tone(c)
        || matches!(c, ZERO_WIDTH_JOINER | ZERO_WIDTH_NON_JOINER)
}

/// Returns true if no line may break after this character.
pub(crate) const fn attaches(c: char) -> bool {
    matches!(c, ZERO_WIDTH_JOINER)
}

const fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}')
}

const fn is_skin_tone(c: char) -> bool {
    matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}
