//! Views of benchmarks, for the API and the command line.

use std::collections::BTreeMap;

use bench_benchmarks::{AnswerTime, Benchmark, Link, SandboxMetadata, Template, Templates};
use bench_datasets::{CachedDataset, DatasetError, Library, NoProgress, TemplateLookup};
use bench_web::views::GenerationView;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Category of every benchmark, as in the compatible system.
const CATEGORY: &str = "Core Benchmarks";

/// A benchmark. Prompt, settings, metrics and dataset are those of its default protocol, or of the requested one;
/// `protocols` has all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkView {
    /// Name in requests.
    pub name: String,
    /// Display name.
    pub display_name: String,
    /// Description of what the benchmark measures.
    pub description: Option<String>,
    /// Heading under which the benchmark is listed.
    pub category: String,
    /// Always true: all listed benchmarks can be run.
    pub is_enabled: bool,
    /// Always true: a part of the items can be run.
    pub supports_subset: bool,
    /// True if the operator has to take a step first, described in `setup_notes`.
    pub requires_setup: bool,
    /// Step that the operator has to take; null if there is none.
    pub setup_notes: Option<String>,
    /// True if pages should preselect the benchmark.
    pub default_selected: bool,
    /// Items of the dataset; 0 if their number isn't known yet.
    pub total_items: u64,
    /// Always null; kept for clients of the compatible system.
    pub avg_item_latency_ms: Option<f64>,

    /// Items of the demo data, which need no network.
    pub demo_items: u64,
    /// Programming tasks that are the benchmark's items and come with the program; `/api/benchmarks/NAME/tasks` lists them.
    #[serde(default)]
    #[schema(required = true)]
    pub code_tasks: u64,
    /// Source of the items.
    pub dataset: DatasetFacts,
    /// Full name of the protocol, with its pinned version.
    pub protocol: String,
    /// Name of the parser that finds the answer in a response.
    pub parser: String,
    /// Deviations from the official program, one sentence each.
    pub deviations: Vec<String>,
    /// Web pages of the protocol and the dataset.
    pub sources: Vec<SourceView>,
    /// Names of the metrics, the main one first.
    pub metrics: Vec<String>,
    /// Samples per item.
    pub samples_per_item: u32,
    /// Generation settings of the answers.
    pub generation: GenerationView,
    /// Time limit for one answer on this server, in seconds: the benchmark's, or the operator's if it is lower.
    pub item_timeout_seconds: u64,
    /// Source of the prompt template: `official` or `own`.
    pub prompt_source: String,
    /// Digest of the prompt template.
    pub prompt_digest: String,
    /// True if a judge grades the answers.
    pub judged: bool,
    /// Protocols that a run can choose, the default one first.
    pub protocols: Vec<ProtocolView>,
}

/// A protocol: one way to run a benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProtocolView {
    /// Short name, for `protocols` in orders.
    pub name: String,
    /// True for the protocol of runs that choose none.
    pub is_default: bool,
    /// Full name of the protocol, with its pinned version.
    pub protocol: String,
    /// Source of the items.
    pub dataset: DatasetFacts,
    /// Prompt template.
    pub prompt: PromptView,
    /// Official texts of the prompt and of the judge's prompt, loaded at run time.
    pub official_texts: Vec<OfficialTextView>,
    /// Name of the parser that finds the answer in a response.
    pub parser: String,
    /// Samples per item.
    pub samples_per_item: u32,
    /// Generation settings of the answers.
    pub generation: GenerationView,
    /// Time limit for one answer on this server, in seconds: the benchmark's, or the operator's if it is lower.
    pub item_timeout_seconds: u64,
    /// Judge of the answers; null if the parser's result decides.
    pub judge: Option<BenchmarkJudgeView>,
    /// Sandbox that runs the answers to grade them; null if none does.
    #[serde(default)]
    pub sandbox: Option<SandboxView>,
    /// Options of the benchmark.
    #[serde(default)]
    #[schema(required = true)]
    pub options: Vec<OptionView>,
    /// True if items consist of several questions, asked one after the other.
    #[serde(default)]
    #[schema(required = true)]
    pub stepwise: bool,
    /// Names of the metrics, the main one first.
    pub metrics: Vec<String>,
    /// Deviations from the official program, one sentence each.
    pub deviations: Vec<String>,
    /// Web pages of the protocol and the dataset.
    pub sources: Vec<SourceView>,
}

/// Prompt template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromptView {
    /// Source: `official`, or `own` wording until all official texts are stored.
    pub source: String,
    /// SHA-256 of its parts, as recorded in runs.
    pub digest: String,
    /// The same for the own wording that replaces missing official texts; null if there are no official texts.
    pub own_digest: Option<String>,
}

/// Official text of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OfficialTextView {
    /// Name of the text in the benchmark.
    pub name: String,
    /// Web page of its file, at the pinned commit.
    pub url: String,
    /// Part of the file that is used.
    pub part: String,
    /// Required SHA-256; null if only the commit is pinned.
    pub sha256: Option<String>,
    /// True if the text is stored and needs no download.
    pub stored: bool,
}

/// Judge of a protocol, unless an order changes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkJudgeView {
    /// Judge of the official protocol, as its authors name it.
    pub official_model: String,
    /// Description of a verdict.
    pub verdict: String,
    /// Generation settings of its replies.
    pub generation: GenerationView,
    /// Maximum number of requests for a verdict before a sample ends without one.
    pub replies_max: u32,
    /// Prompt template of the judge.
    pub prompt: PromptView,
}

/// Grading by running answers in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SandboxView {
    /// Requirements besides Python 3 and bash.
    pub needs: String,
    /// Official program that grades.
    pub grader: String,
    /// Maximum number of sandboxes for a sample before it ends without a verdict.
    pub rounds_max: u32,
    /// Description of a verdict.
    pub verdict: String,
}

/// Option of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OptionView {
    /// Name in `benchmark_options`.
    pub name: String,
    /// Effect of the option and its accepted values.
    pub description: String,
    /// Default value; null if the option isn't set by default.
    pub default: Option<String>,
    /// The only values that the option accepts; empty if they can't be listed.
    #[serde(default)]
    #[schema(required = true)]
    pub values: Vec<String>,
}

/// Source of a benchmark's items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DatasetFacts {
    /// Id of the dataset at the hub, or name of the repository on GitHub.
    pub id: String,
    /// True if files of a repository on GitHub hold the items.
    #[serde(default)]
    #[schema(required = true)]
    pub on_github: bool,
    /// Ids of all locations that are searched, with configuration and split or paths, in order.
    pub places: Vec<String>,
    /// Commit or tag that the protocol pins; null if it uses `main`.
    pub pinned_revision: Option<String>,
    /// Commit that was stored last; null if none was.
    pub revision: Option<String>,
    /// Items of the published dataset; 0 if their number isn't known before it is loaded.
    pub items: u64,
    /// Description of an item's id.
    pub item_id: String,
    /// Further data that prompts need, such as few-shot examples; null if there are none.
    pub support: Option<String>,
    /// Files besides the items that sandbox jobs need: name, id at the hub and path.
    #[serde(default)]
    #[schema(required = true)]
    pub attachments: Vec<String>,
    /// Archive of documents that prompts need: path at the hub and SHA-256; null if there is none.
    pub documents: Option<String>,
    /// License, as the authors name it.
    pub licence: String,
    /// True if terms must be accepted before the dataset can be downloaded.
    pub gated: bool,
    /// Web page on which the terms are accepted; null if there are none.
    pub terms_url: Option<String>,
    /// Stored copies, from the hub, from files and of the demo data.
    pub stored: Vec<StoredDataset>,
}

impl DatasetFacts {
    /// Returns true for a dataset that comes with the program, since no hub has it.
    pub fn is_bundled(&self) -> bool {
        self.places.is_empty() && self.items > 0
    }
}

/// A stored dataset, which needs no download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoredDataset {
    /// Source: `hub`, `local` or `demo`.
    pub source: String,
    /// Revision.
    pub revision: String,
    /// SHA-256 of the content.
    pub digest: String,
    /// Number of items.
    pub items: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// A web page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceView {
    /// Title.
    pub title: String,
    /// Address.
    pub url: String,
}

impl BenchmarkView {
    /// Removes what only those read who look at one benchmark: deviations, sources and official texts.
    pub(crate) fn remove_texts(&mut self) {
        self.deviations.clear();
        self.sources.clear();
        for protocol in &mut self.protocols {
            protocol.deviations.clear();
            protocol.sources.clear();
            protocol.official_texts.clear();
        }
    }
}

/// Datasets and official texts that need no download.
#[derive(Debug, Default)]
pub struct StoredData {
    datasets: Vec<CachedDataset>,
    /// Texts by benchmark and protocol.
    texts: BTreeMap<(&'static str, &'static str), Templates>,
}

impl StoredData {
    /// Reads the stored datasets and texts of a library. Downloads nothing.
    ///
    /// # Errors
    /// When the blob store can't be read.
    pub async fn load(library: &Library) -> Result<Self, DatasetError> {
        let mut texts = BTreeMap::new();
        for protocol in bench_benchmarks::all().iter().flat_map(|benchmark| protocols(*benchmark)) {
            if !protocol.templates().is_empty() {
                let had = library.templates(protocol, TemplateLookup::StoreOnly, &NoProgress).await?;
                texts.insert((protocol.name(), protocol.metadata().protocol_name), had.into_texts());
            }
        }
        Ok(Self { datasets: library.list_cached().await?, texts })
    }
}

/// Returns a benchmark's protocols, the default one first.
fn protocols(benchmark: &'static dyn Benchmark) -> impl Iterator<Item = &'static dyn Benchmark> {
    std::iter::once(benchmark).chain(benchmark.other_protocols().iter().copied())
}

/// Describes a benchmark. `answer_time` limits the time for one answer here; `setup` describes the steps by
/// which the operator accepts the dataset's terms before the benchmark can be run.
pub fn describe(
    benchmark: &'static dyn Benchmark,
    stored: &StoredData,
    answer_time: AnswerTime,
    setup: Option<String>,
) -> BenchmarkView {
    describe_protocol(benchmark, benchmark, stored, answer_time, setup)
}

/// Like [`describe`], with the fields outside of `protocols` describing the protocol `shown`.
pub(crate) fn describe_protocol(
    benchmark: &'static dyn Benchmark,
    shown: &'static dyn Benchmark,
    stored: &StoredData,
    answer_time: AnswerTime,
    setup: Option<String>,
) -> BenchmarkView {
    let (facts, spec) = (shown.metadata(), shown.spec());
    let notes = setup.or_else(|| (!facts.setup_notes.is_empty()).then(|| facts.setup_notes.to_owned()));
    let all: Vec<ProtocolView> =
        protocols(benchmark).map(|one| protocol(one, benchmark, stored, answer_time)).collect();
    let same = all.iter().find(|one| one.name == facts.protocol_name);
    let shown = same.cloned().unwrap_or_else(|| protocol(shown, benchmark, stored, answer_time));
    let from_hub = shown.dataset.stored.iter().rev().find(|dataset| dataset.source == "hub");
    BenchmarkView {
        name: facts.name.to_owned(),
        display_name: facts.display_name.to_owned(),
        description: Some(facts.description.to_owned()),
        category: CATEGORY.to_owned(),
        is_enabled: true,
        supports_subset: true,
        requires_setup: notes.is_some(),
        setup_notes: notes,
        default_selected: facts.default_selected,
        total_items: from_hub.map_or(spec.items, |dataset| dataset.items),
        avg_item_latency_ms: None,
        demo_items: spec.demo.items.lines().filter(|line| !line.trim().is_empty()).count() as u64,
        code_tasks: benchmark.code_tasks().len() as u64,
        dataset: shown.dataset,
        protocol: shown.protocol,
        parser: shown.parser,
        deviations: shown.deviations,
        sources: shown.sources,
        metrics: shown.metrics,
        samples_per_item: shown.samples_per_item,
        generation: shown.generation,
        item_timeout_seconds: shown.item_timeout_seconds,
        prompt_source: shown.prompt.source,
        prompt_digest: shown.prompt.digest,
        judged: shown.judge.is_some(),
        protocols: all,
    }
}

fn protocol(
    one: &'static dyn Benchmark,
    default: &'static dyn Benchmark,
    stored: &StoredData,
    answer_time: AnswerTime,
) -> ProtocolView {
    let facts = one.metadata();
    let none = Templates::new();
    let texts = stored.texts.get(&(facts.name, facts.protocol_name)).unwrap_or(&none);
    let has_texts = !one.templates().is_empty();
    let prompt = |of: &dyn Fn(&Templates) -> Template| {
        let (own, now) = (of(&none), of(texts));
        PromptView {
            source: now.source.as_str().to_owned(),
            digest: now.digest,
            own_digest: (has_texts && own.source == bench_benchmarks::TemplateSource::Own)
                .then_some(own.digest),
        }
    };
    let official = one.templates().iter().map(|spec| OfficialTextView {
        name: spec.name.to_owned(),
        url: spec.page_url(),
        part: spec.part.to_string(),
        sha256: spec.sha256.map(str::to_owned),
        stored: texts.contains_key(spec.name),
    });
    let judge = one.judge().map(|judge| BenchmarkJudgeView {
        official_model: judge.metadata().official_model.to_owned(),
        verdict: judge.metadata().verdict.to_owned(),
        generation: GenerationView::from(&(judge.metadata().generation)()),
        replies_max: judge.metadata().replies_max,
        prompt: prompt(&|texts| judge.template(texts)),
    });
    let sandbox = one.sandbox().map(|grader| {
        let SandboxMetadata { needs, packages: _, grader, rounds_max, verdict } = *grader.metadata();
        SandboxView {
            needs: needs.to_owned(),
            grader: grader.to_owned(),
            rounds_max,
            verdict: verdict.to_owned(),
        }
    });
    let options = one.options().iter().map(|option| OptionView {
        name: option.name.to_owned(),
        description: option.description.to_owned(),
        default: (!option.default.is_empty()).then(|| option.default.to_owned()),
        values: owned(&one.option_values(option.name)),
    });
    let sources = facts.sources.iter();
    ProtocolView {
        name: facts.protocol_name.to_owned(),
        is_default: facts.protocol_name == default.metadata().protocol_name,
        protocol: facts.protocol.to_owned(),
        dataset: dataset(one, stored),
        prompt: prompt(&|texts| one.template(texts)),
        official_texts: official.collect(),
        parser: facts.parser.to_owned(),
        samples_per_item: facts.samples_per_item,
        generation: GenerationView::from(&(facts.generation)()),
        item_timeout_seconds: answer_time.for_benchmark(one).as_secs(),
        judge,
        sandbox,
        options: options.collect(),
        stepwise: one.steps().is_some(),
        metrics: owned(facts.metrics),
        deviations: owned(facts.deviations),
        sources: sources
            .map(|Link { title, url }| SourceView { title: (*title).to_owned(), url: (*url).to_owned() })
            .collect(),
    }
}

fn dataset(one: &'static dyn Benchmark, stored: &StoredData) -> DatasetFacts {
    let (facts, spec) = (one.metadata(), one.spec());
    let pinned = match spec.repository {
        Some(repository) => Some(repository.revision),
        None => spec.sources.first().and_then(|source| source.revision),
    };
    // Another protocol may have made other items from the same rows, or use another revision.
    let own: Vec<&CachedDataset> = stored
        .datasets
        .iter()
        .filter(|cached| cached.benchmark == facts.name && cached.variant == one.variant())
        .collect();
    let from_hub = own.iter().rev().filter(|dataset| dataset.source == "hub");
    let mut wanted = from_hub.filter(|dataset| pinned.is_none_or(|pinned| dataset.revision == pinned));
    let places = spec.sources.iter().map(|source| {
        let parts = source.items.iter().map(|part| format!("{}/{}", part.config, part.split));
        format!("{} ({})", source.id, parts.collect::<Vec<_>>().join(", "))
    });
    let repository = spec.repository.map(|source| {
        let paths: Vec<&str> = source.files.iter().map(|file| file.path).collect();
        format!("{} ({})", source.repository, paths.join(", "))
    });
    let id = match spec.repository {
        Some(source) => Some(source.repository),
        None => spec.sources.first().map(|source| source.id),
    };
    DatasetFacts {
        id: id.unwrap_or_default().to_owned(),
        on_github: spec.repository.is_some(),
        places: places.chain(repository).collect(),
        pinned_revision: pinned.map(str::to_owned),
        revision: wanted.next().map(|dataset| dataset.revision.clone()),
        items: spec.items,
        item_id: facts.item_id.to_owned(),
        support: facts.support.map(str::to_owned),
        attachments: one
            .attachments()
            .iter()
            .map(|file| format!("{}: {} of {}", file.name, file.path, file.id))
            .collect(),
        documents: one.documents().map(|archive| format!("{}, sha256 {}", archive.path, archive.sha256)),
        licence: spec.license.to_owned(),
        gated: spec.gate.is_some(),
        terms_url: spec.gate.map(|gate| gate.terms_url.to_owned()),
        stored: own
            .into_iter()
            .map(|dataset| StoredDataset {
                source: dataset.source.clone(),
                revision: dataset.revision.clone(),
                digest: dataset.digest.clone(),
                items: dataset.items,
                bytes: dataset.bytes,
            })
            .collect(),
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
