//! Renders a sample report with texts in many scripts, and measures it:
//! `cargo run -p bench-report --example sample -- report.pdf`.

use std::borrow::Cow;
use std::path::Path;
use std::time::Instant;

use bench_report::content::{Benchmark, Date, Fact, Figure, Score, Table};
use bench_report::{Fonts, Report, render};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = std::env::args().nth(1).unwrap_or_else(|| "report.pdf".to_owned());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/fonts");
    let begin = Instant::now();
    let fonts = Fonts::read(|name| std::fs::read(folder.join(name)).map(Cow::Owned))?;
    let read = begin.elapsed();
    let report = sample();
    let begin = Instant::now();
    let pdf = render(&report, &fonts)?;
    println!("fonts read in {read:?}; {} bytes in {:?}", pdf.len(), begin.elapsed());
    if pdf != render(&report, &fonts)? {
        return Err("two renderings differ".into());
    }
    std::fs::write(&out, pdf)?;
    Ok(())
}

fn sample() -> Report {
    let figure = |label: &str, value: &str, detail: &str| Figure {
        label: label.to_owned(),
        value: value.to_owned(),
        detail: detail.to_owned(),
    };
    let benchmark = |name: &str, heading: &str, score: Option<Score>| {
        Benchmark {
        name: name.to_owned(),
        heading: heading.to_owned(),
        description: "Multiple-choice questions in fourteen subjects, with ten options each.".to_owned(),
        status: if score.is_some() { "succeeded" } else { "failed" }.to_owned(),
        score,
        problem: score.is_none().then(|| "coverage 42.00% is below the minimum of 95%: 58 of 100 samples ended with an infrastructure-error".to_owned()),
        items: "100/100".to_owned(),
        samples: Some("200/199".to_owned()),
        coverage: "99.50%".to_owned(),
        figures: vec![
            figure("Score", "66.67%", "95% interval 57.9% – 74.4% (Wilson)"),
            figure("Coverage", "99.50%", "199 of 200 samples graded"),
            figure("Items", "100", "of 12,032 in the dataset"),
            figure("Cost", "$1.2345", "1,234,567 tokens"),
        ],
        facts: vec![
            ("Protocol".to_owned(), vec![
                Fact::new("Protocol", "TIGER-Lab/MMLU-Pro evaluate_from_api, 5-shot CoT"),
                Fact::new("Settings", "temperature 0, max_tokens 4000, stop [\"Question:\"]"),
                Fact::code("Prompt template", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"),
            ]),
            ("Dataset".to_owned(), vec![
                Fact::new("Dataset", "TIGER-Lab/MMLU-Pro"),
                Fact::code("Revision", "b7e9d5bb1bfa3d6f6dcf5b4e1a0c8b9d"),
                Fact::code("Digest", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"),
            ]),
        ],
        outcomes: vec![("correct".to_owned(), 133), ("incorrect".to_owned(), 61), ("no-answer".to_owned(), 5), ("infrastructure-error".to_owned(), 1)],
        tables: vec![Table {
            heading: "Scores by category".to_owned(),
            columns: ["Category", "Graded", "Correct", "Score"].map(str::to_owned).to_vec(),
            rows: ["biology", "business", "chemistry", "computer science", "economics", "engineering", "health"]
                .map(|name| [name, "14", "9", "64.29%"].map(str::to_owned).to_vec())
                .to_vec(),
        }],
        lists: vec![("Differences from the official program".to_owned(), vec![
            "Answers that the token limit cut off count as wrong, as in the official program, but are listed as truncated.".to_owned(),
            "The five examples of a category are chosen by the item's id.".to_owned(),
        ])],
    }
    };
    let score = |value, low, high| Some(Score { value, interval: Some((low, high)) });
    Report {
        title: "Benchmark Run Report".to_owned(),
        model: "acme/نموذج اللغة 7B · 模型-語言모델 · แบบจำลองภาษา · भाषा मॉडल · מודל שפה · Модель 🚀❤\u{fe0f} <b>&amp; \u{202e}evil\u{1b}[0m".to_owned(),
        run_id: "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90".to_owned(),
        warning: Some("DEMO DATA: these items came with the program. The scores say nothing about the real benchmark.".to_owned()),
        figures: vec![
            figure("Overall score", "66.67%", "mean of 4 benchmark scores"),
            figure("Coverage", "99.50%", "11,972 of 12,032 samples graded"),
            figure("Samples", "12,032", "of 12,032 planned"),
            figure("Cost", "$1,234.5678", "answers $1,200.00, judge $34.57"),
        ],
        facts: vec![
            Fact::code("Run ID", "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90"),
            Fact::new("Model", "A very long name: ".to_owned() + &"x".repeat(10_000)),
            Fact::new("Subset", "50%"),
            Fact::code("Subset Seed", "<b onclick=1>&'\"; DROP TABLE"),
            Fact::new("Status", "succeeded"),
            Fact::new("Started", "2026-01-02 03:03:05 UTC"),
            Fact::new("Completed", "2026-01-02 04:05:06 UTC"),
            Fact::new("Overall Score", "66.67%"),
        ],
        chart_legend: "Dot: score. Bar: 95% confidence interval. \"no score\": too few samples were graded.".to_owned(),
        benchmarks: vec![
            benchmark("mmlu_pro", "MMLU-Pro", score(0.6667, 0.579, 0.744)),
            benchmark("gpqa_diamond", "GPQA Diamond", score(0.512, 0.31, 0.71)),
            benchmark("ifbench (IFEval)", "IFEval", score(0.991, 0.97, 1.0)),
            benchmark("terminal_bench_hard", "Terminal-Bench Hard", None),
            benchmark("aime", "AIME 2025", Some(Score { value: 0.0, interval: None })),
        ],
        notes: vec![
            "This report describes the run as completed on 2026-01-02 04:05:06 UTC: 5 benchmarks, 50% of the items of each.".to_owned(),
            "Metrics come from a sample of the items, not from the whole dataset.".to_owned(),
            "This report contains no prompts, answers or gold answers.".to_owned(),
            "هذه ملاحظة باللغة العربية مع أرقام 123 وكلمات English في المنتصف.".to_owned(),
        ],
        environment: vec![Fact::new("Program", "bench-runner 0.1.0"), Fact::code("Commit", "0123456789abcdef")],
        verification: vec!["This PDF isn't signed. The signed archive of the same run has every prompt, answer and verdict, and can be verified by anyone.".to_owned()],
        signature: vec![Fact::new("Algorithm", "Ed25519"), Fact::code("Fingerprint", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")],
        verify_url: Some("https://bench.example/verify".to_owned()),
        created: Date { year: 2026, month: 1, day: 2, hour: 4, minute: 5, second: 6 },
        producer: "bench-runner 0.1.0".to_owned(),
    }
}
