//! Writes the table of n-grams that the language detector uses, and the dataset of the code lab.
//!
//! The profiles are those of the `langdetect` crate. They are read at build time, because linking the crate would
//! enable `serde_json/preserve_order` in every program that grades. That would change the order of object members, and
//! with it the digests of datasets and runs.

use std::error::Error;
use std::path::Path;

use langdetect::DetectorFactory;

#[path = "build/code_lab.rs"]
mod code_lab;
#[path = "src/scorers/instructions/text/language/key.rs"]
mod key;

/// Reads little-endian numbers from the start of a byte slice.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Box<dyn Error>> {
        let (head, rest) = self.0.split_at_checked(count).ok_or("the table of n-grams ends early")?;
        self.0 = rest;
        Ok(head)
    }

    fn u32(&mut self) -> Result<u32, Box<dyn Error>> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into()?))
    }

    fn u64(&mut self) -> Result<u64, Box<dyn Error>> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into()?))
    }
}

/// N-gram with the languages that use it and its probability in each.
struct Row {
    key: u64,
    languages: Vec<(u8, f64)>,
}

/// Parses the format that the crate writes: magic number, two bytes of settings, languages, rows.
fn rows(bytes: &[u8]) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut reader = Reader(bytes);
    if reader.take(6)?.get(..4) != Some(b"LDF1") {
        return Err("the table of n-grams doesn't have the format of langdetect 0.1.0".into());
    }
    for _ in 0..reader.u32()? {
        let length = reader.u32()?;
        reader.take(usize::try_from(length)?)?;
    }
    let count = reader.u32()?;
    let mut rows = Vec::new();
    for _ in 0..count {
        let key = reader.u64()?;
        reader.u32()?;
        let mut languages = Vec::new();
        for _ in 0..reader.u32()? {
            let language = u8::try_from(reader.u32()?)?;
            languages.push((language, f64::from_bits(reader.u64()?)));
        }
        rows.push(Row { key, languages });
    }
    Ok(rows)
}

fn push_u32(out: &mut Vec<u8>, number: usize) -> Result<(), Box<dyn Error>> {
    out.extend(u32::try_from(number)?.to_le_bytes());
    Ok(())
}

fn push_text(out: &mut Vec<u8>, text: &str) -> Result<(), Box<dyn Error>> {
    push_u32(out, text.len())?;
    out.extend(text.as_bytes());
    Ok(())
}

/// Builds an open-addressing hash table of the rows: row numbers from 1, with 0 for empty slots.
fn hash_slots(rows: &[Row], bits: u32) -> Result<Vec<u32>, Box<dyn Error>> {
    let mut slots = vec![0; 1 << bits];
    for (number, row) in (1..).zip(rows) {
        let mut slot = key::first_slot(row.key, bits);
        while slots.get(slot).ok_or("a hash is out of range")? != &0 {
            slot = (slot + 1) % slots.len();
        }
        if let Some(entry) = slots.get_mut(slot) {
            *entry = number;
        }
    }
    Ok(slots)
}

/// Returns the normalized form of each character of the basic plane. All other characters are unchanged.
fn normalized_characters() -> Result<Vec<u8>, Box<dyn Error>> {
    let mut normalized = Vec::with_capacity(0x2_0000);
    for code in 0..0x1_0000 {
        let c = char::from_u32(code).map_or(' ', langdetect::text::normalize);
        normalized.extend(u16::try_from(u32::from(c))?.to_le_bytes());
    }
    if ('\u{10000}'..=char::MAX).any(|c| langdetect::text::normalize(c) != c) {
        return Err("a character beyond the basic plane is normalized".into());
    }
    Ok(normalized)
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/code_lab.rs");
    println!("cargo:rerun-if-changed=src/scorers/instructions/text/language/key.rs");
    let factory = DetectorFactory::builtin();
    let rows = rows(&factory.to_bytes())?;
    let bits = (rows.len() * 2).next_power_of_two().trailing_zeros();

    let mut out = Vec::new();
    push_u32(&mut out, factory.langlist().len())?;
    for language in factory.langlist() {
        push_text(&mut out, language)?;
    }
    push_u32(&mut out, usize::try_from(bits)?)?;
    out.extend(hash_slots(&rows, bits)?.into_iter().flat_map(u32::to_le_bytes));
    push_u32(&mut out, rows.len())?;
    out.extend(rows.iter().flat_map(|row| row.key.to_le_bytes()));
    let mut start = 0;
    for row in &rows {
        push_u32(&mut out, start)?;
        start += row.languages.len();
    }
    push_u32(&mut out, start)?;
    let entries = || rows.iter().flat_map(|row| &row.languages);
    out.extend(entries().map(|(language, _)| language));
    out.extend(entries().flat_map(|(_, probability)| probability.to_le_bytes()));
    out.extend(normalized_characters()?);
    let (letters, marks, composed) = langdetect::text::vietnamese_tables();
    push_text(&mut out, &letters)?;
    push_text(&mut out, &marks)?;
    push_text(&mut out, &composed.concat())?;

    let to = std::env::var_os("OUT_DIR").ok_or("cargo gives no OUT_DIR")?;
    std::fs::write(Path::new(&to).join("languages.bin"), out)?;
    code_lab::write(Path::new("../../tasks"), &Path::new(&to).join("code_lab.jsonl"))?;
    Ok(())
}
