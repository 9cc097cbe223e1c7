//! Fonts of reports, as files.
//!
//! The first three are the typefaces of the layout; the others cover scripts that these lack. Their licenses are beside
//! them.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use harfrust::{FontRef, ShaperData};

use crate::style::Typeface;

/// Names of the font files. The first one that has a character is used for it.
pub const FONT_FILES: [&str; 9] = [
    "Inter-Regular.ttf",
    "Inter-SemiBold.ttf",
    "IBMPlexMono-Regular.ttf",
    "IBMPlexSansArabic-Regular.ttf",
    "NotoSansHebrew-Regular.ttf",
    "NotoSansThai-Regular.ttf",
    "NotoSansDevanagari-Regular.ttf",
    "wqy-microhei.ttc",
    "NotoEmoji-Regular.ttf",
];
/// Index of the font for emoji.
pub(crate) const EMOJI: usize = 8;
/// Indices of the fonts of other scripts.
pub(crate) const OTHER_SCRIPTS: std::ops::Range<usize> = 3..9;

/// A font that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the font `{name}` of reports can't be used: {problem}")]
pub struct FontError {
    /// Name of the file.
    pub name: &'static str,
    /// Reason.
    pub problem: String,
}

/// Fonts of a report.
pub struct Fonts {
    faces: Vec<Face>,
}

/// Parsed font. The PDF's own copy of it is made when a report uses it first.
pub(crate) struct Face {
    name: &'static str,
    data: Data,
    shaper: ShaperData,
    units_per_em: f32,
    embedded: OnceLock<Option<krilla::text::Font>>,
}

/// Bytes of a font file.
type Data = Arc<Cow<'static, [u8]>>;

impl std::fmt::Debug for Fonts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.faces.iter().map(|face| face.name)).finish()
    }
}

impl Fonts {
    /// Reads all of [`FONT_FILES`] with the given function.
    ///
    /// # Errors
    /// [`FontError`] if a file can't be read or isn't a font.
    pub fn read(
        read: impl Fn(&'static str) -> std::io::Result<Cow<'static, [u8]>>,
    ) -> Result<Self, FontError> {
        let face = |name: &'static str| {
            let problem = |problem: String| FontError { name, problem };
            let data: Data = Arc::new(read(name).map_err(|error| problem(error.to_string()))?);
            let font = FontRef::from_index(&data, 0).map_err(|error| problem(error.to_string()))?;
            let shaper = ShaperData::new(&font);
            #[allow(clippy::cast_precision_loss)] // at most 16,384
            let units_per_em = shaper.shaper(&font).build().units_per_em() as f32;
            if units_per_em < 1.0 {
                return Err(problem("it has no units".to_owned()));
            }
            Ok(Face { name, data, shaper, units_per_em, embedded: OnceLock::new() })
        };
        Ok(Self { faces: FONT_FILES.into_iter().map(face).collect::<Result<_, _>>()? })
    }

    /// Returns the fonts that are part of the program.
    ///
    /// # Errors
    /// [`FontError`] if one isn't a font.
    #[cfg(feature = "embedded-fonts")]
    pub fn embedded() -> Result<Self, FontError> {
        Self::read(|name| {
            embedded(name).map(Cow::Borrowed).ok_or_else(|| std::io::ErrorKind::NotFound.into())
        })
    }

    pub(crate) fn faces(&self) -> &[Face] {
        &self.faces
    }
}

impl Face {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn font(&self) -> Result<FontRef<'_>, FontError> {
        FontRef::from_index(&self.data, 0)
            .map_err(|error| FontError { name: self.name, problem: error.to_string() })
    }

    pub(crate) fn shaper(&self) -> &ShaperData {
        &self.shaper
    }

    pub(crate) fn units_per_em(&self) -> f32 {
        self.units_per_em
    }

    /// Returns the font for a PDF; `None` if it can't be embedded.
    pub(crate) fn embedded(&self) -> Option<krilla::text::Font> {
        let load = || {
            let bytes: Arc<dyn AsRef<[u8]> + Send + Sync> = Arc::new(SharedBytes(Arc::clone(&self.data)));
            krilla::text::Font::new(bytes.into(), 0)
        };
        self.embedded.get_or_init(load).clone()
    }
}

/// Font bytes in the form that the PDF writer takes.
struct SharedBytes(Data);

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Typeface {
    /// Returns the index of its font.
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Regular => 0,
            Self::Bold => 1,
            Self::Mono => 2,
        }
    }
}

/// Returns a font that is part of the program.
#[cfg(feature = "embedded-fonts")]
fn embedded(name: &str) -> Option<&'static [u8]> {
    macro_rules! file {
        ($name:literal) => {
            ($name, include_bytes!(concat!("../assets/fonts/", $name)).as_slice())
        };
    }
    let files: [(&str, &[u8]); FONT_FILES.len()] = [
        file!("Inter-Regular.ttf"),
        file!("Inter-SemiBold.ttf"),
        file!("IBMPlexMono-Regular.ttf"),
        file!("IBMPlexSansArabic-Regular.ttf"),
        file!("NotoSansHebrew-Regular.ttf"),
        file!("NotoSansThai-Regular.ttf"),
        file!("NotoSansDevanagari-Regular.ttf"),
        file!("wqy-microhei.ttc"),
        file!("NotoEmoji-Regular.ttf"),
    ];
    files.into_iter().find(|(file, _)| *file == name).map(|(_, bytes)| bytes)
}
