//! SWE-bench Pro, generation 1: an agent changes a repository in the container of an instance's image, and the instance's tests
//! grade the change in another container.
//!
//! Protocol: the official program at a pinned commit, with the rows of the pinned revision. The containers are driven by other
//! crates; here are items, prompt, scripts and verdicts.

use std::time::Duration;

use bench_agents::bash::{BashSettings, prompt_parts};
use bench_domain::{Agent, Answer, Prompt, Stage, Verdict, VerificationReport};
use bench_items::{
    DatasetSpec, DemoData, HubSource, Item, Layout, OfficialFile, OfficialFiles, Part, Row, RowError,
};

use crate::benchmark::Benchmark;
use crate::columns::text;
use crate::grading::Grading;
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Link, Metadata, Template, TemplateSource};
use crate::options::{OptionError, OptionMetadata, Options};
use crate::scorers::Scorer;
use crate::scorers::instance::{
    BASE_DOCKERFILE, INSTANCE_DOCKERFILE, InstanceCollection, InstanceFile, InstanceImage, InstanceProtocol,
    InstanceScripts, InstanceVerification, PARSER, RUN_SCRIPT,
};
use crate::terminal_tasks::agent::agent_without_model;
use crate::terminal_tasks::{agent_choice, is_agent_option};

mod demo;
mod entry;
mod grade;
mod image;
mod literal;
mod patch;
mod repository;
mod row;

use row::Instance;

/// SWE-bench Pro.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweBenchPro {
    /// True if an agent makes the changes; otherwise the answers are patches.
    has_agent: bool,
}

impl SweBenchPro {
    /// The benchmark with an agent.
    pub const DEFAULT: Self = Self { has_agent: true };
    /// The benchmark with answers that are patches.
    const PATCHES: Self = Self { has_agent: false };
}

/// Maximum time of the agent's work on an instance.
const AGENT_TIME_MAX: Duration = Duration::from_secs(3 * 3_600);
/// Maximum time of a verification, as in the official program.
const VERIFICATION_TIME_MAX: Duration = Duration::from_secs(3_600);
/// Maximum size of an output file in bytes.
const OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Source of answers from a file.
const REPLAY: &str = "replay";
const OPTION_AGENT: &str = "agent";
const OPTION_TURNS: &str = "agent.max_turns";
/// Option of the agent `bash` that has no meaning here.
const OPTION_FOLDER: &str = "agent.folder";

static METADATA: Metadata = Metadata {
    name: "swe_bench_pro",
    display_name: "SWE-bench Pro",
    description: "Issues of eleven repositories: an agent changes the code in a container, and the repository's tests grade the change in another one.",
    protocol_name: "swe-bench-pro",
    protocol: "SWE-bench Pro generation 1, scripts of commit ca10a60a: apply the patch, run the selected tests, parse their output",
    parser: "the instance's own; every test of fail_to_pass and pass_to_pass must have passed",
    sources: &[
        Link { title: "Dataset", url: "https://huggingface.co/datasets/ScaleAI/SWE-bench_Pro" },
        Link { title: "Official program", url: "https://github.com/scaleapi/SWE-bench_Pro-os" },
    ],
    item_timeout_seconds: 3_600,
    deviations: &[
        "The agent is bash with up to 250 turns, the limit of official runs of mini-swe-agent; SWE-agent is another program.",
        "Commits after the base commit are removed from the agent's container, and it has no network. Tests are run with one.",
        "Scores count every instance of the run; officially an instance without a prediction isn't counted.",
        "The image is that of dockerhub_tag; a verdict says if the official rules give another one.",
        "A container has up to 8 GiB of memory, 4 processors and 10 GiB of disk; officially up to 30 GB of memory.",
        "Results above 16 MiB count as none, and a change that isn't UTF-8 isn't verified; officially neither is checked.",
        "A failure of the machine, of a pull or of the engine ends in an infrastructure-error; officially the instance counts as unresolved.",
    ],
    setup_notes: "A sandbox host with a container engine for linux/amd64 is needed, with room for images of 1 to 5 GB.",
    item_id: "row in the dataset, from 0; instance_id is the dataset's own id",
    group_noun: "repositories",
    ..Metadata::DEFAULT
};

static SPEC: DatasetSpec = DatasetSpec {
    sources: &[HubSource {
        id: "ScaleAI/SWE-bench_Pro",
        // Later revisions hold generation 2 under the same name.
        revision: Some("7ab5114912baf22bb098818e604c02fe7ad2c11f"),
        items: &[Part { config: "default", split: "test" }],
        ..HubSource::DEFAULT
    }],
    license: "MIT (program); that of each repository",
    items: 731,
    demo: DemoData { items: demo::ROWS, support: &[] },
    ..DatasetSpec::DEFAULT
};

static OFFICIAL_FILES: OfficialFiles = OfficialFiles {
    repository: "scaleapi/SWE-bench_Pro-os",
    commit: "ca10a60a5fcae51e6948ffe1485d4153d421e6c5",
    files: &[
        OfficialFile { name: RUN_SCRIPT, path: "run_scripts/{id}/run_script.sh" },
        OfficialFile { name: PARSER, path: "run_scripts/{id}/parser.py" },
        OfficialFile { name: BASE_DOCKERFILE, path: "dockerfiles/base_dockerfile/{id}/Dockerfile" },
        OfficialFile { name: INSTANCE_DOCKERFILE, path: "dockerfiles/instance_dockerfile/{id}/Dockerfile" },
    ],
    demo: demo::FILES,
};

static OPTIONS: [OptionMetadata; 3] = [
    OptionMetadata {
        name: OPTION_AGENT,
        description: "agent: `bash` runs one of the model's commands a turn",
        default: "",
    },
    OptionMetadata {
        name: OPTION_TURNS,
        description: "maximum number of turns; official runs allow 50, 200 or 250",
        default: "250",
    },
    OptionMetadata {
        name: "agent.NAME",
        description: "another option NAME of the agent, such as `max_cost_usd` or `command_timeout_sec`",
        default: "",
    },
];

impl Layout for SweBenchPro {
    fn name(&self) -> &'static str {
        METADATA.name
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &[row::INSTANCE_ID]
    }

    fn question_columns(&self) -> &'static [&'static str] {
        &[row::PROBLEM_STATEMENT]
    }

    fn official_files(&self) -> Option<&'static OfficialFiles> {
        Some(&OFFICIAL_FILES)
    }

    fn item(&self, index: u64, mut row: Row) -> Result<Option<Item>, RowError> {
        // An instance whose lists can't be read stays an item, so that only this one is reported.
        let group = text(&row, row::REPO)?.trim().to_owned();
        text(&row, row::INSTANCE_ID)?;
        row.retain(|column, _| row::COLUMNS.contains(&column.as_str()));
        Ok(Some(Item::new(index.to_string(), Some(group).filter(|group| !group.is_empty()), row)))
    }
}

impl Benchmark for SweBenchPro {
    fn metadata(&self) -> &'static Metadata {
        &METADATA
    }

    fn template(&self, _templates: &Templates) -> Template {
        match self.has_agent {
            true => Template::new(TemplateSource::Own, &prompt_parts()),
            false => Template::new(TemplateSource::Official, &[]),
        }
    }

    fn prompt(&self, item: &Item, _material: &Material) -> Result<Prompt, ItemProblem> {
        Ok(Prompt::user(Instance::of_item(item)?.instruction()))
    }

    fn scorer(&self) -> &dyn Scorer {
        self
    }

    fn has_agent(&self) -> bool {
        self.has_agent
    }

    fn default_agent(&self) -> Option<Agent> {
        self.has_agent.then_some(Agent::Bash)
    }

    fn instance(&self) -> Option<&'static dyn InstanceProtocol> {
        Some(&SweBenchPro::DEFAULT)
    }

    fn options(&self) -> &'static [OptionMetadata] {
        &OPTIONS
    }

    /// Answers of other sources than a model are patches, which are verified as they are.
    fn without_model(&self, source: &str) -> Option<&'static dyn Benchmark> {
        let asks_none = source == REPLAY || agent_without_model(source).is_some();
        (self.has_agent && asks_none).then_some(&SweBenchPro::PATCHES as &dyn Benchmark)
    }

    fn with_options(&self, options: &Options) -> Result<Option<&'static dyn Benchmark>, OptionError> {
        for (name, value) in options {
            match name.as_str() {
                OPTION_AGENT if value != Agent::Bash.as_str() => {
                    return Err(OptionError(format!("option `{OPTION_AGENT}` is bash, not `{value}`")));
                }
                OPTION_FOLDER => {
                    return Err(OptionError(format!(
                        "option `{OPTION_FOLDER}` can't be set: commands start in {}",
                        entry::APP
                    )));
                }
                name if is_agent_option(name) => {}
                unknown => return Err(OptionError::unknown(unknown, &OPTIONS)),
            }
        }
        let own = agent_choice("", Some(options)).options;
        BashSettings::parse(&own, entry::APP).map_err(|error| OptionError(error.to_string()))?;
        Ok(None)
    }
}

impl Scorer for SweBenchPro {
    fn expected(&self, item: &Item) -> String {
        match Instance::of_item(item) {
            Ok(Instance { fail_to_pass, pass_to_pass, .. }) => format!(
                "passes {} tests that fail before, and {} that pass before",
                fail_to_pass.len(),
                pass_to_pass.len()
            ),
            Err(_) => String::new(),
        }
    }

    fn oracle(&self, item: &Item) -> String {
        Instance::of_item(item).map(|instance| instance.patch).unwrap_or_default()
    }

    fn missing_oracle(&self, item: &Item) -> Option<String> {
        match Instance::of_item(item) {
            Ok(instance) if instance.patch.trim().is_empty() => {
                Some("The instance has no reference patch.".to_owned())
            }
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        }
    }

    /// Leaves an empty answer to the agent, if there is one. A patch, such as one of an earlier run, is verified as it is, and so
    /// is the empty patch of another source.
    fn grade(&self, _item: &Item, answer: &Answer) -> Grading {
        match self.has_agent && answer.text.is_empty() {
            true => Grading::NeedsTurn(Stage::Episode),
            false => Grading::NeedsTurn(Stage::Verification),
        }
    }

    fn score_row(&self, _row: &Row) -> Result<Item, RowError> {
        Err(RowError {
            column: None,
            problem: "patches are verified in containers: use `bench run --model replay:FILE`".to_owned(),
        })
    }
}

impl InstanceProtocol for SweBenchPro {
    fn image(&self, item: &Item) -> Result<InstanceImage, ItemProblem> {
        let instance = Instance::of_item(item)?;
        match demo::image(&instance) {
            Some(files) => Ok(InstanceImage::Build { files }),
            None => {
                Ok(InstanceImage::Pull { reference: image::reference(&instance)?, platform: image::PLATFORM })
            }
        }
    }

    fn instruction(&self, item: &Item) -> Result<String, ItemProblem> {
        Ok(Instance::of_item(item)?.instruction())
    }

    fn folder(&self) -> &'static str {
        entry::APP
    }

    fn time_limit(&self) -> Duration {
        AGENT_TIME_MAX
    }

    fn preparation(&self, item: &Item) -> Result<String, ItemProblem> {
        Ok(repository::preparation(&Instance::of_item(item)?))
    }

    fn collection(&self, item: &Item) -> Result<InstanceCollection, ItemProblem> {
        Ok(repository::collection(&Instance::of_item(item)?))
    }

    fn verification(
        &self,
        item: &Item,
        patch: &str,
        scripts: &InstanceScripts,
    ) -> Result<InstanceVerification, ItemProblem> {
        let instance = Instance::of_item(item)?;
        Ok(InstanceVerification {
            folder: entry::WORKSPACE,
            files: vec![
                InstanceFile::new("patch.diff", patch::without_binary_sections(patch)),
                InstanceFile::new(RUN_SCRIPT, scripts.run_script.as_str()),
                InstanceFile::new(PARSER, scripts.parser.as_str()),
                InstanceFile::new("entryscript.sh", entry::script(&instance, scripts)),
            ],
            command: format!("bash {}/entryscript.sh", entry::WORKSPACE),
            time_limit: VERIFICATION_TIME_MAX,
            outputs: &grade::OUTPUTS,
            output_bytes_max: OUTPUT_BYTES_MAX,
        })
    }

    fn grade(&self, item: &Item, patch: &str, report: &VerificationReport) -> Verdict {
        match Instance::of_item(item) {
            Ok(instance) => grade::verdict(&instance, patch, report),
            Err(error) => Verdict::ungraded(bench_domain::Code::InvalidItem, error.to_string()),
        }
    }
}
