//! The signed archive and the table, built in one pass.

use crate::support::{Said, Script, Stack, build_both, mixed, script};
use bench_domain::{Position, RunId};
use bench_exports::{ExportFormat, ExportOrder};

/// Returns a run with several pages of samples, whose answers are longer than the table's cells. If `fails` is true, its first sample
/// has no answer.
fn large_script(fails: bool) -> Script<impl Fn(Position) -> Option<Said>> {
    let answer = format!("the answer is (A). {}", "So ".repeat(4_000));
    let script = script(600, move |position| match (fails, position.item) {
        (true, 0) => mixed(Position { item: 2, sample: 0 }),
        _ => Some(Said::right(&answer)),
    });
    Script { run: RunId::random(), ..script }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_built_together_with_its_archive() {
    let stack = Stack::open().await;
    // Each record, 100 at once, and each body are read once. The cause of a failure isn't in the report, but in the records.
    for (fails, reads) in [(false, [6, 600]), (true, [12, 599])] {
        let script = large_script(fails);
        script.play(&stack).await;
        let mut alone = Vec::new();
        for format in [ExportFormat::Zip, ExportFormat::Csv] {
            let built = stack.exports().build(script.run, format).await.unwrap();
            alone.push(stack.bytes(&built.key).await);
            stack.blobs.delete(&built.key).await.unwrap();
        }
        let (keys, read) = build_both(&stack, script.run).await;
        assert_eq!(read, reads, "{fails}");
        for (key, alone) in keys.iter().zip(&alone) {
            assert!(&stack.bytes(key).await == alone, "{key}");
        }
        // A table that is stored already stays as it is.
        stack.blobs.delete(&keys[0]).await.unwrap();
        stack.blobs.put(&keys[1], b"as it was".to_vec().into(), "text/csv").await.unwrap();
        let (keys, _) = build_both(&stack, script.run).await;
        assert!(stack.bytes(&keys[0]).await == alone[0]);
        assert_eq!(stack.bytes(&keys[1]).await, b"as it was");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_is_built_alone_if_its_table_cannot_be_stored() {
    let stack = Stack::open().await;
    let script = large_script(false);
    script.play(&stack).await;
    let alone = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    let bytes = stack.bytes(&alone.key).await;
    stack.blobs.delete(&alone.key).await.unwrap();
    // The table is stored first (`finish` in `build.rs`).
    let stack = stack.reopen_with("deny@PutObject=1").await;
    let order = ExportOrder { with_table: true, ..ExportFormat::Zip.into() };
    let archive = stack.exports().build(script.run, order).await.unwrap();
    assert_eq!(archive, alone);
    assert!(stack.bytes(&archive.key).await == bytes);
    assert_eq!(stack.calls.of("PutObject").0, 1);
    stack.calls.clear();
    stack.exports().build(script.run, ExportFormat::Csv).await.unwrap();
    assert_eq!(stack.calls.of("PutObject").0, 1, "the table wasn't stored before");
}
