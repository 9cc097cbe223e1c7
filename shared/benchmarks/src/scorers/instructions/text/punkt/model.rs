//! The English model: what training found out about words.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

/// Seen in upper case: first in a sentence, inside one, or at a place that is not known.
pub(super) const ANY_UPPER: u8 = 2 | 4 | 8;
/// Seen in upper case inside a sentence.
pub(super) const MID_UPPER: u8 = 4;
/// Seen in lower case: first in a sentence, inside one, or at a place that is not known.
pub(super) const ANY_LOWER: u8 = 16 | 32 | 64;
/// Seen in lower case first in a sentence.
pub(super) const BEGIN_LOWER: u8 = 16;

/// FNV-1a: short words are looked up often, and none of them is chosen by anyone.
#[derive(Debug)]
pub(super) struct WordHasher(u64);

impl Default for WordHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type ByWord = BuildHasherDefault<WordHasher>;

/// What training found out, as lower-case types of tokens.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// Abbreviations without their last dot.
    pub(super) abbreviations: HashSet<&'static str, ByWord>,
    /// Words that often start a sentence.
    pub(super) starters: HashSet<&'static str, ByWord>,
    /// Second words by first words: pairs in which the first one's dot does not end a sentence.
    pub(super) collocations: HashSet<(&'static str, &'static str), ByWord>,
    /// Where and in which case a word was seen.
    contexts: HashMap<&'static str, u8, ByWord>,
}

static DATA: &str = include_str!("../../../../../data/punkt_english.txt");

/// Read once.
pub(super) static ENGLISH: LazyLock<Model> = LazyLock::new(|| Model::read(DATA));

impl Model {
    fn read(data: &'static str) -> Self {
        let mut model = Self::default();
        let mut section = "";
        for line in data.lines() {
            let is_comment = section.is_empty() && line.starts_with('#');
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name;
            } else if let Some(bits) = section.strip_prefix("context ") {
                model.contexts.insert(line, bits.parse().unwrap_or_default());
            } else if section == "collocations" {
                model.collocations.extend(line.split_once('\t'));
            } else if section == "starters" {
                model.starters.insert(line);
            } else if !is_comment {
                model.abbreviations.insert(line);
            }
        }
        model
    }

    /// Where and in which case a word was seen: a sum of 2, 4, 8, 16, 32 and 64.
    pub(super) fn context(&self, word: &str) -> u8 {
        self.contexts.get(word).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_the_one_of_punkt_tab() {
        let model = &*ENGLISH;
        assert_eq!(
            (model.abbreviations.len(), model.starters.len(), model.collocations.len(), model.contexts.len()),
            (156, 39, 37, 20_366)
        );
        // Sizes of the original files: an entry a line, without a line feed at the end.
        let bytes = |lengths: Vec<usize>| lengths.iter().sum::<usize>() + lengths.len() - 1;
        assert_eq!(bytes(model.abbreviations.iter().map(|word| word.len()).collect()), 619);
        assert_eq!(bytes(model.starters.iter().map(|word| word.len()).collect()), 241);
        assert_eq!(bytes(model.collocations.iter().map(|(a, b)| a.len() + 1 + b.len()).collect()), 594);
        let digits = |bits: u8| bits.to_string().len();
        let contexts = model.contexts.iter().map(|(word, &bits)| word.len() + 1 + digits(bits)).collect();
        assert_eq!(bytes(contexts), 236_303);
        assert!(model.contexts.values().all(|bits| bits & 0x7e == *bits && *bits > 0));
        assert!(model.abbreviations.contains(". . ") && model.abbreviations.contains("dr"));
        assert!(model.collocations.contains(&("##number##", "corrections")));
        assert_eq!((model.context("the"), model.context("no such word")), (model.contexts["the"], 0));
    }
}
