//! The table that the build script writes: n-grams, languages, and normalized characters.

use std::sync::LazyLock;

use super::key;

static DATA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/languages.bin"));

/// View of the table. The data is not copied.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Language codes.
    pub(super) languages: Vec<&'static str>,
    bits: u32,
    slots: &'static [u8],
    keys: &'static [u8],
    starts: &'static [u8],
    owners: &'static [u8],
    probabilities: &'static [u8],
    normalized: &'static [u8],
    /// Rows (from 1) of n-grams of unaccented letters and blanks, indexed by [`latin`]. Most texts have no others.
    latin: Vec<u32>,
    /// Vietnamese letters that can have a mark.
    pub(super) letters: Vec<char>,
    /// Combining marks.
    pub(super) marks: Vec<char>,
    /// Composed letters: first all letters with the first mark, then with the second, and so on.
    pub(super) composed: Vec<char>,
}

/// Number of symbols: a blank, 26 letters in two cases, and an empty position.
const SYMBOLS: usize = 54;

/// Returns the number of a symbol, from 1.
fn symbol(c: char) -> Option<usize> {
    Some(match c {
        ' ' => 1,
        'a'..='z' => c as usize - 'a' as usize + 2,
        'A'..='Z' => c as usize - 'A' as usize + 28,
        _ => return None,
    })
}

/// Returns the index of an n-gram that consists only of symbols.
fn latin(characters: &[char]) -> Option<usize> {
    characters.iter().try_fold(0, |place, &c| Some(place * SYMBOLS + symbol(c)?))
}

/// Table, loaded on first use.
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

/// Returns the number at an index, in a slice of numbers of `N` bytes each.
fn nth<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at * N..)?.first_chunk().copied()
}

impl Table {
    fn read(mut data: &'static [u8]) -> Option<Self> {
        let data = &mut data;
        let languages: Option<Vec<_>> = (0..number(data)?).map(|_| text(data)).collect();
        let bits = u32::try_from(number(data)?).ok()?;
        let slots = take(data, 4 << bits)?;
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
            slots,
            keys,
            starts,
            owners: take(data, entries)?,
            probabilities: take(data, entries * 8)?,
            normalized: take(data, 0x2_0000)?,
            latin: by_symbols,
            letters: text(data)?.chars().collect(),
            marks: text(data)?.chars().collect(),
            composed: text(data)?.chars().collect(),
        })
    }

    /// Normalizes a character.
    pub(super) fn normalize(&self, c: char) -> char {
        let code = nth(self.normalized, c as usize).map(u16::from_le_bytes);
        code.and_then(|code| char::from_u32(code.into())).unwrap_or(c)
    }

    /// Returns the row of an n-gram; `None` if no language has it.
    pub(super) fn row(&self, characters: &[char]) -> Option<u32> {
        if let Some(place) = latin(characters) {
            return self.latin.get(place)?.checked_sub(1);
        }
        let key = key::key(characters);
        let count = self.slots.len() / 4;
        let mut slot = key::first_slot(key, self.bits);
        loop {
            let row = u32::from_le_bytes(nth(self.slots, slot)?).checked_sub(1)?;
            if nth(self.keys, row as usize).map(u64::from_le_bytes) == Some(key) {
                return Some(row);
            }
            slot = (slot + 1) % count;
        }
    }

    /// Returns the languages of a row, as indices, with the n-gram's probability in each.
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
    fn the_table_matches_langdetect() {
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
    fn normalizing_twice_changes_nothing() {
        for c in '\0'..='\u{11000}' {
            let normal = TABLE.normalize(c);
            assert_eq!(TABLE.normalize(normal), normal, "{:x}", c as u32);
        }
        assert_eq!((TABLE.normalize('*'), TABLE.normalize('é'), TABLE.normalize('한')), (' ', 'é', '가'));
    }
}
