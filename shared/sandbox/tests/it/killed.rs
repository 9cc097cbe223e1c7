//! A host that is killed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use bench_sandbox::isolation::{IsolationError, IsolationOptions, forms};

use crate::host::{each_form, exec, helper, is_alive, printed, processes_with, until};

/// Names the folder to a process of this suite that plays the host to be killed.
const VICTIM: &str = "BENCH_SANDBOX_TEST_VICTIM";

/// Makes sandboxes with something running in them and waits to be killed, when started by the test below.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Some(folder) = std::env::var_os(VICTIM) else { return };
    let options = IsolationOptions::new(helper(), folder);
    let all = tokio::task::spawn_blocking(move || forms(&options)).await.unwrap();
    let mut sandboxes = Vec::new();
    for isolation in all.into_iter().flatten() {
        for _ in 0..3 {
            let sandbox = isolation.create(&crate::host::limits()).await.unwrap();
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
    // A process that becomes another program has no variables for a moment.
    until("a process in every sandbox", || inside().len() >= made.len()).await;
    let inside = inside();
    victim.kill().unwrap();
    victim.wait().unwrap();
    until("the end of every sandbox", || !inside.iter().any(|pid| is_alive(*pid))).await;

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
    assert_eq!(left(), living, "only the folders of those that live");
    assert!(groups.iter().all(|group| !std::path::Path::new(group).exists()), "{groups:?}");
    for (_, home) in made.iter().filter(|(_, home)| home != "/workspace") {
        assert!(!std::path::Path::new(home).exists(), "{home}");
    }
}

/// The parent of a process; `None` when the process is gone.
fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// The stages that this process is below, the second stage first, up to the guard.
///
/// Told by their command lines, which stay as they are: a command that is just becoming another program has no
/// variables for a moment, and would itself be taken for a stage if stages were told by having no mark.
fn stages_above(pid: u32) -> Vec<u32> {
    let is_stage = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"__sandbox")
    };
    let above = std::iter::successors(parent(pid), |pid| parent(*pid));
    above.take_while(|pid| *pid != std::process::id() && *pid != 0).filter(is_stage).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn whichever_of_its_own_processes_is_killed_the_sandbox_is_over_and_leaves_nothing() {
    each_form(|at| async move {
        // The second stage, then those outside, up to the guard.
        let mut turn = 0;
        loop {
            let sandbox = at.sandbox().await;
            let mark = uuid::Uuid::new_v4().to_string();
            let mut asked = exec("setsid sleep 100000 >/dev/null 2>&1 & touch begun; exec sleep 100000");
            asked.env.insert("MARK".to_owned(), mark.clone());
            let mark = format!("MARK={mark}");
            let waits = tokio::spawn({
                let sandbox = sandbox.clone();
                async move { sandbox.exec(&asked).await }
            });
            printed(&sandbox, "until [ -e begun ]; do sleep 0.01; done").await;
            until("both processes", || processes_with(&mark).len() >= 2).await;
            let mut ours = Vec::new();
            until("the stages", || {
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
            until("the end", || sandbox.is_over() && processes_with(&mark).is_empty()).await;
            assert_eq!(waits.await.unwrap(), Err(IsolationError::Gone));
            sandbox.end().await;
            // One that was killed by the kernel takes a moment to go.
            until("the end of our own", || !ours.iter().any(|pid| is_alive(*pid))).await;
            turn += 1;
        }
        assert!(turn >= 2, "{turn}");
    })
    .await;
}
