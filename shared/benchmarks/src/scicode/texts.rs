//! Official texts and programs, and this program's replacements.

use bench_items::{TemplateOrigin, TemplatePart, TemplateRole, TemplateSpec};

use crate::material::Templates;
use crate::metadata::TemplateSource;
use crate::prompts::has_slots;

const REPOSITORY: &str = "scicode-bench/SciCode";
const COMMIT: &str = "588b4069d73d211434790bdf4f5a3b80c7830912";

const WITHOUT_BACKGROUND: &str = "without_background";
const WITH_BACKGROUND: &str = "with_background";
const PARSE: &str = "parse.py";
const COMPARE: &str = "cmp.py";

/// Slot for earlier steps.
pub(super) const PROBLEM_STEPS: &str = "problem_steps_str";
/// Slot for the next step.
pub(super) const NEXT_STEP: &str = "next_step_str";
/// Slot for the import lines.
pub(super) const DEPENDENCIES: &str = "dependencies";

const fn whole_file(
    role: TemplateRole,
    name: &'static str,
    path: &'static str,
    sha256: &'static str,
) -> TemplateSpec {
    TemplateSpec {
        name,
        role,
        origin: TemplateOrigin::GitHub { repository: REPOSITORY, commit: COMMIT, path },
        part: TemplatePart::Whole,
        sha256: Some(sha256),
    }
}

/// The names of the two prompts are not swapped: the prompt that asks for background in a comment is the one used
/// without background.
pub(super) static TEMPLATES: [TemplateSpec; 7] = [
    whole_file(
        TemplateRole::Wording,
        WITHOUT_BACKGROUND,
        "eval/data/background_comment_template.txt",
        "9b407bdd44937f13cf090b5ae35436b7dc60a0fb8494caec6995c9c83cdadb03",
    ),
    whole_file(
        TemplateRole::Wording,
        WITH_BACKGROUND,
        "eval/data/multistep_template.txt",
        "2c6946acf50f69d37647b83c04e77e6bdc5f3ff04e87d4aa6f79d0f27b5dcbc2",
    ),
    whole_file(
        TemplateRole::GivenStep,
        "13.6",
        "eval/data/13.6.txt",
        "795a2b57c2d9bb12ca4eaf16d6b8e1f202015a89a886628858abf42a1b18a94e",
    ),
    whole_file(
        TemplateRole::GivenStep,
        "62.1",
        "eval/data/62.1.txt",
        "bc9931d88a7d5950091b72a996a25b8be6c936fd136b01005e22c3d45b0008a2",
    ),
    whole_file(
        TemplateRole::GivenStep,
        "76.3",
        "eval/data/76.3.txt",
        "4758300d96ea726cdc0fbf749f1bc437030d2a3e8b43bde232ecdeaf636cd367",
    ),
    whole_file(
        TemplateRole::Program,
        PARSE,
        "src/scicode/parse/parse.py",
        "8d65df1115c0a94012f1655887bb66db5c019c4433f341b58d3493bbbdb0cd85",
    ),
    whole_file(
        TemplateRole::Program,
        COMPARE,
        "src/scicode/compare/cmp.py",
        "8b3e790cc29dc87ef1f0f1b9bfd68c877728c78c40b541a69d10015221e9e235",
    ),
];

/// The same request in our own words, without background.
const OWN_WITHOUT_BACKGROUND: &str = "\
A problem from the sciences is solved in several steps, one Python function or class at a time. Below is what was \
done so far, and the step that is yours now.

WHAT WAS DONE SO FAR:
{problem_steps_str}

YOUR STEP, WITH THE HEADER OF WHAT TO WRITE:
{next_step_str}

MODULES:
These lines stand before your code already; do not repeat them, and use no other module.
{dependencies}

HOW TO ANSWER:
1. Answer with one block of Python code between ```python and ```.
2. Begin the block with a comment that starts with `# Background: ` and says which science the step rests on.
3. After it, write the whole function or class under the header as it is given. It may call what earlier steps define.
4. Leave out the code of earlier steps, examples and tests.";

/// The same request in our own words, with background.
const OWN_WITH_BACKGROUND: &str = "\
A problem from the sciences is solved in several steps, one Python function or class at a time. Each step comes with \
the science that it rests on.

WHAT WAS DONE SO FAR, WITH ITS CODE:
{problem_steps_str}

YOUR STEP, WITH THE HEADER OF WHAT TO WRITE:
{next_step_str}

MODULES:
These lines stand before your code already; do not repeat them, and use no other module.
{dependencies}

HOW TO ANSWER:
Write the whole function or class under the header as it is given, in one block of Python code between ```python and \
```. It may call what earlier steps define, under their headers. Leave out the code of earlier steps, examples and \
tests.";

/// Returns the text around a step, which has three slots, with its origin.
pub(super) fn prompt(templates: &Templates, with_background: bool) -> (TemplateSource, &str) {
    let (name, own) = match with_background {
        true => (WITH_BACKGROUND, OWN_WITH_BACKGROUND),
        false => (WITHOUT_BACKGROUND, OWN_WITHOUT_BACKGROUND),
    };
    match templates.get(name) {
        Some(text) if has_slots(text, &[PROBLEM_STEPS, NEXT_STEP, DEPENDENCIES]) => {
            (TemplateSource::Official, text)
        }
        _ => (TemplateSource::Own, own),
    }
}

/// The two programs that read expected values and compare with them.
pub(super) struct Programs<'a> {
    pub(super) source: TemplateSource,
    pub(super) parse: &'a str,
    pub(super) compare: &'a str,
}

/// Returns both official programs or both of ours, because they depend on each other.
pub(super) fn programs(templates: &Templates) -> Programs<'_> {
    match (templates.get(PARSE), templates.get(COMPARE)) {
        (Some(parse), Some(compare)) => Programs { source: TemplateSource::Official, parse, compare },
        _ => Programs {
            source: TemplateSource::Own,
            parse: include_str!("job/parse.py"),
            compare: include_str!("job/cmp.py"),
        },
    }
}
