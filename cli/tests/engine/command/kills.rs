//! Kills of processes while episodes have containers: each episode is graded once, and nothing is left over.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use super::episodes::{ENGINE, PODMAN_VARS, Place, SOLUTION, Service, TEST, is_any_episode_running, objects};
use crate::support::CommandOutput;

/// Number of episodes of the test with kills, unless `BENCH_TEST_EPISODES` says otherwise.
const EPISODES: usize = 12;
/// Number of episodes for each kill of the command, and for each of a process that it started.
const EPISODES_PER_COMMAND_KILL: usize = 6;
const EPISODES_PER_PROCESS_KILL: usize = 2;
/// Minimum number of kinds of processes of which one is killed. While the command looks for its engine, the engine's
/// service is alone: to kill it again and again would only prove that there is no engine then.
const KINDS_MIN: usize = 3;
/// Minimum time between two kills of the command, which loses all sandboxes: an episode gives up after five of them.
const LIFE_MIN: Duration = Duration::from_secs(12);
/// Maximum time of the test with kills, for each episode.
const TIME_MAX: Duration = Duration::from_secs(120);
/// Number of episodes of the test with a sandbox host of its own, and of kills of each process there.
const HOST_EPISODES: usize = 4;
const HOST_KILLS: usize = 2;
/// Key of that sandbox host.
const KEY: &str = "key-of-the-sandbox-host";

/// Kills the command, and processes of each kind that it started, at random moments while episodes have containers. A
/// killed command is resumed.
#[test]
fn episodes_survive_the_end_of_any_process() {
    let _engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    let seed = std::env::var("BENCH_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(rand::random);
    println!("seed {seed} (repeat with BENCH_TEST_SEED={seed})");
    let mut random = StdRng::seed_from_u64(seed);
    let episodes = std::env::var("BENCH_TEST_EPISODES").ok().and_then(|count| count.parse().ok());
    let episodes: usize = episodes.unwrap_or(EPISODES);
    let (before, began) = (objects(), Instant::now());
    let place = Place::new();
    let task = place.task("survivor", SOLUTION, TEST);
    let samples = episodes.to_string();
    let command_kills_max = episodes.div_ceil(EPISODES_PER_COMMAND_KILL);
    let process_kills_max = episodes.div_ceil(EPISODES_PER_PROCESS_KILL);
    let order =
        ["run", "--json", "--task", task.to_str().unwrap(), "--agent", "oracle", "--samples", &samples];
    let (mut run, mut command_kills, mut process_kills) =
        (None::<String>, 0, BTreeMap::<String, usize>::new());
    let time_max = TIME_MAX * u32::try_from(episodes).unwrap();
    loop {
        assert!(began.elapsed() < time_max, "the episodes do not get through");
        let args: Vec<&str> = match &run {
            Some(run) => vec!["run", "--json", "--resume", run],
            None => order.to_vec(),
        };
        let mut child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let started_at = Instant::now();
        let ended = loop {
            std::thread::sleep(Duration::from_millis(random.random_range(100..=2_500)));
            if child.try_wait().unwrap().is_some() {
                break true;
            }
            if command_kills < command_kills_max && started_at.elapsed() > LIFE_MIN {
                command_kills += 1;
                child.kill().unwrap();
                break false;
            }
            let mut started = if is_any_episode_running() { descendants(child.id()) } else { Vec::new() };
            if process_kills.values().sum::<usize>() >= process_kills_max {
                continue;
            }
            // A kind of process that was killed least, and any process of it.
            started.shuffle(&mut random);
            let named: Vec<_> = started.into_iter().filter_map(|pid| Some((kind(pid)?, pid))).collect();
            if named.iter().map(|(kind, _)| kind).collect::<BTreeSet<_>>().len() < KINDS_MIN {
                continue;
            }
            let victim =
                named.into_iter().min_by_key(|(kind, _)| process_kills.get(kind).copied().unwrap_or(0));
            if let Some((kind, pid)) = victim
                && kill(pid)
            {
                *process_kills.entry(kind).or_default() += 1;
            }
        };
        let output = CommandOutput::new(&child.wait_with_output().unwrap());
        if ended {
            assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
            break;
        }
        if run.is_none() {
            let runs: Value = serde_json::from_str(&place.bench(&["runs", "--json"]).stdout).unwrap();
            run = runs[0]["id"].as_str().map(str::to_owned);
        }
    }
    println!("{command_kills} kills of the command; of processes that it started: {process_kills:?}");
    assert!(command_kills > 0 && process_kills.len() >= KINDS_MIN, "too few kills");
    assert_all_passed(&place, &run.unwrap(), episodes);
    assert_eq!(objects(), before);
    assert_eq!(services(&place), Vec::<String>::new());
}

/// Returns the command lines of services of podman with a socket in the test's folder. Those that were told to end may take a
/// moment.
fn services(place: &Place) -> Vec<String> {
    let folder = place.path("").display().to_string();
    let lines = || -> Vec<String> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines =
            processes.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
        lines.filter(|line| line.contains(&folder)).map(|line| line.replace('\0', " ")).collect()
    };
    let until = Instant::now() + Duration::from_secs(120);
    while !lines().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(200));
    }
    lines()
}

fn assert_all_passed(place: &Place, run: &str, episodes: usize) {
    let items = place.bench(&["runs", run, "--items", "--json"]).stdout;
    let items: Vec<Value> = serde_json::from_str(&items).unwrap();
    let others: Vec<&Value> = items.iter().filter(|item| item["outcome"] != "correct").collect();
    assert!(items.len() == episodes && others.is_empty(), "{others:#?}");
}

/// Kills a sandbox host and the engine that it was given, in turn, while a command has episodes there.
#[test]
fn episodes_survive_the_end_of_the_sandbox_host_and_of_its_engine() {
    let _engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(
        std::env::var_os(PODMAN_VARS[1]).is_some(),
        "an engine that other programs use can't be killed: leave out this test with \
         `--skip episodes_survive_the_end_of_the_sandbox_host`"
    );
    let before = objects();
    let place = Place::new();
    let task = place.task("survivor", "#!/bin/sh\nsleep 4\ntouch done\n", TEST);
    let folder = place.path("engine");
    std::fs::create_dir(&folder).unwrap();
    let socket = format!("unix://{}", folder.join("podman.sock").display());
    let podman = || {
        let mut service = Command::new("podman");
        service.args(["system", "service", "--time", "0", &socket]).current_dir(&folder);
        Service::start(service.stdout(Stdio::null()).stderr(Stdio::null()))
    };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let host = || {
        let data = place.path("host");
        let args = ["sandy", "--port", &port, "--data-dir", data.to_str().unwrap()];
        let mut host = place.command(&args);
        host.env("DOCKER_HOST", &socket).env("SANDY_API_KEY", KEY);
        Service::start(host.stdout(Stdio::null()).stderr(Stdio::null()))
    };
    let (mut engine, mut sandboxes) = (podman(), host());
    let samples = HOST_EPISODES.to_string();
    let order =
        ["run", "--json", "--task", task.to_str().unwrap(), "--agent", "oracle", "--samples", &samples];
    let mut order = place.command(&order);
    order.env("SANDY_BASE_URL", format!("http://127.0.0.1:{port}")).env("SANDY_API_KEY", KEY);
    let mut run = order.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut kills = 0;
    for kill in 0..2 * HOST_KILLS {
        while run.try_wait().unwrap().is_none() && !is_any_episode_running() {
            std::thread::sleep(Duration::from_millis(200));
        }
        if run.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_secs(1));
        kills += 1;
        if kill % 2 == 0 {
            engine.kill();
            std::thread::sleep(Duration::from_secs(1));
            engine = podman();
        } else {
            sandboxes.kill();
            std::thread::sleep(Duration::from_secs(1));
            sandboxes = host();
        }
        // The next kill meets what has been started since.
        std::thread::sleep(Duration::from_secs(5));
    }
    let output = CommandOutput::new(&run.wait_with_output().unwrap());
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(kills > 2, "only {kills} kills");
    let runs: Value = serde_json::from_str(&place.bench(&["runs", "--json"]).stdout).unwrap();
    assert_all_passed(&place, runs[0]["id"].as_str().unwrap(), HOST_EPISODES);
    sandboxes.end();
    engine.end();
    assert_eq!(objects(), before);
}

/// Returns the name of a process, with the program that an interpreter or a runner runs; `None` if it has ended.
fn kind(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok().filter(|line| !line.is_empty())?;
    let words = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let names = words.map(|word| word.rsplit('/').next().unwrap_or_default().to_owned());
    let is_name = |name: &String| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || "-._".contains(c))
    };
    Some(names.filter(is_name).take(2).collect::<Vec<_>>().join(" "))
}

/// Returns the processes that a process started, and those that they started.
fn descendants(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task");
    let threads = std::fs::read_dir(path).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let direct: Vec<u32> = children
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect();
    direct.into_iter().flat_map(|pid| std::iter::once(pid).chain(descendants(pid))).collect()
}

/// Kills a process. Returns false if it has ended meanwhile.
fn kill(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok()
}
