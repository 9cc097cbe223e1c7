//! The table that the build script writes: n-grams, languages, and what characters count as.

use std::sync::LazyLock;

use super::key;

static DATA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/languages.bin"));

/// The table, in place: nothing of it is copied.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Codes of the languages.
    pub(super) languages: Vec<&'static str>,
    bits: u32,
    places: &'static [u8],
    keys: &'static [u8],
    starts: &'static [u8],
    owners: &'static [u8],
    probabilities: &'static [u8],
    normal: &'static [u8],
    /// Rows of n-grams of unaccented letters and blanks, from 1, by [`latin`]: most texts have no others.
    latin: Vec<u32>,
    /// Vietnamese letters that take a mark.
    pub(super) letters: Vec<char>,
    /// The marks.
    pub(super) marks: Vec<char>,
    /// Letters with marks, all letters with the first mark first.
    pub(super) composed: Vec<char>,
}

/// Blanks, 26 letters in two cases, and no character at all.
const SYMBOLS: usize = 54;

/// The number of a symbol, from 1.
fn symbol(c: char) -> Option<usize> {
    Some(match c {
        ' ' => 1,
        'a'..='z' => c as usize - 'a' as usize + 2,
        'A'..='Z' => c as usize - 'A' as usize + 28,
        _ => return None,
    })
}

/// The place of an n-gram of symbols only.
fn latin(characters: &[char]) -> Option<usize> {
    characters.iter().try_fold(0, |place, &c| Some(place * SYMBOLS + symbol(c)?))
}

/// Read once.
pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(DATA).unwrap_or_default());

fn take(data: &mut &'static [u8], count: usize) -> Option<&'static [u8]> {
    let (head, rest) = data.split_at_checked(count)?;
    *data = rest;
    Some(head)
}

fn number(data: &mut &'static [u8]) -> Option<usize> {
    let number = u32::from_le_bytes(take(data, 4)?.try_into().ok()?);
    usize::try_from(number).ok()
}

fn text(data: &mut &'static [u8]) -> Option<&'static str> {
    let length = number(data)?;
    std::str::from_utf8(take(data, length)?).ok()
}

/// One of the numbers of `N` bytes each.
fn nth<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at * N..)?.first_chunk().copied()
}

impl Table {
    fn read(mut data: &'static [u8]) -> Option<Self> {
        let data = &mut data;
        let languages: Option<Vec<_>> = (0..number(data)?).map(|_| text(data)).collect();
        let bits = u32::try_from(number(data)?).ok()?;
        let places = take(data, 4 << bits)?;
        let rows = number(data)?;
        let keys = take(data, rows * 8)?;
        let starts = take(data, (rows + 1) * 4)?;
        let entries = usize::try_from(u32::from_le_bytes(nth(starts, rows)?)).ok()?;
        let mut by_symbols = vec![0; SYMBOLS.pow(3)];
        for row in 0..rows {
            let characters = key::characters(u64::from_le_bytes(nth(keys, row)?));
            if let Some(place) = latin(&characters).and_then(|place| by_symbols.get_mut(place)) {
                *place = u32::try_from(row + 1).ok()?;
            }
        }
        Some(Self {
            languages: languages?,
            bits,
            places,
            keys,
            starts,
            owners: take(data, entries)?,
            probabilities: take(data, entries * 8)?,
            normal: take(data, 0x2_0000)?,
            latin: by_symbols,
            letters: text(data)?.chars().collect(),
            marks: text(data)?.chars().collect(),
            composed: text(data)?.chars().collect(),
        })
    }

    /// What a character counts as.
    pub(super) fn normal(&self, c: char) -> char {
        let code = nth(self.normal, c as usize).map(u16::from_le_bytes);
        code.and_then(|code| char::from_u32(code.into())).unwrap_or(c)
    }

    /// The row of an n-gram; `None` when no language has it.
    pub(super) fn row(&self, characters: &[char]) -> Option<u32> {
        if let Some(place) = latin(characters) {
            return self.latin.get(place)?.checked_sub(1);
        }
        let key = key::key(characters);
        let count = self.places.len() / 4;
        let mut at = key::place(key, self.bits);
        loop {
            let row = u32::from_le_bytes(nth(self.places, at)?).checked_sub(1)?;
            if nth(self.keys, row as usize).map(u64::from_le_bytes) == Some(key) {
                return Some(row);
            }
            at = (at + 1) % count;
        }
    }

    /// The languages of a row, as indices, with the row's probability in each.
    pub(super) fn probabilities(&self, row: u32) -> impl Iterator<Item = (usize, f64)> {
        let bound = |at: usize| nth(self.starts, at).map_or(0, |start| u32::from_le_bytes(start) as usize);
        let entries = bound(row as usize)..bound(row as usize + 1);
        let probabilities = self.probabilities.as_chunks::<8>().0.get(entries.clone()).unwrap_or_default();
        let owners = self.owners.get(entries).unwrap_or_default();
        owners
            .iter()
            .zip(probabilities)
            .map(|(owner, bytes)| (usize::from(*owner), f64::from_le_bytes(*bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_that_of_langdetect() {
        assert_eq!(TABLE.languages.len(), 55);
        assert!(TABLE.languages.is_sorted());
        assert_eq!(TABLE.composed.len(), TABLE.letters.len() * TABLE.marks.len());
        assert!(TABLE.row(&['ß']).is_some() && TABLE.row(&['\u{e000}']).is_none());
        let german = TABLE.languages.iter().position(|code| *code == "de").unwrap();
        let row = TABLE.row(&['s', 'c', 'h']).unwrap();
        let (_, most) =
            TABLE.probabilities(row).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(l, p)| (p, l)).unwrap();
        assert_eq!(most, german);
    }

    #[test]
    fn a_normal_character_counts_as_itself() {
        for c in '\0'..='\u{11000}' {
            let normal = TABLE.normal(c);
            assert_eq!(TABLE.normal(normal), normal, "{:x}", c as u32);
        }
        assert_eq!((TABLE.normal('*'), TABLE.normal('é'), TABLE.normal('한')), (' ', 'é', '가'));
    }
}
