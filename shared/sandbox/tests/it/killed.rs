//! Cleanup after a killed host.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use bench_sandbox::isolation::{IsolationError, IsolationOptions, forms};

use crate::support::{each_form, exec, helper, is_alive, processes_with, stdout_of, wait_until};

/// Variable with the folder, for a process of this test binary that acts as the host to be killed.
const VICTIM: &str = "BENCH_SANDBOX_TEST_VICTIM";

/// Creates sandboxes with running processes and waits to be killed, if started by the test below.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Some(folder) = std::env::var_os(VICTIM) else { return };
    let options = IsolationOptions::new(helper(), folder);
    let all = tokio::task::spawn_blocking(move || forms(&options)).await.unwrap();
    let mut sandboxes = Vec::new();
    for isolation in all.into_iter().flatten() {
        for _ in 0..3 {
            let sandbox = isolation.create(&crate::support::limits()).await.unwrap();
            sandbox.exec(&exec("setsid sleep 100000 >/dev/null 2>&1 & sleep 0.05")).await.unwrap();
            let output = sandbox.exec(&exec("echo $SANDY_SANDBOX_ID $HOME")).await.unwrap();
            print!("\nsandbox {}", String::from_utf8_lossy(&output.stdout));
            sandboxes.push(sandbox);
        }
    }
    println!("\nready");
    std::io::stdout().flush().unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sandboxes_die_with_their_host_and_the_next_one_cleans_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::victim", "--nocapture"])
        .env(VICTIM, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut made = Vec::new();
    for line in BufReader::new(victim.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(sandbox) = line.strip_prefix("sandbox ") {
            let (id, home) = sandbox.split_once(' ').unwrap();
            made.push((id.to_owned(), home.to_owned()));
        }
        if line == "ready" {
            break;
        }
    }
    assert!(made.len() >= 3, "{made:?}");
    let inside = || -> Vec<u32> {
        made.iter().flat_map(|(id, _)| processes_with(&format!("SANDY_SANDBOX_ID={id}"))).collect()
    };
    // During `exec`, a process has no environment for a moment.
    wait_until("a process in every sandbox", || inside().len() >= made.len()).await;
    let inside = inside();
    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_until("the end of every sandbox", || !inside.iter().any(|pid| is_alive(*pid))).await;

    let left =
        || std::fs::read_dir(folder.path()).unwrap().flatten().filter(|entry| entry.path().is_dir()).count();
    assert!(left() > 0, "a killed host removes nothing");
    let groups = |instance: &std::path::Path| -> Vec<String> {
        std::fs::read_to_string(instance.join("groups"))
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    };
    let groups: Vec<String> =
        std::fs::read_dir(folder.path()).unwrap().flatten().flat_map(|entry| groups(&entry.path())).collect();
    let options = IsolationOptions::new(helper(), folder.path());
    let next = tokio::task::spawn_blocking(move || forms(&options)).await.unwrap();
    let living = next.iter().flatten().count();
    assert_eq!(left(), living, "only the folders of living hosts remain");
    assert!(groups.iter().all(|group| !std::path::Path::new(group).exists()), "{groups:?}");
    for (_, home) in made.iter().filter(|(_, home)| home != "/workspace") {
        assert!(!std::path::Path::new(home).exists(), "{home}");
    }
}

/// Returns the parent of a process; `None` if the process is gone.
fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Returns the stages among the ancestors of a process, from the second stage up to the guard.
///
/// Recognizes them by their command line, which doesn't change. A missing mark in the environment wouldn't be reliable:
/// during `exec`, a command has no environment for a moment and would be taken for a stage.
fn stages_above(pid: u32) -> Vec<u32> {
    let is_stage = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"__sandbox")
    };
    let above = std::iter::successors(parent(pid), |pid| parent(*pid));
    above.take_while(|pid| *pid != std::process::id() && *pid != 0).filter(is_stage).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_any_stage_ends_the_sandbox_and_leaves_nothing_behind() {
    each_form(|form| async move {
        // Kill the second stage first, then the outer processes, up to the guard.
        let mut turn = 0;
        loop {
            let sandbox = form.sandbox().await;
            let mark = uuid::Uuid::new_v4().to_string();
            let mut request = exec("setsid sleep 100000 >/dev/null 2>&1 & touch begun; exec sleep 100000");
            request.env.insert("MARK".to_owned(), mark.clone());
            let mark = format!("MARK={mark}");
            let waits = tokio::spawn({
                let sandbox = sandbox.clone();
                async move { sandbox.exec(&request).await }
            });
            stdout_of(&sandbox, "until [ -e begun ]; do sleep 0.01; done").await;
            wait_until("both processes", || processes_with(&mark).len() >= 2).await;
            let mut ours = Vec::new();
            wait_until("the stages", || {
                ours = processes_with(&mark).first().map(|pid| stages_above(*pid)).unwrap_or_default();
                ours.last().is_some_and(|guard| parent(*guard) == Some(std::process::id()))
            })
            .await;
            let Some(target) = ours.get(turn) else { break };
            nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(i32::try_from(*target).unwrap()),
                nix::sys::signal::Signal::SIGKILL,
            )
            .unwrap();
            wait_until("the end", || sandbox.is_over() && processes_with(&mark).is_empty()).await;
            assert_eq!(waits.await.unwrap(), Err(IsolationError::Gone));
            sandbox.end().await;
            // A process that the kernel killed takes a moment to disappear.
            wait_until("the end of our own", || !ours.iter().any(|pid| is_alive(*pid))).await;
            turn += 1;
        }
        assert!(turn >= 2, "{turn}");
    })
    .await;
}
