//! Reads the texts that a PDF's glyphs stand for, from the tables that readers use for copying and searching.

use std::collections::BTreeSet;
use std::io::Read;

/// Returns the text of each glyph that is in the tables of the fonts.
pub(crate) fn copied(pdf: &[u8]) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    for content in contents(pdf) {
        let lines = content.lines().skip_while(|line| !line.contains("beginbfchar"));
        texts.extend(lines.filter_map(|line| line.split_once("> <")).map(|(_, hex)| text_of(hex)));
    }
    texts
}

/// Returns the compressed streams of a document, as far as they are text.
pub(crate) fn contents(pdf: &[u8]) -> Vec<String> {
    let mut contents = Vec::new();
    let mut rest = pdf;
    while let Some(start) = find(rest, b"stream\n") {
        rest = &rest[start + 7..];
        let end = find(rest, b"endstream").unwrap();
        let mut content = Vec::new();
        // A stream that isn't compressed is empty here.
        let _ = flate2::read::ZlibDecoder::new(&rest[..end]).read_to_end(&mut content);
        contents.push(String::from_utf8_lossy(&content).into_owned());
        rest = &rest[end + 9..];
    }
    contents
}

/// Decodes UTF-16 in hexadecimal digits, up to the closing bracket.
fn text_of(hex: &str) -> String {
    let digits = hex.split('>').next().unwrap_or_default().as_bytes().chunks(4);
    let units: Vec<u16> =
        digits.map(|digits| u16::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap()).collect();
    String::from_utf16(&units).unwrap()
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
