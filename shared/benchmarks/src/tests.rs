use std::collections::{BTreeMap, BTreeSet};

use bench_domain::{Answer, SampleBody, Stage, Step, StoredFile, Verdict};
use bench_items::{Item, Layout as _, Row};
use serde_json::{Map, Value};

use super::*;

fn rows(jsonl: &str) -> Vec<Row> {
    jsonl.lines().map(|line| serde_json::from_str::<Map<String, Value>>(line).unwrap()).collect()
}

fn demo_items(benchmark: &dyn Benchmark) -> Vec<Item> {
    (0..)
        .zip(rows(benchmark.spec().demo.items))
        .filter_map(|(at, row)| benchmark.item(at, row).unwrap())
        .collect()
}

fn demo_support(benchmark: &dyn Benchmark) -> BTreeMap<String, Value> {
    let splits = benchmark.spec().demo.support.iter();
    splits.flat_map(|(split, jsonl)| benchmark.support(split, rows(jsonl)).unwrap()).collect()
}

#[test]
fn a_template_without_text_has_a_known_digest() {
    assert_eq!(Template::new(TemplateSource::Official, &[]).digest, NO_TEXT_DIGEST);
    let without = all().iter().filter(|known| known.template(&Templates::new()).digest == NO_TEXT_DIGEST);
    assert_eq!(
        without.map(|known| known.name()).collect::<BTreeSet<_>>(),
        BTreeSet::from(["ifbench", "ifbench_allenai"])
    );
}

#[test]
fn only_one_benchmark_has_scores_that_are_not_proportions() {
    let others = all().iter().filter(|known| !known.scores_are_shares());
    assert_eq!(others.map(|known| known.name()).collect::<Vec<_>>(), ["aa_omniscience"]);
}

#[test]
fn names_are_unique_and_found() {
    let names: BTreeSet<_> = all().iter().map(|benchmark| benchmark.name()).collect();
    assert_eq!(names.len(), all().len());
    for benchmark in all() {
        assert_eq!(find(benchmark.name()).unwrap().metadata().name, benchmark.name());
        assert_eq!(benchmark.template(&Templates::new()).digest.len(), 64);
        let protocols: BTreeSet<_> = std::iter::once(benchmark)
            .chain(benchmark.other_protocols())
            .map(|one| {
                assert_eq!(one.name(), benchmark.name());
                one.metadata().protocol_name
            })
            .collect();
        assert_eq!(protocols.len(), 1 + benchmark.other_protocols().len());
        for protocol in protocols {
            assert_eq!(with_protocol(*benchmark, Some(protocol)).unwrap().metadata().protocol_name, protocol);
        }
        assert!(with_protocol(*benchmark, Some("none")).is_err());
        serde_json::to_value(benchmark.metadata()).unwrap();
    }
    assert!(find("mmlu").is_none());
}

/// Returns a body with the oracle's answers to all questions about an item.
fn oracle_body(benchmark: &dyn Benchmark, item: &Item, material: &Material) -> SampleBody {
    let answer = Answer::local(benchmark.oracle(item));
    let Some(steps) = benchmark.steps() else {
        return SampleBody::new(item.id.as_str(), benchmark.prompt(item, material).unwrap(), answer, "");
    };
    let mut answered = Vec::new();
    while let Some(next) = steps.next(item, material, &answered).unwrap() {
        let answer = Answer::local(steps.oracle(item, &next.name));
        answered.push(Step { name: next.name, prompt: next.prompt, answer });
    }
    let last = answered.last().expect("an item has a question").clone();
    SampleBody { steps: answered, ..SampleBody::new(item.id.as_str(), last.prompt, last.answer, "") }
}

/// Returns the verdict on the oracle's answer. If a judge is needed, the judge's oracle replies. `None` if only a
/// sandbox can grade; the end-to-end tests run those.
fn oracle_verdict(benchmark: &dyn Benchmark, item: &Item, material: &Material) -> Option<Verdict> {
    let body = oracle_body(benchmark, item, material);
    let answer = body.answer.clone();
    Some(match benchmark.grade(item, &answer) {
        Grading::Done(verdict) => verdict,
        Grading::NeedsTurn(Stage::Sandbox) => {
            let file =
                |name: &str| StoredFile { key: name.into(), sha256: "0".repeat(64), bytes: 1, url: None };
            let attachments =
                benchmark.attachments().iter().map(|spec| (spec.name.to_owned(), file(spec.name)));
            let attachments = attachments.collect();
            let job = JobMaterial { templates: &material.templates, attachments: &attachments, nonce: "" };
            let job = benchmark.sandbox().unwrap().job(item, &body, &job).unwrap();
            assert!(!job.script.is_empty() && !job.results.is_empty());
            return None;
        }
        Grading::NeedsTurn(Stage::Judge) => {
            let judge = benchmark.judge().unwrap();
            assert!(!judge.prompt(item, &answer, &Templates::new()).unwrap().as_text().is_empty());
            judge.read(item, &answer, &Answer::local(judge.oracle(item, &answer))).unwrap()
        }
        Grading::NeedsTurn(Stage::Episode) => {
            assert!(benchmark.has_agent());
            return None;
        }
        Grading::NeedsTurn(Stage::Verification) => {
            let instance = benchmark.instance().unwrap();
            let files = benchmark.official_files().unwrap().demo.iter();
            let own = files.filter(|file| item.row.values().any(|value| value == file.id));
            let own = own.map(|file| (file.name.to_owned(), file.text.to_owned())).collect();
            let scripts = InstanceScripts::from_files(&own).unwrap();
            assert!(!instance.verification(item, &answer.text, &scripts).unwrap().files.is_empty());
            return None;
        }
        Grading::NeedsTurn(Stage::Answer) => panic!("an answer is not graded by another answer"),
    })
}

#[test]
fn fields_without_a_default_are_set() {
    for benchmark in all().iter().flat_map(|one| std::iter::once(one).chain(one.other_protocols())) {
        let (metadata, spec) = (benchmark.metadata(), benchmark.spec());
        for text in [
            metadata.name,
            metadata.display_name,
            metadata.description,
            metadata.protocol_name,
            metadata.protocol,
            metadata.parser,
            metadata.item_id,
            metadata.group_noun,
            spec.license,
            spec.demo.items,
        ] {
            assert!(!text.trim().is_empty(), "{metadata:?}");
        }
        assert!(!metadata.sources.is_empty() && !metadata.metrics.is_empty(), "{metadata:?}");
        assert!(
            (spec.is_bundled() || spec.repository.is_some() == spec.sources.is_empty()) && spec.items > 0,
            "{spec:?}"
        );
        assert!(
            spec.sources.iter().all(|source| !source.id.is_empty() && !source.items.is_empty()),
            "{spec:?}"
        );
    }
}

#[test]
fn demo_items_can_be_asked_and_answered() {
    for benchmark in all().iter().flat_map(|one| std::iter::once(one).chain(one.other_protocols())) {
        let items = demo_items(*benchmark);
        let support = demo_support(*benchmark).into_iter().map(|(name, value)| (name, value.into()));
        let material = Material { support: support.collect(), ..Material::default() };
        // A task for an agent is a folder of files, and takes minutes. A whole dataset has as many items as it has.
        let items_min = if benchmark.has_agent() || benchmark.spec().is_bundled() { 3 } else { 20 };
        assert!(items.len() >= items_min, "{}: {}", benchmark.name(), items.len());
        let ids: BTreeSet<_> = items.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(ids.len(), items.len());
        for item in &items {
            let prompt = benchmark.prompt(item, &material).unwrap();
            assert!(!prompt.as_text().is_empty());
            if let Some(verdict) = oracle_verdict(*benchmark, item, &material) {
                assert_eq!(verdict.score, Some(1.0), "{} {}: {}", benchmark.name(), item.id, verdict.reason);
            }
            assert!(!benchmark.is_support(&item.row));
        }
    }
}

#[test]
fn demo_items_counts_the_items_that_a_run_selects_from() {
    for benchmark in all().iter().flat_map(|one| std::iter::once(one).chain(one.other_protocols())) {
        let items = super::demo_items(*benchmark, &Options::new());
        assert_eq!(items, demo_items(*benchmark).len() as u64, "{}", benchmark.name());
    }
    let late = Options::from([("start_date".to_owned(), "2024-06-01".to_owned())]);
    let (all, late) = (
        super::demo_items(&LiveCodeBench::LATEST, &Options::new()),
        super::demo_items(&LiveCodeBench::LATEST, &late),
    );
    assert!(0 < late && late < all, "{late} of {all}");
}

#[test]
fn every_item_has_its_datasets_own_id() {
    for benchmark in all().iter().flat_map(|one| std::iter::once(one).chain(one.other_protocols())) {
        let items = demo_items(*benchmark);
        let ids: BTreeSet<String> =
            items.iter().map(|item| bench_items::source_id(*benchmark, &item.row).unwrap()).collect();
        assert_eq!(ids.len(), items.len(), "{}", benchmark.name());
        let description = benchmark.metadata().item_id;
        assert!(benchmark.id_columns().iter().all(|column| description.contains(column)), "{description}");
    }
    let id =
        |benchmark: &dyn Benchmark, row: Value| bench_items::source_id(benchmark, row.as_object().unwrap());
    use serde_json::json;
    for (row, expected) in [
        (json!({ "problem_idx": 7, "problem": "?" }), Some("7")),
        (json!({ "id": "I-7", "problem": "?" }), Some("I-7")),
        (json!({ "question": "?", "answer": "1" }), None),
    ] {
        assert_eq!(id(&AIME_2025, row).as_deref(), expected);
    }
    assert_eq!(id(&MmluPro, json!({ "id": 3, "question_id": 70 })).as_deref(), Some("70"));
}

#[test]
fn the_mmlu_pro_demo_has_its_shape() {
    let items = demo_items(&MmluPro);
    let mut categories: BTreeMap<String, usize> = BTreeMap::new();
    for item in &items {
        *categories.entry(item.group.clone().unwrap()).or_default() += 1;
        let answer = item.row["answer"].as_str().unwrap().chars().next().unwrap();
        let index = item.row["answer_index"].as_u64().unwrap();
        assert_eq!(u64::from(u32::from(answer) - u32::from('A')), index, "item {}", item.id);
        assert!(index < item.row["options"].as_array().unwrap().len() as u64);
    }
    assert_eq!(categories.len(), 14);
    assert!(categories.values().all(|&count| count >= 2));

    let support = demo_support(&MmluPro);
    assert_eq!(support.keys().collect::<Vec<_>>(), categories.keys().collect::<Vec<_>>());
    for (category, examples) in &support {
        assert_eq!(examples.as_array().unwrap().len(), 5, "{category}");
    }
    for row in rows(MmluPro.spec().demo.support[0].1) {
        assert!(MmluPro.is_support(&row));
        let worked = row["cot_content"].as_str().unwrap();
        let item = MmluPro.item(0, row.clone()).unwrap().unwrap();
        assert_eq!(MmluPro.grade(&item, &Answer::local(worked)).done().unwrap().score, Some(1.0), "{worked}");
        assert!(worked.starts_with("A: Let's think step by step."), "{worked}");
    }
}
