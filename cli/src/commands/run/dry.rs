//! `bench run --dry-run`: prints the prompts of a run without making it.
//!
//! Conversations with a simulated user have no prompt before a sandbox has opened them; their roles are printed instead.
//!
//! The planner's functions choose the items, and the worker's functions make the prompts. Items are loaded one by one.

mod conversation;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bench_benchmarks::{Benchmark, NO_TEXT_DIGEST, Options, QuestionPreview, preview_questions};
use bench_datasets::{SupportCache, load_item};
use bench_domain::run::{DatasetChoice, ItemNaming};
use bench_domain::{Image, Prompt, RunId};
use bench_items::Item;
use bench_pipeline::{MaterialLoader, SUPPORT_BYTES_MAX};
use bench_planner::{Outline, Selection, outline};
use bench_state::PlannedSample;
use serde::Serialize;

use self::conversation::Conversation;
use super::RunArgs;
use super::order::{self, Plan};
use crate::exit::{ExitStatus, Problem};
use crate::progress::DatasetProgress;
use crate::show::NO_PROMPT_TEXT;
use crate::{format, output};
use bench_stack::Stack;

/// Prints the prompts of the ordered run.
pub(super) async fn run(args: &RunArgs) -> anyhow::Result<ExitStatus> {
    if args.server.server().is_some() {
        let message =
            "--dry-run can't be used with --server: it makes the prompts from the datasets on this machine";
        return Err(Problem::usage(message).hint("leave --server out, and unset BENCH_SERVER").into());
    }
    let plan = order::plan(args)?;
    let progress = Arc::new(DatasetProgress::default());
    let stack = args.data.open_with_progress(Arc::clone(&progress) as _).await?;
    let printed = print_prompts(&plan, &stack, &progress, args.json).await;
    progress.clear();
    stack.stop(Duration::ZERO).await;
    printed
}

/// Benchmark with the settings of the ordered run.
struct Ordered {
    benchmark: &'static dyn Benchmark,
    options: Options,
    choice: DatasetChoice,
}

async fn print_prompts(
    plan: &Plan,
    stack: &Stack,
    progress: &DatasetProgress,
    json: bool,
) -> anyhow::Result<ExitStatus> {
    let datasets = plan.import_files(stack, progress).await?;
    let mut all = Vec::with_capacity(plan.benchmarks.len());
    for name in &plan.benchmarks {
        let (benchmark, options) = plan.configured_with_options(name)?;
        let choice = plan.dataset_choice(name, &datasets);
        // An order whose dataset is unavailable is rejected as a whole.
        stack.library.check(benchmark, &choice).map_err(|error| Problem::failure(error.to_string()))?;
        all.push(Ordered { benchmark, options, choice });
    }
    let run = RunId::random();
    let is_part = plan.subset.count.is_some() || plan.subset.pct != 100;
    if is_part && plan.subset.seed.is_none() && plan.items.is_empty() {
        output::note("Without --seed, each run selects other items; these are one possible selection");
    }
    let cache = SupportCache::new(SUPPORT_BYTES_MAX);
    let (mut failed, mut problems) = (false, 0);
    for ordered in &all {
        if output::is_closed() {
            break;
        }
        let selection = Selection {
            benchmark: ordered.benchmark,
            dataset: &ordered.choice,
            options: &ordered.options,
            items: &plan.items,
            item_naming: ItemNaming::SourceId,
            subset: &plan.subset,
            run,
        };
        let outlined = outline(&stack.library, progress, &selection).await;
        progress.clear();
        match outlined? {
            Ok(outline) => {
                let samples = plan.settings.samples.unwrap_or(ordered.benchmark.metadata().samples_per_item);
                let printer = PromptPrinter {
                    benchmark: ordered.benchmark,
                    options: &ordered.options,
                    outline: &outline,
                    samples,
                    system_prompt: plan.settings.system_prompt.as_deref(),
                    plan,
                    json,
                };
                warn_of_note(&printer, plan.demo);
                problems += printer.print_items(stack, &cache).await?;
            }
            // A run would continue with the other benchmarks.
            Err(obstacle) => {
                failed = true;
                output::warn(&format!("{}: {obstacle}", ordered.benchmark.name()));
            }
        }
    }
    if problems > 0 {
        output::warn(&format!("{} have no prompt", format::plural(problems, "sample")));
    }
    Ok(if failed { ExitStatus::Failure } else { ExitStatus::Success })
}

/// Prints the warnings about a dataset that a run would print.
fn warn_of_note(printer: &PromptPrinter<'_>, demo_wanted: bool) {
    let (name, dataset) = (printer.benchmark.name(), &printer.outline.wording.dataset);
    match &dataset.note {
        Some(note) => output::warn(&format!("{name}: {note}")),
        None if dataset.is_demo() && !demo_wanted => output::warn(&format!("{name}: demo data is used")),
        None => {}
    }
}

/// Data for printing a benchmark.
struct PromptPrinter<'a> {
    benchmark: &'static dyn Benchmark,
    options: &'a Options,
    outline: &'a Outline,
    /// Number of samples per item.
    samples: u32,
    /// System message in front of every prompt.
    system_prompt: Option<&'a str>,
    plan: &'a Plan,
    json: bool,
}

/// Prompt as a line of JSON.
#[derive(Serialize)]
struct PromptLine<'a> {
    benchmark: &'a str,
    item_id: &'a str,
    /// The dataset's own id of the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_id: Option<&'a str>,
    /// Number of samples of the item.
    samples: u32,
    /// Index of the sample, from 0, if samples of the item have different prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<u32>,
    /// The dataset's name of the question, if the item has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'a str>,
    /// Source of the earlier answers that the prompt contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier_answers: Option<EarlierAnswers>,
    /// Roles of a conversation with a simulated user.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<&'a Conversation>,
    /// `None` if the prompt is unknown.
    prompt: Option<PromptView<'a>>,
    /// Reason why the item can't be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a str>,
    prompt_source: &'a str,
    prompt_digest: &'a str,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum EarlierAnswers {
    /// The dataset has all earlier answers, and the prompt contains them.
    Dataset,
    /// The dataset lacks some earlier answers. The prompt needs the model's answers.
    Model,
}

#[derive(Serialize)]
struct PromptView<'a> {
    messages: Vec<MessageView<'a>>,
}

#[derive(Serialize)]
struct MessageView<'a> {
    role: &'a str,
    content: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<ImageView<'a>>,
}

/// Image without its content.
#[derive(Serialize)]
struct ImageView<'a> {
    media_type: &'a str,
    /// Length of the data URL, in bytes.
    url_bytes: usize,
}

impl<'a> ImageView<'a> {
    fn new(image: &'a Image) -> Self {
        Self { media_type: image.media_type().unwrap_or("unknown"), url_bytes: image.data_url.len() }
    }
}

impl<'a> PromptView<'a> {
    fn new(prompt: &'a Prompt) -> Self {
        let messages = prompt.messages.iter().map(|message| MessageView {
            role: message.role.as_str(),
            content: &message.content,
            images: message.images.iter().map(ImageView::new).collect(),
        });
        Self { messages: messages.collect() }
    }
}

impl PromptPrinter<'_> {
    /// Prints the prompts of all items, and returns the number of samples that can't be asked.
    async fn print_items(&self, stack: &Stack, cache: &SupportCache) -> anyhow::Result<u64> {
        if !self.json {
            output::print(&self.headline())?;
        }
        let wording = &self.outline.wording;
        let loader = MaterialLoader {
            blobs: &stack.blobs,
            cache,
            dataset: &wording.dataset,
            templates: &wording.texts,
        };
        let mut problems = 0;
        for planned in &self.outline.items {
            // Reading the other items would be for nothing.
            if output::is_closed() {
                break;
            }
            let data_key = &wording.dataset.data_key;
            let item = load_item(&stack.blobs, data_key, planned.offset, planned.length).await?;
            if (0..self.samples).any(|sample| self.has_own_prompt(&item, sample)) {
                for sample in 0..self.samples {
                    let item = self.benchmark.item_for_sample(&item, sample);
                    problems += self.print_item(planned, &item, Some(sample), &loader).await?;
                }
            } else {
                problems += self.print_item(planned, &item, None, &loader).await?;
            }
        }
        Ok(problems)
    }

    /// Returns true if the sample has a prompt of its own.
    fn has_own_prompt(&self, item: &Item, sample: u32) -> bool {
        matches!(self.benchmark.item_for_sample(item, sample), Cow::Owned(_))
    }

    fn headline(&self) -> String {
        let Outline { items, of, wording } = self.outline;
        let dataset = &wording.dataset;
        let demo = if dataset.is_demo() { ", DEMO DATA" } else { "" };
        let template = &wording.template;
        let prompt = match template.digest == NO_TEXT_DIGEST {
            true => NO_PROMPT_TEXT.to_owned(),
            false => format!("{}, digest {}", template.source.as_str(), template.digest),
        };
        format!(
            "=== {}: {} of {}, {} each{demo}\n    {}\n    {} at revision {}\n    prompt: {prompt}\n",
            self.benchmark.metadata().listed_name(),
            format::count(items.len() as u64),
            format::plural(*of, "item"),
            format::plural(self.samples.into(), "sample"),
            self.benchmark.metadata().protocol,
            dataset.id,
            dataset.revision,
        )
    }

    /// Prints the questions of an item, for one sample or all of them, and returns the number of samples that can't be
    /// asked.
    async fn print_item(
        &self,
        planned: &PlannedSample,
        item: &Item,
        sample: Option<u32>,
        loader: &MaterialLoader<'_>,
    ) -> anyhow::Result<u64> {
        let wording = &self.outline.wording;
        let line = || PromptLine {
            benchmark: self.benchmark.name(),
            item_id: &planned.item_id,
            source_id: planned.source_id.as_deref(),
            samples: self.samples,
            sample,
            step: None,
            earlier_answers: None,
            conversation: None,
            prompt: None,
            problem: None,
            prompt_source: wording.template.source.as_str(),
            prompt_digest: &wording.template.digest,
        };
        if let Some(protocol) = self.benchmark.dialogue() {
            let conversation = Conversation::new(self.plan, self.benchmark, protocol, self.samples);
            self.print_line(&PromptLine { conversation: Some(&conversation), ..line() })?;
            return Ok(0);
        }
        let material = loader.load(self.benchmark, item).await?;
        match preview_questions(self.benchmark, item, &material) {
            Ok(mut questions) => {
                for prompt in questions.iter_mut().filter_map(|question| question.prompt.as_mut()) {
                    if let Some(workspace) = self.benchmark.workspace() {
                        for message in &mut prompt.messages {
                            message.content = workspace.first_message(&message.content, self.options);
                        }
                    }
                    if let Some(text) = self.system_prompt {
                        prompt.prepend_system(text);
                    }
                }
                for QuestionPreview { step, prompt, is_later } in &questions {
                    let earlier = match prompt {
                        Some(_) => EarlierAnswers::Dataset,
                        None => EarlierAnswers::Model,
                    };
                    self.print_line(&PromptLine {
                        step: step.as_deref(),
                        earlier_answers: is_later.then_some(earlier),
                        prompt: prompt.as_ref().map(PromptView::new),
                        ..line()
                    })?;
                }
                Ok(0)
            }
            Err(problem) => {
                self.print_line(&PromptLine { problem: Some(&problem.to_string()), ..line() })?;
                Ok(if sample.is_some() { 1 } else { self.samples.into() })
            }
        }
    }

    fn print_line(&self, line: &PromptLine<'_>) -> anyhow::Result<()> {
        if self.json {
            return output::print_data(
                &serde_json::to_string(line).context("could not write a prompt as JSON")?,
            );
        }
        output::print_verbatim(&as_text(line))
    }
}

fn as_text(line: &PromptLine<'_>) -> String {
    let mut text = format!("--- {}, item {}", line.benchmark, line.item_id);
    if let Some(source_id) = line.source_id {
        text.push_str(&format!(", source id {source_id}"));
    }
    if let Some(sample) = line.sample {
        text.push_str(&format!(", sample {}", sample + 1));
    }
    if let Some(step) = line.step {
        text.push_str(&format!(", step {step}"));
    }
    match line.earlier_answers {
        Some(EarlierAnswers::Dataset) => {
            text.push_str(", with the dataset's own answers to the earlier steps")
        }
        Some(EarlierAnswers::Model) => {
            text.push_str(
                "\nThis prompt depends on the model's answers to the earlier steps, which the dataset doesn't have.\n",
            );
        }
        None => {}
    }
    if let Some(problem) = line.problem {
        text.push_str(&format!("\nThis item has no prompt: {problem}\n"));
    }
    if let Some(conversation) = line.conversation {
        text.push_str(&format!("\n{conversation}"));
    }
    for message in line.prompt.iter().flat_map(|prompt| &prompt.messages) {
        text.push_str(&format!("\n[{}]\n{}", message.role, message.content));
        for ImageView { media_type, url_bytes } in &message.images {
            text.push_str(&format!("\n[image: {media_type}, {}]", format::bytes(*url_bytes as u64)));
        }
        text.push('\n');
    }
    text
}
