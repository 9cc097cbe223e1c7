//! Detailed view of a benchmark, for people.

use bench_api::{BenchmarkJudgeView, BenchmarkView, DatasetFacts, PromptView, ProtocolView};
use bench_benchmarks::NO_TEXT_DIGEST;
use bench_web::views::GenerationView;

use crate::format;
use crate::page::Page;
use crate::show::NO_PROMPT_TEXT;

/// Number of columns for the names of fields.
const NAME_WIDTH: usize = 14;

/// Describes a benchmark under one of its protocols.
pub(super) fn detail(benchmark: &BenchmarkView, protocol: &ProtocolView) -> Page {
    let mut page = Page::new(2, NAME_WIDTH);
    page.heading(format!("{} ({})", benchmark.display_name, benchmark.name));
    page.paragraph(benchmark.description.as_deref().unwrap_or_default());
    if let Some(notes) = &benchmark.setup_notes {
        page.field("before a run", notes);
    }

    head(&mut page, "Dataset");
    dataset(&mut page, &protocol.dataset, benchmark);

    let default = if protocol.is_default { ", the default" } else { "" };
    head(&mut page, &format!("Protocol {}{default}", protocol.name));
    page.field("follows", &protocol.protocol);
    page.field("prompt", prompt(&protocol.prompt));
    for text in &protocol.official_texts {
        let pinned = match &text.sha256 {
            Some(sha256) => format!("sha256 {sha256}"),
            None => "pinned by its commit".to_owned(),
        };
        let stored = if text.stored { "stored here" } else { "not stored here" };
        page.field(
            "official text",
            format!("{}: {} of {}; {pinned}; {stored}", text.name, text.part, text.url),
        );
    }
    page.field("parser", &protocol.parser);
    if protocol.stepwise {
        page.field("questions", "several per item, one after the other");
    }
    page.field("samples", format!("{} per item", protocol.samples_per_item));
    page.field("settings", settings(&protocol.generation));
    #[expect(clippy::cast_precision_loss, reason = "seconds of a time limit")]
    page.field("time limit", format!("{} per answer", format::seconds(protocol.item_timeout_seconds as f64)));
    page.field("metrics", protocol.metrics.join(", "));

    if let Some(judge) = &protocol.judge {
        judging(&mut page, judge);
    }
    if let Some(sandbox) = &protocol.sandbox {
        head(&mut page, "Sandbox");
        page.field("grader", &sandbox.grader);
        page.field("verdict", &sandbox.verdict);
        page.field("needs", &sandbox.needs);
        page.field("sandboxes", format!("at most {} per sample", sandbox.rounds_max));
    }
    if !protocol.options.is_empty() {
        head(&mut page, "Options");
        for option in &protocol.options {
            let default = match &option.default {
                Some(default) => format!("default {default}"),
                None => "not set by default".to_owned(),
            };
            page.field(&option.name, format!("{}; {default}", option.description));
        }
        let name = &benchmark.name;
        page.text("", format!("`bench run --option {name}.NAME=VALUE` sets one."));
    }
    if !protocol.deviations.is_empty() {
        head(&mut page, "Deviations from the official program");
        for deviation in &protocol.deviations {
            page.text("- ", deviation);
        }
    }
    let others: Vec<_> = benchmark.protocols.iter().filter(|other| other.name != protocol.name).collect();
    if !others.is_empty() {
        head(&mut page, "Other protocols");
        for other in others {
            let default = if other.is_default { " (the default)" } else { "" };
            page.field(&other.name, format!("{}{default}", other.protocol));
        }
        let name = &benchmark.name;
        page.text("", format!("`bench benchmarks {name} --protocol NAME` shows one of them."));
    }
    if !protocol.sources.is_empty() {
        head(&mut page, "Sources");
        for source in &protocol.sources {
            page.field(&source.title, &source.url);
        }
    }
    page
}

fn head(page: &mut Page, text: &str) {
    page.blank();
    page.heading(text);
}

fn dataset(page: &mut Page, dataset: &DatasetFacts, benchmark: &BenchmarkView) {
    if dataset.is_bundled() {
        page.field("source", "comes with this program");
        page.field("items", format::count(dataset.items));
    }
    if benchmark.code_tasks > 0 {
        page.field("tasks", format!("`bench benchmarks {} --tasks` lists them", benchmark.name));
    }
    for (position, place) in dataset.places.iter().enumerate() {
        let label = match position {
            0 if dataset.on_github => "files on GitHub",
            0 => "id at the hub",
            _ => "or else",
        };
        page.field(label, place);
    }
    let revision = match (&dataset.pinned_revision, &dataset.revision) {
        (Some(pinned), Some(_)) => format!("{pinned}, pinned by the protocol; stored here"),
        (Some(pinned), None) => format!("{pinned}, pinned by the protocol; not stored here"),
        (None, Some(stored)) => format!("main; stored here is {stored}"),
        (None, None) if dataset.stored.is_empty() => "main; nothing is stored here".to_owned(),
        (None, None) => "main; nothing from the hub is stored here".to_owned(),
    };
    let items = if dataset.items == 0 {
        "unknown until the dataset is loaded".to_owned()
    } else {
        format::count(dataset.items)
    };
    if !dataset.is_bundled() {
        page.field("revision", &revision);
        page.field("items", format!("{items}; {} of demo data", format::count(benchmark.demo_items)));
    }
    page.field("item id", &dataset.item_id);
    if let Some(support) = &dataset.support {
        page.field("prompts need", support);
    }
    if let Some(documents) = &dataset.documents {
        page.field("documents", documents);
    }
    for attachment in &dataset.attachments {
        page.field("jobs need", attachment);
    }
    page.field("license", &dataset.licence);
    match (&dataset.terms_url, dataset.gated) {
        (Some(url), _) => {
            page.field("access", format!("gated: accept the terms at {url}, then set HF_TOKEN"))
        }
        (None, true) => page.field("access", "gated: accept the terms at the hub, then set HF_TOKEN"),
        (None, false) => page.field("access", "open"),
    }
    for stored in &dataset.stored {
        let (items, bytes) = (format::plural(stored.items, "item"), format::bytes(stored.bytes));
        let revision = format::short(&stored.revision);
        page.field("stored here", format!("{} {revision}: {items}, {bytes}", stored.source));
    }
}

fn judging(page: &mut Page, judge: &BenchmarkJudgeView) {
    head(page, "Judge");
    page.field("official", &judge.official_model);
    page.field("verdict", &judge.verdict);
    page.field("prompt", prompt(&judge.prompt));
    page.field("settings", settings(&judge.generation));
    page.field("replies", format!("at most {} per verdict", judge.replies_max));
}

fn prompt(prompt: &PromptView) -> String {
    let PromptView { source, digest, own_digest } = prompt;
    if digest == NO_TEXT_DIGEST {
        return NO_PROMPT_TEXT.to_owned();
    }
    match own_digest {
        None if source == "own" => format!("own wording, digest {digest}"),
        None => format!("{source}, digest {digest}"),
        Some(own) if own == digest => {
            format!(
                "official texts, loaded when a run is planned; if they can't be loaded, own wording, digest {own}"
            )
        }
        Some(own) => format!("{source}, digest {digest}; own wording would be digest {own}"),
    }
}

fn settings(generation: &GenerationView) -> String {
    // No benchmark sets any of the others.
    let GenerationView { temperature, top_p, max_tokens, stop, seed, .. } = generation;
    let mut set = Vec::new();
    let mut add =
        |name: &str, value: Option<String>| set.extend(value.map(|value| format!("{name} {value}")));
    add("temperature", temperature.map(|value| value.to_string()));
    add("top_p", top_p.map(|value| value.to_string()));
    add("max tokens", max_tokens.map(|value| value.to_string()));
    add("seed", seed.map(|value| value.to_string()));
    add(
        "stop",
        (!stop.is_empty()).then(|| stop.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(" ")),
    );
    if set.is_empty() {
        return "the provider's defaults".to_owned();
    }
    set.push("else the provider's defaults".to_owned());
    set.join(", ")
}

#[cfg(test)]
mod tests {
    use bench_api::StoredData;

    use bench_benchmarks::AnswerTime;

    use super::*;
    use crate::layout::Layout;

    #[test]
    fn every_benchmark_says_what_a_score_depends_on() {
        for benchmark in bench_benchmarks::all() {
            let view = bench_api::describe(*benchmark, &StoredData::default(), AnswerTime::default(), None);
            assert!(view.protocols[0].is_default);
            for protocol in &view.protocols {
                let text = detail(&view, protocol).render(Layout::FILE);
                let dataset = &protocol.dataset;
                let place = "comes with this program".to_owned();
                let id = if dataset.is_bundled() { &place } else { &dataset.id };
                for part in [&protocol.name, &protocol.protocol, &protocol.parser, id, &dataset.licence] {
                    assert!(!part.is_empty() && text.contains(part), "{}: {part}", view.name);
                }
                for part in protocol.deviations.iter().chain(&protocol.metrics) {
                    assert!(text.contains(part), "{}: {part}", view.name);
                }
                for official in &protocol.official_texts {
                    assert!(text.contains(&official.url) && text.contains(&official.name));
                }
                assert_eq!(text.contains("\nJudge\n"), protocol.judge.is_some());
                let digest = &protocol.prompt.digest;
                assert_eq!(text.contains(digest), digest != NO_TEXT_DIGEST, "{}", view.name);
            }
        }
    }

    #[test]
    fn stored_demo_data_is_listed() {
        let hle = bench_benchmarks::find("hle").unwrap();
        let mut view = bench_api::describe(hle, &StoredData::default(), AnswerTime::default(), None);
        view.protocols[0].dataset.pinned_revision = None;
        assert!(
            detail(&view, &view.protocols[0]).render(Layout::FILE).contains("main; nothing is stored here")
        );
        view.protocols[0].dataset.stored.push(bench_api::StoredDataset {
            source: "demo".into(),
            revision: "abc".into(),
            digest: "d".into(),
            items: 2,
            bytes: 10,
        });
        let text = detail(&view, &view.protocols[0]).render(Layout::FILE);
        assert!(text.contains("main; nothing from the hub is stored here"), "{text}");
        assert!(text.contains("demo abc: 2 items"), "{text}");
    }

    #[test]
    fn prompts_and_settings_in_words() {
        let view = |digest: &str, own: Option<&str>| {
            let source = if own == Some(digest) { "own" } else { "official" };
            prompt(&PromptView {
                source: source.into(),
                digest: digest.into(),
                own_digest: own.map(str::to_owned),
            })
        };
        assert_eq!(view("d", None), "official, digest d");
        assert_eq!(view(NO_TEXT_DIGEST, None), NO_PROMPT_TEXT);
        assert_eq!(
            prompt(&PromptView { source: "own".into(), digest: "d".into(), own_digest: None }),
            "own wording, digest d"
        );
        assert!(view("d", Some("d")).starts_with("official texts, loaded when a run is planned"));
        assert_eq!(view("d", Some("o")), "official, digest d; own wording would be digest o");
        let none = GenerationView::default();
        assert_eq!(settings(&none), "the provider's defaults");
        let some = GenerationView { temperature: Some(0.0), stop: vec!["\n".into()], ..none };
        assert_eq!(settings(&some), "temperature 0, stop \"\\n\", else the provider's defaults");
    }
}
