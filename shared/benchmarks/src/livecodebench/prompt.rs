//! Prompts for models: the official texts if they could be loaded, or this program's own with the same contract.

use bench_domain::{ChatMessage, Prompt, Role};
use bench_items::{TemplateOrigin, TemplatePart, TemplateRole, TemplateSpec};

use super::grader;
use crate::material::Templates;
use crate::metadata::{Template, TemplateSource};

pub(super) const REPOSITORY: &str = "LiveCodeBench/LiveCodeBench";
pub(super) const COMMIT: &str = "28fef95ea8c9f7a547c8329f2cd3d32b92c1fa24";

const SYSTEM: &str = "system";
const WITH_STARTER: &str = "format-with-starter-code";
const WITHOUT_STARTER: &str = "format-without-starter-code";

const fn constant(name: &'static str, path: &'static str, sha256: &'static str) -> TemplateSpec {
    TemplateSpec {
        name,
        role: TemplateRole::Wording,
        origin: TemplateOrigin::GitHub {
            repository: REPOSITORY,
            commit: COMMIT,
            path: "lcb_runner/prompts/code_generation.py",
        },
        part: TemplatePart::PythonConstant(path),
        sha256: Some(sha256),
    }
}

/// Texts and programs that are loaded at run time.
pub(super) static TEMPLATES: [TemplateSpec; 4] = [
    constant(
        SYSTEM,
        "PromptConstants.SYSTEM_MESSAGE_GENERIC",
        "d39e6e9b11d2ac7e84a6a85ebf4cfb10489b414e74f0b52e3394eb5375bdd9ac",
    ),
    constant(
        WITH_STARTER,
        "PromptConstants.FORMATTING_MESSAGE_WITH_STARTER_CODE",
        "0aa7131f428c2376cad7eeed10887dccaefc07c7947e20de1e9bf85598690bd5",
    ),
    constant(
        WITHOUT_STARTER,
        "PromptConstants.FORMATTING_WITHOUT_STARTER_CODE",
        "b72556f2e5865749958756f20ee8e031cc9d9b4b29f8557ffa4f1eb0deb41bd5",
    ),
    TemplateSpec {
        name: grader::OFFICIAL_RUNNER,
        role: TemplateRole::Program,
        origin: TemplateOrigin::GitHub {
            repository: REPOSITORY,
            commit: COMMIT,
            path: "lcb_runner/evaluation/testing_util.py",
        },
        part: TemplatePart::Whole,
        sha256: Some("b7cb6a8a69807bb868150a61742e25d7bb5328bbe01d514471b6ec43c9fa9ed2"),
    },
];

/// The form of the answer is the protocol's; the wording is this program's.
const OWN_SYSTEM: &str = "\
You write Python programs. Each question is the specification of one program; reply with a program that does what it \
says and is right on every test.";
const OWN_WITH_STARTER: &str = "\
Complete the starter code below into a whole solution. Put all of your code into one block with the same delimiters.";
const OWN_WITHOUT_STARTER: &str = "\
Write a program that reads its input from stdin and prints its answer to stdout. Do not run it on the examples in your \
code. Put all of it into one block with the delimiters below; when the program is run, it has to read the input, solve \
the problem and print the output.";

/// The frame is part of the protocol, in this order: question, format, a block to fill, and the place for the answer.
const QUESTION: &str = "### Question:\n";
const FORMAT: &str = "### Format: ";
const BLOCK_START: &str = "```python\n";
const BLOCK_END: &str = "\n```\n\n";
const EMPTY_BLOCK: &str = "# YOUR CODE HERE";
const ANSWER: &str = "### Answer: (use the provided format with backticks)\n\n";

struct Texts<'a> {
    source: TemplateSource,
    system: &'a str,
    with_starter: &'a str,
    without_starter: &'a str,
}

/// Returns the official texts if all of them are available. A mixed message would be neither official nor ours.
fn texts(templates: &Templates) -> Texts<'_> {
    let official =
        |name: &str| templates.get(name).map(String::as_str).filter(|text| !text.trim().is_empty());
    match (official(SYSTEM), official(WITH_STARTER), official(WITHOUT_STARTER)) {
        (Some(system), Some(with_starter), Some(without_starter)) => {
            Texts { source: TemplateSource::Official, system, with_starter, without_starter }
        }
        _ => Texts {
            source: TemplateSource::Own,
            system: OWN_SYSTEM,
            with_starter: OWN_WITH_STARTER,
            without_starter: OWN_WITHOUT_STARTER,
        },
    }
}

pub(super) fn template(templates: &Templates) -> Template {
    let Texts { source, system, with_starter, without_starter } = texts(templates);
    let frame = [QUESTION, FORMAT, BLOCK_START, BLOCK_END, EMPTY_BLOCK, ANSWER];
    let mut parts = vec![system, with_starter, without_starter];
    parts.extend(frame);
    Template::new(source, &parts)
}

/// Returns the messages for a question. Empty starter code counts as none.
pub(super) fn prompt(question: &str, starter: &str, templates: &Templates) -> Prompt {
    let texts = texts(templates);
    let (form, block) = match starter {
        "" => (texts.without_starter, EMPTY_BLOCK),
        starter => (texts.with_starter, starter),
    };
    let user =
        [QUESTION, question, "\n\n", FORMAT, form, "\n", BLOCK_START, block, BLOCK_END, ANSWER].concat();
    Prompt {
        messages: vec![ChatMessage::new(Role::System, texts.system), ChatMessage::new(Role::User, user)],
    }
}
