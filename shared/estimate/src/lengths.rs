//! Lengths of prompts and answers, and where they are known from.

/// Average length of the prompts of an item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PromptLength {
    /// Tokens of all questions of an item together.
    pub tokens: f64,
    /// Number of questions of an item.
    pub questions: f64,
}

/// Source of the estimated lengths of answers, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LengthBasis {
    /// The samples of the same run so far.
    ThisRun,
    /// Earlier runs of the same model.
    SameModel,
    /// Earlier runs of other models.
    OtherModels,
    /// None but the benchmark; the prompts are real.
    Typical,
    /// None but the benchmark, for prompts, too.
    TypicalWithPrompts,
    /// None: the number of an agent's turns is unknown before it has worked.
    Unknown,
}
