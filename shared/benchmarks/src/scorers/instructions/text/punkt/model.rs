//! English model: the results of training.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

/// The word was seen in uppercase: at the start of a sentence, inside one, or at an unknown position.
pub(super) const ANY_UPPER: u8 = 2 | 4 | 8;
/// The word was seen in uppercase inside a sentence.
pub(super) const MID_UPPER: u8 = 4;
/// The word was seen in lowercase: at the start of a sentence, inside one, or at an unknown position.
pub(super) const ANY_LOWER: u8 = 16 | 32 | 64;
/// The word was seen in lowercase at the start of a sentence.
pub(super) const BEGIN_LOWER: u8 = 16;

/// FNV-1a hash, which is fast for short words. Resistance to attacks isn't needed, because the table's words are fixed.
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

type BuildWordHasher = BuildHasherDefault<WordHasher>;

/// Results of training. All words are lowercase token types.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// Abbreviations without the final dot.
    pub(super) abbreviations: HashSet<&'static str, BuildWordHasher>,
    /// Words that often start a sentence.
    pub(super) starters: HashSet<&'static str, BuildWordHasher>,
    /// Pairs of words: the dot after the first one doesn't end a sentence if the second one follows.
    pub(super) collocations: HashSet<(&'static str, &'static str), BuildWordHasher>,
    /// Positions and letter cases that each word was seen with.
    contexts: HashMap<&'static str, u8, BuildWordHasher>,
}

static DATA: &str = include_str!("../../../../../data/punkt_english.txt");

/// English model, loaded on first use.
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

    /// Returns the positions and letter cases that a word was seen with, as a sum of 2, 4, 8, 16, 32 and 64.
    pub(super) fn context(&self, word: &str) -> u8 {
        self.contexts.get(word).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_matches_punkt_tab() {
        let model = &*ENGLISH;
        assert_eq!(
            (model.abbreviations.len(), model.starters.len(), model.collocations.len(), model.contexts.len()),
            (156, 39, 37, 20_366)
        );
        // Sizes of the original files, which have one entry per line and no final line feed.
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
