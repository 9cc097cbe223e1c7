//! Commands on a full disk: a small file system in memory, in a mount namespace of its own.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_tests::model_server::{ModelRequest, ModelServer, Reply};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::support::{TestDir, mmlu_pro_rows};

/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Runs a command on a small disk. Fills the disk when the file `fill` appears, reads the runs, makes room when the file
/// `room` appears, and reads the run again on a full disk without another process.
const SCRIPT: &str = r#"
mount -t tmpfs -o size=24m,mode=700 tmpfs data || exit 99
fill() { dd if=/dev/zero of=data/filler bs=4k 2>/dev/null; }
"$@" >run.out 2>run.err &
run=$!
while [ ! -e fill ]; do sleep 0.05; done
fill
"$BENCH" runs >while.out 2>&1
echo $? >filled
while [ ! -e room ]; do sleep 0.05; done
rm data/filler
wait $run
echo $? >ended
fill
"$BENCH" runs latest --items >after.out 2>&1 || exit 98
"$BENCH" run --resume latest >resume.out 2>&1
echo $? >resumed
for command in "export latest --format jsonl --out -" "runs edit latest --name x" "runs delete latest --yes"; do
  fill
  "$BENCH" $command >>changed.out 2>&1
  echo "exit $?" >>changed.out
done
"#;

struct Script(Child);

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a shell script in a mount namespace of its own, with the command as its arguments and environment, and the program as
/// `BENCH`.
fn with_own_mounts(bench: &Command, script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(bench.get_program()).args(bench.get_args());
    command.env_clear().envs(bench.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("BENCH", bench.get_program()).stdin(Stdio::null());
    if let Some(dir) = bench.get_current_dir() {
        command.current_dir(dir);
    }
    command
}

fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn answers_wait_for_room_and_stored_runs_can_be_read() {
    let runtime = Runtime::new().unwrap();
    let (answers, is_answering) = watch::channel(false);
    let rule = move |_: &ModelRequest| Reply::once(is_answering.clone(), "The answer is (C).");
    let server = runtime.block_on(ModelServer::start(Duration::ZERO, Arc::new(rule))).unwrap();
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(6));
    std::fs::create_dir(dir.path("data")).unwrap();
    let base_url = server.base_url();
    let bench =
        dir.command(
            &[
                &[
                    "run",
                    "--model",
                    "openai-compatible/m",
                    "--base-url",
                    &base_url,
                    "--benchmark",
                    "mmlu_pro",
                ][..],
                &["--dataset", "mmlu_pro=items.jsonl", "--concurrency", "3"],
            ]
            .concat(),
        );
    let mut script = Script(with_own_mounts(&bench, SCRIPT).spawn().unwrap());
    let shown = || format!("{}{}", text(&dir.path("run.out")), text(&dir.path("run.err")));

    until("the model is not asked", || {
        let has_ended = script.0.try_wait().unwrap().is_some() || shown().contains("error: ");
        assert!(!has_ended, "{}", shown());
        server.total() == 3
    });
    dir.write("fill", "");
    until("the disk is not full", || dir.path("filled").exists());
    assert_eq!(text(&dir.path("filled")).trim(), "0", "{}", text(&dir.path("while.out")));
    assert!(text(&dir.path("while.out")).contains("running 0/6"), "{}", text(&dir.path("while.out")));
    until("the command says nothing", || shown().contains("is full: nothing more is asked for"));
    answers.send(true).unwrap();
    // The answers arrive, but there is no room for them.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(server.total(), 3, "nothing more is asked for");
    dir.write("room", "");
    until("the run does not end", || dir.path("ended").exists());
    assert_eq!(text(&dir.path("ended")).trim(), "0", "{}", shown());
    assert!(shown().contains("There is room on the disk again"), "{}", shown());
    assert_eq!(shown().matches("full").count(), 1, "one message: {}", shown());
    assert_eq!(server.total(), 6, "no answer is asked for twice");

    let status = script.0.wait().unwrap();
    assert!(status.success(), "{status}: {}", text(&dir.path("after.out")));
    assert_eq!(text(&dir.path("after.out")).matches(" correct ").count(), 6);
    assert_eq!(text(&dir.path("resumed")).trim(), "1");
    let refused = text(&dir.path("resume.out"));
    assert!(refused.contains("error: the disk of ") && !refused.contains("warning: "), "{refused}");
    let changed = text(&dir.path("changed.out"));
    assert_eq!(changed.matches("the disk of `").count(), changed.matches("exit 1").count(), "{changed}");
    assert_eq!(
        changed.matches("hint: free some space").count(),
        changed.matches("exit 1").count(),
        "{changed}"
    );
    assert!(changed.contains("exit 1") && !changed.contains("internal error"), "{changed}");
}

/// Exports to a small disk, first with room for them and then without, and lists what is on the disk at the end.
const EXPORTS: &str = r#"
mount -t tmpfs -o size=128k,mode=700 tmpfs small || exit 99
"$BENCH" export latest --format zip --out small/x.zip >first.out 2>&1 || exit 98
cp small/x.zip x.zip
dd if=/dev/zero of=small/filler bs=4k 2>/dev/null
for format in zip csv jsonl; do
  "$BENCH" export latest --format $format --out small/x.$format --force >>full.out 2>&1
  echo "exit $?" >>full.out
done
"$BENCH" run --resume latest --out small >>full.out 2>&1
echo "exit $?" >>full.out
cmp small/x.zip x.zip >>full.out 2>&1 && echo "kept" >>full.out
ls small >>full.out
"#;

#[test]
fn an_export_without_room_is_an_error_and_keeps_the_file_before_it() {
    let dir = TestDir::new();
    let run = dir.bench(&["run", "--model", "oracle", "--demo", "--benchmark", "mmlu_pro"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    std::fs::create_dir(dir.path("small")).unwrap();
    let status = with_own_mounts(&dir.command(&[]), EXPORTS).status().unwrap();
    assert!(status.success(), "{status}: {}", text(&dir.path("first.out")));
    let full = text(&dir.path("full.out"));
    assert_eq!(full.matches("no space left on device").count(), 4, "{full}");
    assert_eq!(full.matches("exit 1\n").count(), 4, "{full}");
    assert!(full.contains("hint: the results are kept: `bench export "), "{full}");
    assert!(full.ends_with("kept\nfiller\nx.zip\n"), "{full}");
}
