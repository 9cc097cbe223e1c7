//! Detects the language of a text like `langdetect` 1.0.9 under Python 3.11 with its seed set to 0.
//!
//! The algorithm is Nakatani Shuyo's: it draws n-grams of one to three characters from the text at random and
//! multiplies the probabilities of each language. Profiles and character normalization come from the crate
//! `langdetect`.

mod key;
mod random;
mod table;

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use random::Random;
use table::TABLE;

/// Maximum number of characters to examine.
const CHARACTERS_MAX: usize = 10_000;
/// Number of trials, whose probabilities are averaged.
const TRIALS: u32 = 7;
/// Maximum number of draws in a trial.
const DRAWS_MAX: u32 = 1_000;
/// Number of draws between two checks whether a trial can end.
const DRAWS_BETWEEN: u32 = 5;
/// Probability of a language above which a trial ends.
const CERTAIN: f64 = 0.999_99;
/// Minimum probability of a detected language (exclusive).
const PROBABLE: f64 = 0.1;
/// Mean, deviation and divisor of the smoothing value that is added to all probabilities of an n-gram.
const SMOOTHING: (f64, f64, f64) = (0.5, 0.05, 10_000.0);

/// Capacity for languages; a multiple of four.
const LANGUAGES_MAX: usize = 56;
/// Sum of odds above which they are scaled down.
const ODDS_MAX: f64 = 1e200;

/// Result if no language is probable enough.
const UNKNOWN: &str = "unknown";

static URL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"https?://[-_.?&~;+=/#0-9A-Za-z]{1,2076}").ok());
static MAIL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[-_.0-9A-Za-z]{1,64}@[-_0-9A-Za-z]{1,255}[-_.0-9A-Za-z]{1,255}").ok());

/// Text as the detector sees it. Two texts are equal if they look the same to the detector: asterisks and most other
/// marks count as blanks, and successive blanks as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NormalizedText {
    characters: Vec<char>,
}

impl NormalizedText {
    /// Normalizes a text. Removes URLs and mail addresses, and also Latin letters if other letters prevail.
    pub(crate) fn new(text: &str) -> Self {
        let mut text = Cow::Borrowed(text);
        for (mark, pattern) in [("http", &URL), ("@", &MAIL)] {
            if text.contains(mark)
                && let Some(pattern) = pattern.as_ref()
            {
                text = Cow::Owned(pattern.replace_all(&text, " ").into_owned());
            }
        }
        let is_ascii = text.is_ascii();
        let characters = if is_ascii { truncate(text.chars()) } else { truncate(compose_vietnamese(&text)) };
        let is_latin = |c: char| ('A'..='z').contains(&c);
        let latin = || characters.iter().filter(|&&c| is_latin(c)).count();
        let other = || characters.iter().filter(|&&c| c >= '\u{300}').count();
        let drops_latin = !is_ascii && latin() * 2 < other();
        let mut seen: Vec<char> = Vec::with_capacity(characters.len());
        let table = &*TABLE;
        for c in characters.into_iter().filter(|&c| !(drops_latin && is_latin(c))) {
            let c = table.normalize(c);
            if c != ' ' || seen.last().is_some_and(|&last| last != ' ') {
                seen.push(c);
            }
        }
        Self { characters: seen }
    }

    /// Returns the most probable language, [`UNKNOWN`] if none is probable enough, or `None` if the text has no known
    /// n-grams.
    pub(crate) fn language(&self) -> Option<&'static str> {
        let rows = self.rows();
        if rows.is_empty() {
            return None;
        }
        let mut best = (UNKNOWN, PROBABLE);
        for (language, probability) in TABLE.languages.iter().zip(probabilities(&rows)) {
            if probability > best.1 {
                best = (language, probability);
            }
        }
        Some(best.0)
    }

    /// Returns the n-grams that occur in at least one language. Leaves out those that end within a word after two
    /// successive capital letters.
    fn rows(&self) -> Vec<u32> {
        let table = &*TABLE;
        let mut rows = Vec::with_capacity(self.characters.len() * 3);
        // Up to three characters of the word, including the blank before it.
        let mut window = [' '; 3];
        let mut length = 1;
        let mut is_capitals = false;
        for &c in &self.characters {
            let [_, before, last] = window;
            if last == ' ' {
                length = 1;
                is_capitals = false;
                if c == ' ' {
                    continue;
                }
            }
            window = [before, last, c];
            length = (length + 1).min(3);
            is_capitals = c.is_uppercase() && (is_capitals || last.is_uppercase());
            if is_capitals {
                continue;
            }
            let shortest = if c == ' ' { 2 } else { 1 };
            for length in shortest..=length {
                rows.extend(window.get(3 - length..).and_then(|gram| table.row(gram)));
            }
        }
        rows
    }
}

/// Returns the first characters, with successive spaces collapsed into one.
fn truncate(text: impl Iterator<Item = char>) -> Vec<char> {
    let mut characters = Vec::new();
    let mut last = None;
    for c in text.take(CHARACTERS_MAX) {
        if c != ' ' || last != Some(' ') {
            characters.push(c);
        }
        last = Some(c);
    }
    characters
}

/// Composes Vietnamese letters and combining marks.
fn compose_vietnamese(text: &str) -> impl Iterator<Item = char> {
    let mut characters = text.chars().peekable();
    std::iter::from_fn(move || {
        let c = characters.next()?;
        let mark = characters.peek().filter(|next| !next.is_ascii());
        let mark = mark.and_then(|next| TABLE.marks.iter().position(|mark| mark == next));
        let letter = mark.and_then(|_| TABLE.letters.iter().position(|letter| *letter == c));
        let (Some(mark), Some(letter)) = (mark, letter) else { return Some(c) };
        characters.next();
        TABLE.composed.get(mark * TABLE.letters.len() + letter).copied()
    })
}

/// Returns the probability of each language, given the n-grams of a text.
///
/// At each draw, the official program multiplies all languages by a small weight, and those that have the n-gram by the
/// sum of weight and probability. This function divides both by the weight, which doesn't change the shares.
fn probabilities(rows: &[u32]) -> [f64; LANGUAGES_MAX] {
    let table = &*TABLE;
    let mut random = Random::default();
    let mut mean = [0.0; LANGUAGES_MAX];
    let (smoothing, deviation, divisor) = SMOOTHING;
    for _ in 0..TRIALS {
        let mut odds = [0.0; LANGUAGES_MAX];
        odds.iter_mut().take(table.languages.len()).for_each(|odds| *odds = 1.0);
        let by_weight = divisor / (smoothing + random.normal() * deviation);
        let mut sum = 0.0;
        for draw in 0.. {
            let row = rows.get(random.below(rows.len())).copied().unwrap_or_default();
            for (language, probability) in table.probabilities(row) {
                if let Some(odds) = odds.get_mut(language) {
                    *odds *= 1.0 + probability * by_weight;
                }
            }
            if draw % DRAWS_BETWEEN == 0 {
                let most;
                (sum, most) = sum_and_most(&odds);
                if most > CERTAIN * sum || draw >= DRAWS_MAX {
                    break;
                }
                if sum > ODDS_MAX {
                    odds.iter_mut().for_each(|odds| *odds /= sum);
                }
            }
        }
        for (mean, odds) in mean.iter_mut().zip(odds) {
            *mean += odds / sum / f64::from(TRIALS);
        }
    }
    mean
}

/// Returns sum and maximum, processing four values at a time.
fn sum_and_most(odds: &[f64; LANGUAGES_MAX]) -> (f64, f64) {
    let (mut sums, mut most) = ([0.0; 4], [0.0; 4]);
    for four in odds.as_chunks::<4>().0 {
        for ((sum, most), odds) in sums.iter_mut().zip(&mut most).zip(four) {
            *sum += odds;
            *most = if *odds > *most { *odds } else { *most };
        }
    }
    (sums.iter().sum(), most.iter().copied().fold(0.0, f64::max))
}

#[cfg(test)]
mod tests;
