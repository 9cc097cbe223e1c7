//! Description of SciCode, by protocol and by how given steps are shown.

use bench_domain::Generation;

use super::{GivenSteps, SciCode};
use crate::metadata::{Link, Metadata};
use crate::options::OptionMetadata;
use crate::scorers::sandbox::GradingMode;

/// Option that selects the problems.
pub(super) const SPLIT: &str = "split";
/// Option that selects the text of given steps.
pub(super) const GIVEN_STEPS: &str = "given_steps";

/// Options of a run.
pub(super) static OPTIONS: [OptionMetadata; 3] = [
    OptionMetadata {
        name: SPLIT,
        description: "Which problems: test (65), validation (15, with right programs), or all.",
        default: "test",
    },
    OptionMetadata {
        name: GIVEN_STEPS,
        description: "What stands for the steps 13.6, 62.1 and 76.3, which are given: official (one definition of the given text; of 13.6 and 62.1 that is the bare constructor without its class) or whole (all of the text).",
        default: "official",
    },
    OptionMetadata {
        name: GradingMode::OPTION,
        description: "Where values are compared with the right ones: isolated (in a process that the program cannot reach) or official (in the program's own process, as in the official program; a program can forge its pass).",
        default: GradingMode::Isolated.as_str(),
    },
];

/// Metadata, indexed by background (without, with) and given steps (official, whole).
static METADATA: [[Metadata; 2]; 2] = [
    [
        metadata(
            false,
            "scicode-bench/SciCode 588b4069, inspect version without background: step by step, given steps cut to one definition, tests in a sandbox",
        ),
        metadata(
            false,
            "scicode-bench/SciCode 588b4069, inspect version without background: step by step, given steps whole (not official), tests in a sandbox",
        ),
    ],
    [
        metadata(
            true,
            "scicode-bench/SciCode 588b4069, inspect version with background: step by step, given steps cut to one definition, tests in a sandbox",
        ),
        metadata(
            true,
            "scicode-bench/SciCode 588b4069, inspect version with background: step by step, given steps whole (not official), tests in a sandbox",
        ),
    ],
];

pub(super) fn for_benchmark(benchmark: SciCode) -> &'static Metadata {
    let [without, with] = &METADATA;
    let [official, whole] = if benchmark.with_background { with } else { without };
    match benchmark.given {
        GivenSteps::Official => official,
        GivenSteps::Whole => whole,
    }
}

const fn metadata(with_background: bool, protocol: &'static str) -> Metadata {
    Metadata {
        name: "scicode",
        aliases: &[],
        is_misleading: false,
        display_name: "SciCode",
        description: "Problems of natural scientists, each solved in several steps of Python code. A step is right when its tests pass with the model's own code for all steps before it.",
        protocol_name: if with_background { "background" } else { "inspect" },
        protocol,
        parser: "the first Python block, without its import lines",
        sources: &[
            Link { title: "Dataset", url: "https://huggingface.co/datasets/SciCode1/SciCode" },
            Link { title: "Official evaluation", url: "https://github.com/scicode-bench/SciCode" },
            Link { title: "Paper", url: "https://arxiv.org/abs/2407.13168" },
        ],
        metrics: &[
            "accuracy",
            "problem_rate",
            "subproblem_rate",
            "subproblem_rate_gradable",
            "problem_rate_old_script",
            "steps",
        ],
        samples_per_item: 1,
        generation: || Generation { temperature: Some(0.0), ..Generation::default() },
        support: None,
        item_timeout_seconds: 1200,
        deviations: &[
            "A step counts in subproblem_rate also where the benchmark gives it (288 in the test split), as in the official program; subproblem_rate_gradable leaves given steps out (285).",
            "Problems 13, 62 and 76 have a given step and can never count as right, as in the official inspect version; problem_rate_old_script counts them by the steps that are asked, as the older script does.",
            "Tests are split: what calls the model's code runs in the program's process, which sends the values; comparisons with the right values run in a process that the program cannot reach. Officially both run in one process, where a program can read the right values or replace the comparison, as with grading=official. Both give the same verdicts on all recorded runs but one, which leaves before its tests.",
            "With grading=isolated a step whose tests cannot be split, such as one that passes the right value to the model's function, is graded in the official way; the verdict names it in officially_graded. Where the sandbox cannot hide the file with the right values from programs (no Landlock), the verdict names the steps in readable_targets.",
            "With grading=isolated an object of a class of the program's own compares with nothing. Its attributes and results of its methods compare as usual.",
            "With grading=isolated a value with an empty array or sequence is wrong where no right value has one. Officially it passes, since numpy.allclose finds it near every array.",
            "A program that ends with code 0 before its tests are through fails; the verdict names it in early_exits. With grading=official it passes, as in the official program.",
            "What a program leaves running is killed when the program ends; the official one waits for it as long as it holds the output open.",
            "Output that is not UTF-8 does not matter; it ends the official program.",
            "A program that was killed from outside, as by lack of memory, is run once more before it counts as failed.",
            "A problem with a given step is asked only where the official text of that step could be loaded.",
            "Where the official programs that read and compare values cannot be had, ours are used; the verdict says which.",
        ],
        default_selected: false,
        setup_notes: "Programs run in a sandbox with Python 3.10 to 3.12, numpy below 2, scipy below 1.14, sympy, h5py and matplotlib: `bench sandy setup` prepares it. The right values are a file of about 1 GB.",
        item_id: "row index in the split, from 0; problem_id is the dataset's own id",
        group_noun: "problems",
    }
}
