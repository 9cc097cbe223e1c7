//! Typical lengths of prompts and answers, for benchmarks without an earlier run.

use crate::PromptLength;

/// Typical lengths of a benchmark.
struct Lengths {
    benchmark: &'static str,
    /// Tokens of all prompts of an item together.
    prompts: u32,
    /// Questions of an item, in tenths.
    questions_tenths: u32,
    /// Tokens of an answer to a question, without reasoning: as long as the prompts of the benchmark ask for.
    answer: u32,
}

const fn lengths(benchmark: &'static str, prompts: u32, answer: u32) -> Lengths {
    Lengths { benchmark, prompts, questions_tenths: 10, answer }
}

const LENGTHS: &[Lengths] = &[
    lengths("aa_lcr", 100_000, 400),
    lengths("aa_omniscience", 250, 100),
    lengths("aime_2022_2024", 200, 3_000),
    lengths("aime_2025", 200, 3_000),
    lengths("code_lab", 6_000, 5_000),
    lengths("expert_questions", 200, 20),
    lengths("gpqa_diamond", 350, 900),
    lengths("hle", 350, 600),
    lengths("ifbench", 60, 400),
    lengths("ifbench_allenai", 150, 500),
    lengths("livecodebench", 700, 1_200),
    lengths("mmlu_pro", 1_300, 600),
    // The steps of a problem, each with the code of those before it.
    Lengths { questions_tenths: 44, ..lengths("scicode", 8_000, 800) },
    // The turns of an agent, each with the conversation before it.
    Lengths { questions_tenths: 600, ..lengths("swe_bench_pro", 1_200_000, 300) },
    Lengths { questions_tenths: 250, ..lengths("tau_bench_telecom", 250_000, 120) },
    Lengths { questions_tenths: 300, ..lengths("terminal_bench_hard", 500_000, 300) },
];
/// Lengths in other benchmarks.
const OTHER: Lengths = lengths("", 500, 800);
/// Tokens that a judge's prompt adds to the question and the answer.
pub const JUDGE_PROMPT_TOKENS: f64 = 400.0;
/// Tokens of a judge's reply.
pub const JUDGE_REPLY_TOKENS: f64 = 250.0;

fn lengths_of(benchmark: &str) -> &'static Lengths {
    LENGTHS.iter().find(|lengths| lengths.benchmark == benchmark).unwrap_or(&OTHER)
}

/// Returns the tokens of a typical answer to a question of a benchmark.
pub fn answer_tokens(benchmark: &str) -> u32 {
    lengths_of(benchmark).answer
}

/// Returns the typical length of the prompts of an item.
pub fn prompt_length(benchmark: &str) -> PromptLength {
    let lengths = lengths_of(benchmark);
    PromptLength { tokens: lengths.prompts.into(), questions: f64::from(lengths.questions_tenths) / 10.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_benchmark_has_typical_lengths() {
        for lengths in LENGTHS {
            assert!(bench_benchmarks::find(lengths.benchmark).is_some(), "{}", lengths.benchmark);
        }
        for benchmark in bench_benchmarks::all() {
            assert!(!lengths_of(benchmark.name()).benchmark.is_empty(), "{}", benchmark.name());
        }
    }

    #[test]
    fn unknown_benchmarks_have_usual_lengths() {
        assert_eq!(answer_tokens("none"), 800);
        assert_eq!(prompt_length("scicode"), PromptLength { tokens: 8_000.0, questions: 4.4 });
    }
}
