use std::collections::{BTreeMap, BTreeSet};

use bench_domain::Answer;
use serde_json::{Map, Value};

use super::*;

fn rows(jsonl: &str) -> Vec<Row> {
    jsonl.lines().map(|line| serde_json::from_str::<Map<String, Value>>(line).unwrap()).collect()
}

fn demo_items(benchmark: &dyn Benchmark) -> Vec<Item> {
    (0..)
        .zip(rows(benchmark.spec().demo.items))
        .map(|(at, row)| benchmark.item(at, row).unwrap().unwrap())
        .collect()
}

fn demo_support(benchmark: &dyn Benchmark) -> BTreeMap<String, Value> {
    let splits = benchmark.spec().demo.support.iter();
    splits.flat_map(|(split, jsonl)| benchmark.support(split, rows(jsonl)).unwrap()).collect()
}

#[test]
fn names_are_unique_and_found() {
    let names: BTreeSet<_> = all().iter().map(|benchmark| benchmark.name()).collect();
    assert_eq!(names.len(), all().len());
    for benchmark in all() {
        assert_eq!(find(benchmark.name()).unwrap().facts().name, benchmark.name());
        assert_eq!(benchmark.template().digest.len(), 64);
        serde_json::to_value(benchmark.facts()).unwrap();
    }
    assert!(find("mmlu").is_none());
}

#[test]
fn demo_items_can_be_asked_and_answered() {
    for benchmark in all() {
        let items = demo_items(*benchmark);
        let support = demo_support(*benchmark);
        assert!(items.len() >= 20, "{}: {}", benchmark.name(), items.len());
        let ids: BTreeSet<_> = items.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(ids.len(), items.len());
        for item in &items {
            let prompt = benchmark.prompt(item, &support).unwrap();
            assert!(!prompt.as_text().is_empty());
            let verdict = benchmark.grade(item, &Answer::local(benchmark.oracle(item)));
            assert_eq!(verdict.score, Some(1.0), "{} {}: {}", benchmark.name(), item.id, verdict.reason);
            assert_eq!(verdict.extracted.as_deref(), Some(benchmark.expected(item).as_str()));
            assert!(!benchmark.is_support(&item.row));
        }
    }
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
        assert_eq!(MmluPro.grade(&item, &Answer::local(worked)).score, Some(1.0), "{worked}");
        assert!(worked.starts_with("A: Let's think step by step."), "{worked}");
    }
}
