//! Agents on repositories in images, and verifications of patches, ordered by the command. The demo's image is built from one of
//! this machine's own programs.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use bench_tests::model_server::{ModelRequest, ModelServer, Reply};
use serde_json::{Value, json};

use super::episodes::{ENGINE, Place, is_any_episode_running, objects};

/// Image that the demo's is built from.
const BASE: &str = "docker.io/library/debian:bookworm";
/// Rows of the demo.
const ROWS: &str = include_str!("../../../../shared/benchmarks/data/swe_bench_pro.jsonl");
/// Verdicts of the miniature's candidates.
const MINIATURE: &str = "swe_mini";
/// Maximum time of a run that is killed again and again.
const TIME_MAX: Duration = Duration::from_secs(1_200);

pub(super) fn make_base() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/containers/base.sh");
    let made = Command::new(script).arg(BASE).status().unwrap();
    assert!(made.success(), "the base image can't be made");
}

pub(super) fn rows() -> Vec<Value> {
    ROWS.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(super) fn items_of(place: &Place, run: &str) -> Value {
    let shown = place.bench(&["runs", run, "--items", "--json"]);
    serde_json::from_str(&shown.stdout).unwrap_or_else(|error| panic!("{error}: {}", shown.stderr))
}

fn order(place: &Place, args: &[&str]) -> (String, Value) {
    let ended = place.bench(&[&["run", "--json", "--benchmark", "swe_bench_pro"], args].concat());
    let runs: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", ended.stdout, ended.stderr));
    let run = runs[0]["id"].as_str().unwrap().to_owned();
    let items = items_of(place, &run);
    (run, items)
}

/// Returns the reply of an agent that applies a patch.
fn apply(patch: &str) -> String {
    format!(
        "I mend it.\n````bash\ncat > /tmp/mine.diff <<'PATCH'\n{patch}PATCH\ngit apply /tmp/mine.diff && git log --all --oneline | wc -l\n````\n"
    )
}

#[test]
fn patches_are_verified_in_containers() {
    let _engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    make_base();
    let (before, place) = (objects(), Place::new());
    let (run, items) = order(&place, &["--model", "oracle"]);
    let outcomes: Vec<&Value> = items.as_array().unwrap().iter().map(|item| &item["outcome"]).collect();
    assert_eq!(outcomes, ["correct"; 3], "{items:#}");
    let artifacts = place.path("artifacts");
    let written = place.bench(&["artifacts", &run, "--out", artifacts.to_str().unwrap()]);
    assert_eq!(written.code, 0, "{}{}", written.stdout, written.stderr);
    let files = Command::new("find").arg(&artifacts).args(["-type", "f"]).output().unwrap();
    let files = String::from_utf8(files.stdout).unwrap();
    for name in ["patch.diff", "output.json", "stdout.log", "summary.json"] {
        assert!(files.lines().any(|file| file.ends_with(name)), "{name}: {files}");
    }
    // Predictions of others; a half one, one for another place and an empty one don't resolve.
    let rows = rows();
    let predictions: Vec<Value> = rows
        .iter()
        .zip(["half", "", "model"])
        .map(|(row, kind)| match kind {
            "model" => {
                json!({ "instance_id": row["instance_id"], "model_patch": row["patch"], "prefix": "x" })
            }
            "half" => {
                let gold = row["patch"].as_str().unwrap();
                let half: String =
                    gold.lines().take(gold.lines().count() / 2).map(|line| format!("{line}\n")).collect();
                json!({ "instance_id": row["instance_id"], "patch": half, "prefix": "x" })
            }
            _ => json!({ "instance_id": row["instance_id"], "patch": "", "prefix": "x" }),
        })
        .collect();
    let file = place.path("predictions.json");
    std::fs::write(&file, json!(predictions).to_string()).unwrap();
    let (_, items) = order(&place, &["--demo", "--model", &format!("replay:{}", file.display())]);
    let outcomes: Vec<&Value> = items.as_array().unwrap().iter().map(|item| &item["outcome"]).collect();
    assert_eq!(outcomes[2], "correct", "{items:#}");
    assert!(
        outcomes[..2].iter().all(|outcome| *outcome != "correct" && *outcome != "infrastructure-error"),
        "{items:#}"
    );
    assert_eq!(objects(), before);
}

/// Kills the command again and again while an agent works and its change is verified.
#[test]
fn an_agents_change_survives_kills_and_costs_each_reply_once() {
    let _engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    make_base();
    let (before, place) = (objects(), Place::new());
    let rows = rows();
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    let rule = move |request: &ModelRequest| {
        counted.fetch_add(1, Ordering::SeqCst);
        let messages = request.body["messages"].as_array().unwrap();
        let task = messages[0].to_string();
        let is_about = |row: &&Value| {
            let title = row["problem_statement"].as_str().unwrap().lines().next().unwrap();
            task.contains(title)
        };
        let gold = rows.iter().find(is_about).unwrap()["patch"].as_str().unwrap();
        match messages.len() {
            1 => Reply::Text(
                "```bash\nls; cat /proc/net/route | wc -l; git log --all --oneline | wc -l\n```".to_owned(),
            ),
            3 => Reply::Text(apply(gold)),
            5 => Reply::Text("```bash\nsleep 2; git status --short\n```".to_owned()),
            _ => Reply::Text("```done\n```".to_owned()),
        }
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(ModelServer::start(Duration::ZERO, Arc::new(rule))).unwrap();
    let base =
        ["run", "--json", "--benchmark", "swe_bench_pro", "--model", "openai-compatible/m", "--limit", "1"];
    let (mut run, mut kills, began) = (None::<String>, 0, Instant::now());
    loop {
        assert!(began.elapsed() < TIME_MAX, "the run does not get through");
        let args: Vec<&str> = match &run {
            Some(run) => vec!["run", "--json", "--resume", run],
            None => base.to_vec(),
        };
        let mut command = place.command(&args);
        command
            .env("OPENAI_COMPATIBLE_BASE_URL", server.base_url())
            .env("OPENAI_COMPATIBLE_API_KEY", "sk-no-key-of-anyone")
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let errors = child.stderr.take().unwrap();
        let reader = std::thread::spawn(move || {
            BufReader::new(errors).lines().map_while(Result::ok).collect::<Vec<_>>().join("\n")
        });
        // Later and later, so that each kill finds the run further on.
        let until = Instant::now() + Duration::from_secs(6 + 3 * kills);
        let ended = loop {
            std::thread::sleep(Duration::from_millis(200));
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if kills < 4 && Instant::now() > until {
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
                break None;
            }
        };
        let said = reader.join().unwrap();
        if run.is_none() {
            let runs: Value = serde_json::from_str(&place.bench(&["runs", "--json"]).stdout).unwrap();
            run = runs[0]["id"].as_str().map(str::to_owned);
        }
        if let Some(status) = ended {
            assert!(status.success(), "{said}");
            break;
        }
    }
    let run = run.unwrap();
    let items = items_of(&place, &run);
    assert_eq!(items[0]["outcome"], "correct", "{items:#}");
    println!("{kills} kills, {} replies", asked.load(Ordering::SeqCst));
    assert!(kills > 0, "the run was over before it was killed");
    // A killed command loses its sandbox: an agent starts over then, a verification asks no model.
    let shown = items[0]["judge_output"].clone();
    assert!(
        shown["verification"]["command_ms"].is_u64() || items[0]["detail"]["resolved"] == true,
        "{items:#}"
    );
    let until = Instant::now() + Duration::from_secs(120);
    while is_any_episode_running() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(200));
    }
    // What a killed command's host left is removed by the next host.
    place.bench(&["run", "--json", "--benchmark", "swe_bench_pro", "--model", "nop", "--limit", "1"]);
    assert_eq!(objects(), before);
}

/// The official verdicts of the miniature's 15 patches.
#[test]
fn the_miniatures_patches_have_their_official_verdicts_in_containers() {
    let _engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    make_base();
    let (before, place) = (objects(), Place::new());
    let vectors = crate::support::vector_path(MINIATURE);
    let candidates: Value =
        serde_json::from_str(&std::fs::read_to_string(vectors.join("candidates.json")).unwrap()).unwrap();
    let row = std::fs::read_to_string(vectors.join("instances.jsonl")).unwrap();
    let mut row: Value = serde_json::from_str(row.lines().next().unwrap()).unwrap();
    let tag = row["dockerhub_tag"].as_str().unwrap().to_owned();
    // The image under its official name, as if it had been pulled.
    let folder = place.path("image");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(vectors.join("make_repo.sh"), folder.join("make_repo.sh")).unwrap();
    let dockerfile = format!(
        "FROM {BASE}\nCOPY make_repo.sh /make_repo.sh\nRUN bash /make_repo.sh /app\nWORKDIR /app\nENTRYPOINT [\"/bin/bash\"]\n"
    );
    std::fs::write(folder.join("Dockerfile"), dockerfile).unwrap();
    let image = format!("docker.io/jefzda/sweap-images:{tag}");
    let built = Command::new("docker")
        .args(["build", "--tag", &image, folder.to_str().unwrap()])
        .env("DOCKER_BUILDKIT", "0")
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let dataset = place.path("dataset");
    std::fs::create_dir_all(&dataset).unwrap();
    for part in ["run_scripts", "dockerfiles"] {
        let copied = Command::new("cp").arg("-r").arg(vectors.join(part)).arg(&dataset).status().unwrap();
        assert!(copied.success());
    }
    let found = candidates["candidates"].as_array().unwrap();
    row["dockerhub_tag"] = tag.into();
    std::fs::write(dataset.join("rows.jsonl"), format!("{row}\n")).unwrap();
    let patches = place.path("patches.jsonl");
    let lines: Vec<String> = found
        .iter()
        .enumerate()
        .map(|(sample, one)| {
            json!({ "item_id": row["instance_id"], "sample": sample, "response": one["patch"] }).to_string()
        })
        .collect();
    std::fs::write(&patches, lines.join("\n")).unwrap();
    let samples = found.len().to_string();
    let (_, items) = order(
        &place,
        &[
            "--dataset",
            &format!("swe_bench_pro={}", dataset.display()),
            "--model",
            &format!("replay:{}", patches.display()),
            "--samples",
            &samples,
        ],
    );
    let items = items.as_array().unwrap();
    assert_eq!(items.len(), found.len());
    for (item, one) in items.iter().zip(found) {
        let is_resolved = item["outcome"] == "correct";
        assert_eq!(Some(is_resolved), one["resolved"].as_bool(), "{}: {item:#}", one["label"]);
        assert_ne!(item["outcome"], "infrastructure-error", "{item:#}");
    }
    Command::new("docker").args(["image", "rm", "--force", &image]).output().unwrap();
    assert_eq!(objects().len(), before.len());
}
