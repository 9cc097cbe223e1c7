//! The table, built from a run in the embedded services.

use crate::support::{Said, Stack, VERSION, after, item_id, script};
use bench_domain::{Code, Outcome, Verdict};
use bench_exports::ExportFormat;
use bench_state::{EventKind, NewEvent};

const HEADER: &str = "run_id,model_slug,subset_pct,subset_count,subset_seed,run_status,run_started_at,\
                      run_completed_at,overall_score,benchmark_name,benchmark_status,benchmark_score,sampled_items,\
                      completed_items,item_id,prompt,response,expected,is_correct,score,latency_ms,error";

struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn read(bytes: &[u8]) -> Self {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(bytes);
        let mut rows = reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect());
        Self { header: rows.next().unwrap(), rows: rows.collect() }
    }

    fn cell(&self, row: usize, column: &str) -> &str {
        let column = self.header.iter().position(|name| name == column).unwrap();
        &self.rows[row][column]
    }
}

async fn table(stack: &Stack, run: bench_domain::RunId) -> (Vec<u8>, Table) {
    let built = stack.exports().build(run, ExportFormat::Csv).await.unwrap();
    assert_eq!(built.filename, format!("benchmark_run_{run}_20260102_042626.csv"));
    assert_eq!(built.content_type, "text/csv; charset=utf-8");
    assert_eq!(built.key, format!("exports/{run}/1-{VERSION}.csv"));
    let bytes = stack.bytes(&built.key).await;
    let table = Table::read(&bytes);
    (bytes, table)
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_and_cells() {
    let stack = Stack::open().await;
    let long = "😀".repeat(600);
    let script = script(5, |position| {
        Some(match position.item {
            0 => Said { prompt: long.clone(), ..Said::right("says \"A\",\r\nthen\nstops") },
            1 => Said { latency_ms: 0, expected: "-5".to_owned(), ..Said::wrong("=HYPERLINK(\"http://x\")") },
            2 => Said::failed("@SUM(1) went wrong"),
            3 => Said {
                prompt: "\t=1+1".to_owned(),
                change: |body| body.answer.usage_rejected = true,
                ..Said::wrong("+1")
            },
            _ => {
                Said { verdict: Verdict::wrong(Outcome::NoAnswer, "-nothing"), ..Said::right(" \u{feff}=1") }
            }
        })
    });
    script.play(&stack).await;
    let (bytes, table) = table(&stack, script.run).await;
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.starts_with(&format!("{HEADER},")), "{}", text.lines().next().unwrap());
    assert!(text.ends_with("\r\n"));
    assert_eq!(table.rows.len(), 5);

    for (column, cell) in [
        ("run_id", script.run.to_string().as_str()),
        ("model_slug", "'=acme/model"),
        ("subset_pct", "50"),
        ("subset_count", ""),
        ("subset_seed", "'+seed"),
        ("run_status", "failed"),
        ("run_started_at", "2026-01-02T03:03:06.123456"),
        ("run_completed_at", "2026-01-02T04:26:26.123456"),
        ("overall_score", ""),
        ("benchmark_name", "mmlu_pro"),
        ("benchmark_status", "failed"),
        ("benchmark_score", ""),
        ("sampled_items", "5"),
        ("completed_items", "5"),
        ("item_id", "q0"),
        ("source_id", "'=own/0"),
        ("response", "says \"A\",\r\nthen\nstops"),
        ("expected", "A"),
        ("is_correct", "True"),
        ("score", "1.0"),
        ("latency_ms", "12"),
        ("error", ""),
        ("benchmark_coverage", "0.8"),
        ("demo", "False"),
        ("item_hash", "0000000000000000"),
        ("sample", "0"),
        ("outcome", "correct"),
        ("extracted", "A"),
        ("input_tokens", "7"),
        ("output_tokens", "3"),
        ("tokens_known", "counted"),
        ("benchmark_estimated_tokens", "0"),
        ("benchmark_judge_estimated_tokens", ""),
    ] {
        assert_eq!(table.cell(0, column), cell, "{column}");
    }
    assert_eq!((table.cell(0, "error_code"), table.cell(2, "error_code")), ("", "provider_error"));
    assert_eq!(table.cell(2, "tokens_known"), "", "there is no answer");
    assert_eq!(table.cell(3, "tokens_known"), "rejected");
    assert_eq!(table.cell(0, "prompt"), "😀".repeat(500));
    assert_eq!((table.cell(1, "score"), table.cell(1, "latency_ms")), ("0.0", "0"), "zero is not nothing");
    assert_eq!(table.cell(1, "is_correct"), "False");
    assert_eq!(table.cell(1, "response"), "'=HYPERLINK(\"http://x\")");
    assert_eq!(table.cell(1, "expected"), "'-5");
    assert_eq!(table.cell(2, "error"), "'@SUM(1) went wrong");
    assert_eq!((table.cell(2, "is_correct"), table.cell(2, "score"), table.cell(2, "prompt")), ("", "", ""));
    assert_eq!((table.cell(3, "prompt"), table.cell(3, "response")), ("'\t=1+1", "'+1"));
    assert_eq!((table.cell(4, "response"), table.cell(4, "reason")), ("' \u{feff}=1", "'-nothing"));
    for cell in table.rows.iter().flatten() {
        assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_right_answer_has_scores_of_zero() {
    let stack = Stack::open().await;
    let script = script(2, |_| Some(Said::wrong("B")));
    script.play(&stack).await;
    let (_, table) = table(&stack, script.run).await;
    assert_eq!((table.cell(0, "overall_score"), table.cell(0, "benchmark_score")), ("0.0", "0.0"));
    assert_eq!((table.cell(1, "run_status"), table.cell(1, "benchmark_accuracy_all")), ("succeeded", "0.0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_stand_in_the_order_of_the_plan() {
    let stack = Stack::open().await;
    let mut script = script(300, |position| Some(Said::right(&position.to_string())));
    script.samples = 4;
    script.play(&stack).await;
    let (_, table) = table(&stack, script.run).await;
    assert_eq!(table.rows.len(), 1_200);
    for row in 0..1_200 {
        let (item, sample) = (row / 4, row % 4);
        assert_eq!(table.cell(row, "item_id"), item_id(u32::try_from(item).unwrap()));
        assert_eq!(table.cell(row, "sample"), sample.to_string());
        assert_eq!(table.cell(row, "response"), format!("{item}.{sample}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_benchmark_without_samples_has_one_row() {
    let stack = Stack::open().await;
    let script = script(1, |_| None);
    script.create(&stack).await;
    let run = stack.state.run(script.run).await.unwrap().unwrap();
    let failed = run.state.fail(after(5_001), Code::DatasetUnavailable, "no dataset").unwrap();
    let event = NewEvent::new(EventKind::RunFailed, "no dataset");
    stack.state.change_run(&run, &failed, 1, &event, after(5_001)).await.unwrap();
    stack.state.skip_open_benchmarks(script.run, "it ended early", after(5_001)).await.unwrap();
    let (_, table) = table(&stack, script.run).await;
    assert_eq!(table.rows.len(), 1);
    assert_eq!((table.cell(0, "benchmark_status"), table.cell(0, "sampled_items")), ("skipped", "0"));
    let first = table.header.iter().position(|name| name == "item_id").unwrap();
    assert!(table.rows[0][first..first + 8].iter().all(String::is_empty));
}
