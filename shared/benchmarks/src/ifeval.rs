//! IFEval: requests with instructions that a program can check.
//!
//! Protocol: google-research `instruction_following_eval`. The benchmark's public name is `ifbench`, the name that
//! other runners use for this set. It is different from allenai's IFBench.

use bench_domain::Generation;
use bench_items::{DatasetSpec, DemoData, HubSource, Part};

use crate::instruction_set::InstructionSet;
use crate::metadata::{Link, Metadata};
use crate::scorers::instructions::IF_EVAL_CHECKS;

/// The IFEval benchmark.
pub static IF_EVAL: InstructionSet =
    InstructionSet { metadata: &METADATA, spec: &SPEC, checks: &IF_EVAL_CHECKS };

static METADATA: Metadata = Metadata {
    name: "ifbench",
    aliases: &["ifeval"],
    is_misleading: true,
    display_name: "IFEval",
    description: "Requests with one to three instructions on form and wording, of 25 types, each checked by a program. Its name here is `ifbench`, as in the Chutes bench runner; `ifeval` is accepted, too. AllenAI's IFBench is `ifbench_allenai`.",
    protocol_name: "ifeval",
    protocol: "google-research instruction_following_eval: the request as the only message, all instructions followed, strict",
    parser: "the 25 checks of instruction_following_eval, with Punkt sentences and words of NLTK 3.9.1 and langdetect 1.0.9",
    sources: &[
        Link { title: "Dataset", url: "https://huggingface.co/datasets/google/IFEval" },
        Link {
            title: "Official evaluation",
            url: "https://github.com/google-research/google-research/tree/master/instruction_following_eval",
        },
        Link { title: "Paper", url: "https://arxiv.org/abs/2311.07911" },
    ],
    metrics: &[
        "accuracy",
        "prompt_level_strict",
        "instruction_level_strict",
        "prompt_level_loose",
        "instruction_level_loose",
        "instruction_families",
        "instruction_types",
    ],
    generation: || Generation { temperature: Some(0.0), ..Generation::default() },
    deviations: &[
        "A letter to be counted that is no letter (keys 1122 and 1129) is counted as it stands; the official program puts a random letter in its place. At most 2 of 834 instructions.",
        "The language detector has a fixed seed; the official program draws at random, which matters for few, short texts.",
        "A parameter that is missing, for which the official program makes one up at random, is an error of that item.",
        "JSON that is nested more than 990 levels deep is not followed; the official program ends with an error.",
        "Reasoning that a provider delivers apart from the answer is not checked.",
        "A pattern among the keywords with look-around, back-references or possessive repetition is an error of that item; the published keywords have none.",
    ],
    default_selected: true,
    item_id: "row index in the train split, from 0; key is the dataset's own id",
    ..Metadata::DEFAULT
};

static SPEC: DatasetSpec = DatasetSpec {
    sources: &[HubSource {
        id: "google/IFEval",
        items: &[Part { config: "default", split: "train" }],
        ..HubSource::DEFAULT
    }],
    license: "Apache-2.0",
    items: 541,
    demo: DemoData { items: include_str!("../data/ifeval_train.jsonl"), support: &[] },
    ..DatasetSpec::DEFAULT
};

#[cfg(test)]
mod tests;
