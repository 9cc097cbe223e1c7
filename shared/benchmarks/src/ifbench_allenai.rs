//! IFBench by allenai: requests with instructions that models aren't trained on, checked by programs.
//!
//! Protocol: the `ifbench` package of allenai/IFBench at db69a6f0. The request is the only message. A response is right
//! if, for each instruction, the response or one of its eight variants follows it.

use bench_domain::Generation;
use bench_items::{DatasetSpec, DemoData, HubSource, Part};

use crate::instruction_set::InstructionSet;
use crate::metadata::{Link, Metadata};
use crate::scorers::instructions::IF_BENCH_CHECKS;

/// IFBench by allenai.
pub static IF_BENCH_ALLENAI: InstructionSet =
    InstructionSet { metadata: &METADATA, spec: &SPEC, checks: &IF_BENCH_CHECKS };

static METADATA: Metadata = Metadata {
    name: "ifbench_allenai",
    is_misleading: true,
    display_name: "IFBench",
    description: "Requests of users with one or two instructions of 58 types that models are seldom trained on, each checked by a program. `ifbench` is IFEval.",
    protocol_name: "ifbench",
    protocol: "allenai/IFBench db69a6f0: the request as the only message, all instructions followed, loose",
    parser: "the checks of the ifbench package, with sentences and words of NLTK 3.9.1, syllapy 0.8.0 and emoji 2.16.0",
    sources: &[
        Link { title: "Dataset", url: "https://huggingface.co/datasets/allenai/IFBench_test" },
        Link { title: "Official evaluation", url: "https://github.com/allenai/IFBench" },
        Link { title: "Paper", url: "https://arxiv.org/abs/2507.02833" },
    ],
    metrics: &[
        "accuracy",
        "prompt_level_loose",
        "instruction_level_loose",
        "prompt_level_strict",
        "instruction_level_strict",
        "instruction_families",
        "instruction_types",
    ],
    generation: || Generation { temperature: Some(0.0), ..Generation::default() },
    deviations: &[
        "words:start_verb (6 items) needs the part-of-speech tagger model of NLTK, which is not part of this program: such an item is an infrastructure error and counts nowhere.",
        "A parameter that is missing or negative, for which the official program makes one up at random, is an error of that item.",
        "A response at which the official program ends with an error, such as a table with a stray carriage return, does not follow the instruction.",
        "The official repository has 300 items; the dataset at the hub had 294 in the revision that other reports cite.",
        "Reasoning that a provider delivers apart from the answer is not checked.",
    ],
    item_id: "row index in the train split, from 0; key is the dataset's own id",
    ..Metadata::DEFAULT
};

static SPEC: DatasetSpec = DatasetSpec {
    sources: &[HubSource {
        id: "allenai/IFBench_test",
        items: &[Part { config: "default", split: "train" }],
        ..HubSource::DEFAULT
    }],
    license: "ODC-BY",
    items: 300,
    demo: DemoData { items: include_str!("../data/ifbench_allenai.jsonl"), support: &[] },
    ..DatasetSpec::DEFAULT
};

#[cfg(test)]
mod tests;
