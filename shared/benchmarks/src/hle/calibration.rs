//! Calibration error: the gap between a model's confidence and its accuracy.

/// Number of judged answers per bin.
const BIN: usize = 100;

/// Judged answer with the model's confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JudgedAnswer {
    /// Confidence that the model stated, from 0 to 100.
    pub(super) confidence: u8,
    pub(super) correct: bool,
}

/// Root mean square of the gaps between confidence and accuracy, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Calibration {
    /// As published: leaves out the last bin, the most confident one, but counts its answers in the weights.
    pub(super) official: f64,
    /// Over all bins.
    pub(super) all_bins: f64,
}

impl Calibration {
    /// Computes the error from answers in plan order. Answers with equal confidence keep that order, since the
    /// published sort leaves it undefined. Returns `None` for fewer than 100 answers, where the official program fails.
    pub(super) fn from_answers(mut judged: Vec<JudgedAnswer>) -> Option<Self> {
        judged.sort_by_key(|answer| answer.confidence);
        let (full, total) = (judged.len() / BIN, judged.len());
        let (mut official, mut all_bins) = (0.0, 0.0);
        for bin in 0..full {
            let is_last = bin + 1 == full;
            // The last bin also holds the remainder.
            let end = if is_last { total } else { (bin + 1) * BIN };
            let gap = squared_gap(judged.get(bin * BIN..end)?, total);
            all_bins += gap;
            official += if is_last { 0.0 } else { gap };
        }
        (full > 0).then(|| Self { official: official.sqrt(), all_bins: all_bins.sqrt() })
    }
}

/// Returns the squared gap of a bin, weighted by its share of the answers.
#[allow(clippy::cast_precision_loss)] // counts stay far below 2^53
fn squared_gap(bin: &[JudgedAnswer], total: usize) -> f64 {
    let size = bin.len() as f64;
    let confidence = bin.iter().map(|answer| f64::from(answer.confidence) / 100.0).sum::<f64>() / size;
    let correct = bin.iter().filter(|answer| answer.correct).count() as f64 / size;
    size / total as f64 * (confidence - correct).powi(2)
}
