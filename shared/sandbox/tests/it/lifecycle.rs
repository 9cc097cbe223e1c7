//! Commands, processes and the end of sandboxes.

use std::time::Duration;

use bench_sandbox::isolation::IsolationError;

use crate::support::{each_form, exec, marked_command, processes_with, run, stdout_of, text, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_has_its_folder_variables_and_exit_code() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        run(&sandbox, "mkdir -p a/b").await;
        let mut request = exec("pwd; echo $WORD; echo complaint >&2; exit 7");
        request.cwd = Some("a/b".to_owned());
        request.env.insert("WORD".to_owned(), "a word's \"quotes\"".to_owned());
        let output = sandbox.exec(&request).await.unwrap();
        let out = text(&output.stdout);
        assert!(out.ends_with("/a/b\na word's \"quotes\"\n"), "{out}");
        assert_eq!((text(&output.stderr).as_str(), output.exit_code), ("complaint\n", Some(7)));

        request.cwd = Some("/workspace/a".to_owned());
        assert!(text(&sandbox.exec(&request).await.unwrap().stdout).contains("/a\n"));
        request.cwd = Some("nowhere".to_owned());
        assert_eq!(sandbox.exec(&request).await.unwrap().exit_code, Some(1));

        assert_eq!(run(&sandbox, "kill -9 $$").await.exit_code, Some(128 + 9));
        assert_eq!(run(&sandbox, "cat").await.exit_code, Some(0), "the input is empty");
        assert_eq!(run(&sandbox, "no-such-program").await.exit_code, Some(127));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_s_environment_is_not_visible_inside() {
    // Cargo sets variables for its tests, so there is an environment that could leak.
    assert!(std::env::vars().count() > 8);
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let names =
            stdout_of(&sandbox, "python3 -c 'import os; print(\" \".join(sorted(os.environ)))'").await;
        let ours = "HOME LANG PATH PWD SANDY_ISOLATION SANDY_SANDBOX_ID SHLVL TMPDIR";
        let names: Vec<&str> = names.split(' ').filter(|name| *name != "_" && *name != "LC_CTYPE").collect();
        assert_eq!(names.join(" "), ours);
        let form = form.description().name;
        assert_eq!(stdout_of(&sandbox, "echo $SANDY_ISOLATION").await, form);
        assert_eq!(stdout_of(&sandbox, "cd $HOME && echo > $TMPDIR/x && echo > x && ls").await, "x");
        assert_eq!(stdout_of(&sandbox, "find . -writable -type d").await, ".");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_start_with_default_signal_handling() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let blocked = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))";
        assert_eq!(stdout_of(&sandbox, &format!("python3 -c '{blocked}'")).await, "set()");
        let ignored = "import signal; print([s.name for s in signal.valid_signals() if isinstance(s, signal.Signals) \
                       and signal.getsignal(s) == signal.SIG_IGN])";
        // Python itself ignores two signals; it inherits others only from the program that started this test.
        let bare = std::process::Command::new("python3").args(["-c", ignored]).output().unwrap();
        let inside = stdout_of(&sandbox, &format!("python3 -c '{ignored}'")).await;
        assert_eq!(inside, String::from_utf8(bare.stdout).unwrap().trim());
        assert_eq!(run(&sandbox, "kill -TERM $$; echo survived").await.exit_code, Some(128 + 15));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn background_jobs_survive_and_do_not_delay_their_command() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        // The background job holds both pipes of its command and writes to them after the command has ended.
        let job = "until [ -e go ]; do sleep 0.01; done; echo late; echo later; echo over > over";
        let output = run(&sandbox, &format!("setsid bash -c '{job}' & echo started")).await;
        assert_eq!((text(&output.stdout).as_str(), output.exit_code), ("started\n", Some(0)));
        run(&sandbox, "touch go").await;
        assert_eq!(stdout_of(&sandbox, "until [ -e over ]; do sleep 0.01; done; cat over").await, "over");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_concurrently() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        // Each command waits for the other.
        let first = exec("touch a; until [ -e b ]; do sleep 0.01; done; echo first");
        let second = exec("touch b; until [ -e a ]; do sleep 0.01; done; echo second");
        let (first, second) = tokio::join!(sandbox.exec(&first), sandbox.exec(&second));
        assert_eq!(text(&first.unwrap().stdout), "first\n");
        assert_eq!(text(&second.unwrap().stdout), "second\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timed_out_command_is_killed_with_its_group() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let (mut request, mark) = marked_command("echo begun; sleep 100000 & sleep 100000");
        request.timeout = Duration::from_millis(300);
        let output = sandbox.exec(&request).await.unwrap();
        assert_eq!(output.exit_code, None);
        wait_until("the end of the group", || processes_with(&mark).is_empty()).await;
        assert_eq!(stdout_of(&sandbox, "echo alive").await, "alive");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_caller_gives_up_is_killed() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let (request, mark) = marked_command("touch begun; sleep 100000");
        let task = tokio::spawn({
            let sandbox = sandbox.clone();
            async move { sandbox.exec(&request).await.map(drop) }
        });
        stdout_of(&sandbox, "until [ -e begun ]; do sleep 0.01; done").await;
        // During `exec`, a process has no environment for a moment.
        wait_until("the command", || !processes_with(&mark).is_empty()).await;
        task.abort();
        wait_until("the end of the command", || processes_with(&mark).is_empty()).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_truncated_and_counted() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let mut request = exec("head -c 1000000000 /dev/zero; echo error >&2");
        request.output_bytes_max = 1 << 20;
        let output = sandbox.exec(&request).await.unwrap();
        assert_eq!(output.stdout.len(), 1 << 20);
        assert_eq!(output.dropped_bytes, 1_000_000_000 - (1 << 20));
        assert_eq!((text(&output.stderr).as_str(), output.exit_code), ("error\n", Some(0)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ending_a_sandbox_leaves_nothing_behind() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let home = stdout_of(&sandbox, "echo $HOME").await;
        // A host with the same uid as its sandboxes ends a sandbox that closes a folder to it.
        let close = if form.is_confined() && !form.has("uid per sandbox") { "chmod 500" } else { "chmod 0" };
        let (request, mark) = marked_command(&format!(
            "mkdir -p closed/in; touch closed/in/x; {close} closed/in closed; \
             for i in 1 2 3; do setsid sleep 100000 & nohup setsid setsid sleep 100000 >/dev/null 2>&1 & done; sleep 0.1",
        ));
        sandbox.exec(&request).await.unwrap();
        wait_until("processes in the background", || processes_with(&mark).len() >= 6).await;
        tokio::join!(sandbox.end(), sandbox.end());
        assert_eq!(processes_with(&mark), [0; 0]);
        assert!(sandbox.is_over());
        assert!(!form.is_confined() || !std::path::Path::new(&home).exists());
        assert_eq!(sandbox.exec(&exec("true")).await, Err(IsolationError::Gone));
        assert_eq!(sandbox.write("x", b"").await, Err(IsolationError::Gone));
        sandbox.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_sandbox_is_ended() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let (request, mark) = marked_command("setsid sleep 100000 &");
        sandbox.exec(&request).await.unwrap();
        wait_until("the process in the background", || !processes_with(&mark).is_empty()).await;
        drop(sandbox);
        wait_until("the end of the sandbox", || processes_with(&mark).is_empty()).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_end_with_their_sandbox() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let waits = tokio::spawn({
            let sandbox = sandbox.clone();
            async move { sandbox.exec(&exec("touch begun; sleep 100000")).await }
        });
        stdout_of(&sandbox, "until [ -e begun ]; do sleep 0.01; done").await;
        sandbox.end().await;
        assert_eq!(waits.await.unwrap(), Err(IsolationError::Gone));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_sandboxes_are_independent() {
    each_form(|form| async move {
        let made: Vec<_> = (0..12)
            .map(|_| {
                tokio::spawn({
                    let form = form.clone();
                    async move { form.sandbox().await }
                })
            })
            .collect();
        let mut sandboxes = Vec::new();
        for sandbox in made {
            sandboxes.push(sandbox.await.unwrap());
        }
        for (number, sandbox) in sandboxes.iter().enumerate() {
            sandbox.write("number", number.to_string().as_bytes()).await.unwrap();
        }
        let mut ids = std::collections::BTreeSet::new();
        for (number, sandbox) in sandboxes.iter().enumerate() {
            assert_eq!(stdout_of(sandbox, "cat number").await, number.to_string());
            ids.insert(stdout_of(sandbox, "echo $SANDY_SANDBOX_ID").await);
        }
        assert_eq!(ids.len(), sandboxes.len());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_measured() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let before = sandbox.usage().await;
        let held = "x = bytearray(64 << 20); n = sum(range(3000000)); open(\"f\", \"wb\").write(bytes(4 << 20)); \
                    open(\"ready\", \"w\"); import time; time.sleep(100000)";
        run(&sandbox, &format!("setsid python3 -c '{held}' & until [ -e ready ]; do sleep 0.01; done")).await;
        let after = sandbox.usage().await;
        assert!(after.cpu_seconds.unwrap() > before.cpu_seconds.unwrap(), "{before:?} {after:?}");
        assert!(after.memory_bytes.unwrap() > before.memory_bytes.unwrap() + (60 << 20), "{before:?} {after:?}");
        assert!(after.disk_bytes.unwrap() >= before.disk_bytes.unwrap() + (4 << 20), "{before:?} {after:?}");
        sandbox.end().await;
        let over = sandbox.usage().await;
        assert_eq!((over.cpu_seconds, over.memory_bytes), (None, None));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_of_one_sandbox_work_together() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let threads = "import threading; t = threading.Thread(target=print, args=(1,)); t.start(); t.join()";
        assert_eq!(stdout_of(&sandbox, &format!("python3 -c '{threads}'")).await, "1");
        let process = "import multiprocessing as m, os\nif __name__ == '__main__':\n p = m.Process(target=os._exit, args=(3,))\n \
                       p.start(); p.join(); print(p.exitcode)";
        sandbox.write("process.py", process.as_bytes()).await.unwrap();
        assert_eq!(stdout_of(&sandbox, "python3 process.py").await, "3");
        assert_eq!(stdout_of(&sandbox, "cat <(echo a) | tr a b").await, "b");
        if !form.lacks("create sockets") {
            let manager = "import multiprocessing as m\nif __name__ == '__main__':\n with m.Manager() as a:\n  \
                           l = a.list(); l.append(5); print(l[0])";
            sandbox.write("manager.py", manager.as_bytes()).await.unwrap();
            assert_eq!(stdout_of(&sandbox, "python3 manager.py").await, "5");
        }
        if !form.lacks("semaphores") {
            let pool = "import multiprocessing as m\nif __name__ == '__main__':\n with m.Pool(2) as p:\n  \
                        print(p.map(abs, [-1, -2]))";
            sandbox.write("pool.py", pool.as_bytes()).await.unwrap();
            assert_eq!(stdout_of(&sandbox, "python3 pool.py").await, "[1, 2]");
            let loopback = "import socket\ns = socket.create_server((\"127.0.0.1\", 0))\n\
                            c = socket.create_connection(s.getsockname())\nprint(\"met\")";
            sandbox.write("loopback.py", loopback.as_bytes()).await.unwrap();
            assert_eq!(stdout_of(&sandbox, "python3 loopback.py").await, "met");
        }
    })
    .await;
}

#[test]
fn a_sandbox_outlives_the_thread_that_made_it() {
    // Idle threads of this runtime end after a moment.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_keep_alive(Duration::from_millis(1))
        .enable_all()
        .build()
        .unwrap();
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    runtime.block_on(each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let many = threads();
        let mut fewest = many;
        for _ in 0..50 {
            tokio::time::sleep(Duration::from_millis(2)).await;
            fewest = fewest.min(threads());
            assert_eq!(stdout_of(&sandbox, "echo alive").await, "alive");
        }
        println!("{many} threads, {fewest} at the fewest");
    }));
}
