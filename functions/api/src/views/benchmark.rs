//! Views of benchmarks, for the API and the command line.

use std::collections::BTreeMap;

use bench_benchmarks::{AnswerTime, Benchmark, Link, SandboxMetadata, Template, Templates};
use bench_datasets::{CachedDataset, DatasetError, Library, NoProgress, TemplateLookup};
use bench_web::views::GenerationView;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Category of every benchmark, as in the compatible system.
const CATEGORY: &str = "Core Benchmarks";

/// A benchmark that can be run. What is said of prompt, settings, metrics and dataset is that of its default
/// protocol, unless another one was asked for; `protocols` has all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BenchmarkView {
    /// Its name in requests.
    pub name: String,
    /// Its name for people.
    pub display_name: String,
    /// What it measures.
    pub description: Option<String>,
    /// Heading under which it is listed.
    pub category: String,
    /// Whether runs can be made of it.
    pub is_enabled: bool,
    /// Whether a part of its items can be run.
    pub supports_subset: bool,
    /// Whether the operator has to do something first.
    pub requires_setup: bool,
    /// What that is.
    pub setup_notes: Option<String>,
    /// Whether a page should preselect it.
    pub default_selected: bool,
    /// Items of its dataset; 0 when not yet known.
    pub total_items: u64,
    /// Always null: there is no mean over runs of different models.
    pub avg_item_latency_ms: Option<f64>,

    /// Items of the demo data, which needs no network.
    pub demo_items: u64,
    /// Where its items come from.
    pub dataset: DatasetFacts,
    /// Name of the protocol, with what it is pinned to.
    pub protocol: String,
    /// The program that finds the answer in a reply.
    pub parser: String,
    /// Where this program does something else than the official one.
    pub deviations: Vec<String>,
    /// Where protocol and data come from.
    pub sources: Vec<SourceView>,
    /// Names of its metrics, the main one first.
    pub metrics: Vec<String>,
    /// How often an item is asked.
    pub samples_per_item: u32,
    /// Settings of the answers.
    pub generation: GenerationView,
    /// How long one answer may take here: the benchmark's time, or less where the operator allows less.
    pub item_timeout_seconds: u64,
    /// Where the prompt template comes from: `official` or `own`.
    pub prompt_source: String,
    /// Digest of the prompt template.
    pub prompt_digest: String,
    /// Whether a judge says what an answer is worth.
    pub judged: bool,
    /// Every protocol that a run can choose, the default one first.
    pub protocols: Vec<ProtocolView>,
}

/// One way to run a benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProtocolView {
    /// Its name in requests.
    pub name: String,
    /// Whether it is taken when a run names none.
    pub is_default: bool,
    /// What it follows, with what that is pinned to.
    pub protocol: String,
    /// Where its items come from.
    pub dataset: DatasetFacts,
    /// What a model is shown around an item.
    pub prompt: PromptView,
    /// Official texts of prompts and of the judge's prompt, loaded at run time.
    pub official_texts: Vec<OfficialTextView>,
    /// The program that finds the answer in a reply.
    pub parser: String,
    /// How often an item is asked.
    pub samples_per_item: u32,
    /// Settings of the answers.
    pub generation: GenerationView,
    /// How long one answer may take here: the benchmark's time, or less where the operator allows less.
    pub item_timeout_seconds: u64,
    /// Who says what an answer is worth; null where the parser does.
    pub judge: Option<JudgeView>,
    /// How answers are run to grade them; null where they are not.
    #[serde(default)]
    pub sandbox: Option<SandboxView>,
    /// Settings that the benchmark has of its own.
    #[serde(default)]
    pub options: Vec<OptionView>,
    /// Whether an item takes several questions, one after the other.
    #[serde(default)]
    pub stepwise: bool,
    /// Names of its metrics, the main one first.
    pub metrics: Vec<String>,
    /// Where this program does something else than the official one.
    pub deviations: Vec<String>,
    /// Where protocol and data come from.
    pub sources: Vec<SourceView>,
}

/// The text around an item or around an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromptView {
    /// Where it comes from: `official`, or `own` wording as long as not all official texts are stored.
    pub source: String,
    /// SHA-256 of its parts, as runs note it.
    pub digest: String,
    /// The same for the own wording that stands in for official texts which cannot be had; null where none is needed.
    pub own_digest: Option<String>,
}

/// An official text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OfficialTextView {
    /// What the benchmark calls it.
    pub name: String,
    /// Page of the file that has it, at its commit.
    pub url: String,
    /// Which part of the file it is.
    pub part: String,
    /// SHA-256 that it must have; null where the commit is the only pin.
    pub sha256: Option<String>,
    /// Whether it needs no download any more.
    pub stored: bool,
}

/// Judging, unless a run says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JudgeView {
    /// The judge of the official protocol, as its authors name it.
    pub official_model: String,
    /// What a verdict is.
    pub verdict: String,
    /// Settings of its replies.
    pub generation: GenerationView,
    /// How often it is asked for a verdict before a sample ends without one.
    pub replies_max: u32,
    /// What it is shown around an answer.
    pub prompt: PromptView,
}

/// Grading by running answers in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SandboxView {
    /// What has to be there beside Python 3 and bash.
    pub needs: String,
    /// The official program that grades.
    pub grader: String,
    /// How many sandboxes a sample may use up before it ends without a verdict.
    pub rounds_max: u32,
    /// What a verdict is.
    pub verdict: String,
}

/// A setting that the benchmark has of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OptionView {
    /// Its name in `benchmark_options`.
    pub name: String,
    /// What it does and what it may be.
    pub description: String,
    /// What it is where a run does not say; null where it then is not set.
    pub default: Option<String>,
}

/// Where the items of a benchmark come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DatasetFacts {
    /// Id at the hub.
    pub id: String,
    /// Ids of all places where it is looked for, with configuration and split, in order.
    pub places: Vec<String>,
    /// Commit that the protocol is pinned to; null when it takes `main`.
    pub pinned_revision: Option<String>,
    /// Commit that was stored last; null when none was.
    pub revision: Option<String>,
    /// Items as published; 0 when not known before it is loaded.
    pub items: u64,
    /// What an item's id is made of.
    pub item_id: String,
    /// What prompts need besides the item; null when nothing.
    pub support: Option<String>,
    /// Files beside the items that jobs in sandboxes need: name, id at the hub and path.
    #[serde(default)]
    pub attachments: Vec<String>,
    /// Archive of documents that prompts need, by its path at the hub and its SHA-256; null when there is none.
    pub documents: Option<String>,
    /// Licence as its authors name it.
    pub licence: String,
    /// Whether terms must be accepted before it can be downloaded.
    pub gated: bool,
    /// Where they are accepted.
    pub terms_url: Option<String>,
    /// What is stored, from the hub, from files and of the demo data.
    pub stored: Vec<StoredDataset>,
}

/// A dataset that needs no download any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoredDataset {
    /// `hub`, `local` or `demo`.
    pub source: String,
    /// Its revision.
    pub revision: String,
    /// SHA-256 of its content.
    pub digest: String,
    /// Items in it.
    pub items: u64,
    /// Bytes of it.
    pub bytes: u64,
}

/// A page on the web.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceView {
    /// What it is.
    pub title: String,
    /// Its address.
    pub url: String,
}

/// Datasets and official texts that need no download.
#[derive(Debug, Default)]
pub struct Stored {
    datasets: Vec<CachedDataset>,
    /// Texts by benchmark and protocol.
    texts: BTreeMap<(&'static str, &'static str), Templates>,
}

impl Stored {
    /// Reads the stored datasets and texts of a library. Downloads nothing.
    ///
    /// # Errors
    /// When the blob store can't be read.
    pub async fn of(library: &Library) -> Result<Self, DatasetError> {
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
    stored: &Stored,
    answer_time: AnswerTime,
    setup: Option<String>,
) -> BenchmarkView {
    describe_under(benchmark, benchmark, stored, answer_time, setup)
}

/// Like [`describe`], with the fields outside of `protocols` describing the protocol `shown`.
pub(crate) fn describe_under(
    benchmark: &'static dyn Benchmark,
    shown: &'static dyn Benchmark,
    stored: &Stored,
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
    stored: &Stored,
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
    let judge = one.judge().map(|judge| JudgeView {
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

fn dataset(one: &'static dyn Benchmark, stored: &Stored) -> DatasetFacts {
    let (facts, spec) = (one.metadata(), one.spec());
    let pinned = spec.sources.first().and_then(|source| source.revision);
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
    DatasetFacts {
        id: spec.sources.first().map(|source| source.id.to_owned()).unwrap_or_default(),
        places: places.collect(),
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
