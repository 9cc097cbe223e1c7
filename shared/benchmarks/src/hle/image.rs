//! Checks the images of questions, which are data URLs, and corrects their media types.
//!
//! Providers reject a whole request if an image is invalid, and some reject a wrong media type. This module finds both
//! before any request is made.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose};
use bench_domain::Image;

/// Accepts base64 with or without padding. Images are sent with padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Reason why an image can't be shown to a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ImageProblem {
    #[error("it is not a data URL with content in base64")]
    NotDataUrl,
    #[error("its base64 does not decode: {0}")]
    Base64(String),
    #[error("its content is neither PNG, JPEG, GIF nor WebP")]
    UnknownFormat,
    #[error("its {0} header is cut off or broken")]
    Header(&'static str),
}

/// Decodes a data URL and returns the image with the media type of its content.
pub(super) fn image(data_url: &str) -> Result<Image, ImageProblem> {
    let (head, payload) = data_url.trim().split_once(',').ok_or(ImageProblem::NotDataUrl)?;
    let scheme = head.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("data:"));
    let mut attributes = head.get(5..).unwrap_or_default().split(';');
    let is_base64 = attributes.any(|attribute| attribute.trim().eq_ignore_ascii_case("base64"));
    if scheme.is_none() || !is_base64 {
        return Err(ImageProblem::NotDataUrl);
    }
    let bare: Vec<u8> = payload.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let content = LENIENT.decode(&bare).map_err(|error| ImageProblem::Base64(error.to_string()))?;
    let format = Format::detect(&content).ok_or(ImageProblem::UnknownFormat)?;
    if !format.has_size(&content) {
        return Err(ImageProblem::Header(format.name()));
    }
    // A valid URL is sent exactly as it is in the dataset.
    let plain = format!("data:{};base64", format.media_type());
    let is_plain = head == plain && bare.len() == payload.len() && bare.len().is_multiple_of(4);
    if is_plain && data_url.len() == head.len() + 1 + payload.len() {
        return Ok(Image { data_url: data_url.to_owned() });
    }
    Ok(Image { data_url: format!("{plain},{}", general_purpose::STANDARD.encode(&content)) })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Png,
    Jpeg,
    Gif,
    WebP,
}

impl Format {
    /// Detects the format from the leading bytes. A few bytes identify it even if the header is broken.
    fn detect(content: &[u8]) -> Option<Self> {
        match content {
            [0x89, b'P', b'N', b'G', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            _ => None,
        }
    }

    const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::WebP => "image/webp",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Gif => "GIF",
            Self::WebP => "WebP",
        }
    }

    /// Returns true if the header is complete and has a nonzero size. Decoders check everything after it.
    fn has_size(self, content: &[u8]) -> bool {
        let is_size = |width: u64, height: u64| width > 0 && height > 0;
        let read = || -> Option<bool> {
            match self {
                Self::Png => {
                    let signature = content.get(..8)? == b"\x89PNG\r\n\x1a\n";
                    let chunk = content.get(8..16)? == b"\0\0\0\x0dIHDR";
                    // The first chunk ends with five bytes of settings and the checksum.
                    content.get(24..33)?;
                    Some(signature && chunk && is_size(big(content, 16, 4)?, big(content, 20, 4)?))
                }
                Self::Gif => {
                    content.get(10..13)?;
                    Some(is_size(little(content, 6, 2)?, little(content, 8, 2)?))
                }
                Self::WebP => webp_size(content).map(|(width, height)| is_size(width, height)),
                Self::Jpeg => jpeg_size(content).map(|(width, height)| is_size(width, height)),
            }
        };
        read().unwrap_or(false)
    }
}

fn webp_size(content: &[u8]) -> Option<(u64, u64)> {
    match content.get(12..16)? {
        b"VP8 " => {
            // Key frames contain this start code.
            (content.get(23..26)? == b"\x9d\x01\x2a").then_some(())?;
            Some((little(content, 26, 2)? & 0x3fff, little(content, 28, 2)? & 0x3fff))
        }
        b"VP8L" => {
            (*content.get(20)? == 0x2f).then_some(())?;
            let bits = little(content, 21, 4)?;
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        b"VP8X" => Some((little(content, 24, 3)? + 1, little(content, 27, 3)? + 1)),
        _ => None,
    }
}

/// Returns the size from the first frame header, skipping earlier segments by their lengths.
fn jpeg_size(content: &[u8]) -> Option<(u64, u64)> {
    let mut at = 2;
    loop {
        (*content.get(at)? == 0xff).then_some(())?;
        at += 1;
        let marker = *content.get(at)?;
        match marker {
            // Fill byte before a marker.
            0xff => continue,
            // Markers without a segment.
            0x01 | 0xd0..=0xd7 => {}
            // Frame headers; the three excluded markers of the range are tables.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((big(content, at + 6, 2)?, big(content, at + 4, 2)?));
            }
            // Scan or end of image before any frame header.
            0xd8..=0xda => return None,
            _ => {
                let length = usize::try_from(big(content, at + 1, 2)?).ok().filter(|length| *length >= 2)?;
                at += length;
            }
        }
        at += 1;
    }
}

fn big(content: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = content.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn little(content: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = content.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn png() -> Vec<u8> {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x03\x08\x02\0\0\0".to_vec();
        png.extend([1, 2, 3, 4]);
        png
    }

    fn jpeg() -> Vec<u8> {
        let mut jpeg = vec![0xff, 0xd8, 0xff, 0xe0, 0, 4, b'J', b'F', 0xff, 0xff];
        jpeg.extend([0xc4, 0, 3, 9, 0xff, 0xc2, 0, 11, 8, 0, 5, 0, 6, 1, 1, 0x11, 0]);
        jpeg
    }

    fn gif() -> Vec<u8> {
        b"GIF89a\x05\0\x06\0\0\0\0".to_vec()
    }

    fn webp() -> Vec<[u8; 30]> {
        [
            *b"RIFF\x16\0\0\0WEBPVP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a\x05\0\x06\0",
            *b"RIFF\x16\0\0\0WEBPVP8L\x0a\0\0\0\x2f\0\0\0\0\0\0\0\0\0",
            *b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x04\0\0\x05\0\0",
        ]
        .into()
    }

    fn url(media_type: &str, content: &[u8]) -> String {
        format!("data:{media_type};base64,{}", general_purpose::STANDARD.encode(content))
    }

    fn every_format() -> Vec<(&'static str, Vec<u8>)> {
        let mut all = vec![("image/png", png()), ("image/jpeg", jpeg()), ("image/gif", gif())];
        all.extend(webp().iter().map(|webp| ("image/webp", webp.to_vec())));
        all
    }

    #[test]
    fn the_media_type_follows_the_content() {
        for (media_type, content) in every_format() {
            let right = url(media_type, &content);
            assert_eq!(image(&right).unwrap().data_url, right);
            for wrong in ["image/jpeg", "image/png", "text/plain", ""] {
                assert_eq!(image(&url(wrong, &content)).unwrap().data_url, right, "{wrong}");
            }
        }
    }

    #[test]
    fn variants_of_a_data_url_are_normalized() {
        let plain = url("image/gif", &gif());
        let payload = plain.split_once(',').unwrap().1;
        let bare = payload.trim_end_matches('=');
        assert!(payload.len() > bare.len());
        for written in [
            format!(" {plain}\n"),
            format!("DATA:image/gif;charset=x;BASE64,{payload}"),
            format!("data:image/gif;base64,{bare}"),
            format!("data:image/gif;base64,{}\r\n{}", &payload[..4], &payload[4..]),
        ] {
            assert_eq!(image(&written).unwrap().data_url, plain, "{written}");
        }
    }

    #[test]
    fn urls_without_an_image_are_rejected() {
        for (written, expected) in [
            ("", ImageProblem::NotDataUrl),
            ("https://host.example/a.png", ImageProblem::NotDataUrl),
            ("data:image/png,abc", ImageProblem::NotDataUrl),
            ("dätä:image/png;base64,abc", ImageProblem::NotDataUrl),
            ("data:image/png;base64,", ImageProblem::UnknownFormat),
            (&url("image/png", b"<svg/>"), ImageProblem::UnknownFormat),
            (&url("image/png", b"BM0000"), ImageProblem::UnknownFormat),
        ] {
            assert_eq!(image(written).unwrap_err(), expected, "{written}");
        }
        let broken = image("data:image/png;base64,iVBO*").unwrap_err();
        assert!(matches!(broken, ImageProblem::Base64(_)), "{broken}");
    }

    #[test]
    fn truncated_or_empty_headers_are_rejected() {
        for (media_type, content) in every_format() {
            let start = if media_type == "image/webp" { 12 } else { 6 };
            for length in start..content.len() - 5 {
                let problem = image(&url(media_type, &content[..length])).unwrap_err();
                assert!(matches!(problem, ImageProblem::Header(_)), "{media_type} {length}: {problem}");
            }
        }
        let mut flat = png();
        flat[19] = 0;
        assert_eq!(image(&url("image/png", &flat)).unwrap_err(), ImageProblem::Header("PNG"));
        let scan_first = [0xff, 0xd8, 0xff, 0xda, 0, 4, 0, 0, 0xff, 0xc0, 0, 11, 8, 0, 5, 0, 6];
        assert_eq!(image(&url("image/jpeg", &scan_first)).unwrap_err(), ImageProblem::Header("JPEG"));
    }

    proptest! {
        #[test]
        fn arbitrary_content_is_accepted_or_rejected(which in 0_usize..6, cut in 0_usize..40, tail in proptest::collection::vec(any::<u8>(), 0..64)) {
            let (media_type, mut content) = every_format().swap_remove(which);
            content.truncate(cut);
            content.extend(tail);
            if let Ok(image) = image(&url(media_type, &content)) {
                prop_assert_eq!(super::image(&image.data_url).unwrap(), image);
            }
        }

        #[test]
        fn arbitrary_text_is_accepted_or_rejected(text in any::<String>()) {
            let _ = image(&text);
            let _ = image(&format!("data:;base64,{text}"));
        }
    }
}
