//! Failures, by whose fault they are.

use std::time::Duration;

use bench_environments::{
    BuildLimits, EngineHost, EnvironmentError, ErrorKind, Exec, FetchFiles, Limit, Project, ProjectError,
    PutFiles, Resolve, SkipReason, TaskFile,
};
use bench_sandy::testing::{Options, SandyServer};
use bench_sandy::{NewSandbox, Timing};

use crate::api::LISTS_RUNNING;
use crate::support::{World, build, environment, files, shell, start};

#[tokio::test]
async fn failures_of_the_engine_are_not_the_task_s() {
    for (text, kind) in [
        (
            "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?",
            ErrorKind::Infrastructure,
        ),
        ("write /var/lib/x: no space left on device", ErrorKind::Infrastructure),
        ("Head \"https://registry/v2/\": net/http: TLS handshake timeout", ErrorKind::Infrastructure),
        ("The command '/bin/sh -c exit 3' returned a non-zero code: 3", ErrorKind::Task),
    ] {
        let world = World::new().await;
        let environment = environment("ep1");
        let project = world.project(&environment).await.unwrap();
        world.set("fail-build", text);
        let failed = world.finish(&environment, "build", &build(&project)).await.unwrap_err();
        assert_eq!(failed.kind(), kind, "{failed:?}");
        assert!(failed.log().unwrap().contains(text), "{failed:?}");
        // The lock was released, and the failure stays: another operation has to try again.
        world.unset("fail-build");
        assert_eq!(world.finish(&environment, "build", &build(&project)).await, Err(failed));
        world.finish(&environment, "build-2", &build(&project)).await.unwrap();
        world.set("fail-up", text);
        let failed = world.finish(&environment, "start", &start(&project)).await.unwrap_err();
        assert_eq!(failed.kind(), kind, "{failed:?}");
    }
}

#[tokio::test]
async fn a_build_whose_builder_died_is_tried_again() {
    // Printed by podman 4.3.1, whose builder kills its own helper process now and then.
    let died = "building at STEP \"RUN true\": while running runtime: signal: killed\n";
    let world = World::new().await;
    let environment = environment("ep1");
    let project = world.project(&environment).await.unwrap();
    world.set("fail-once-build", died);
    world.finish(&environment, "build", &build(&project)).await.unwrap();
    assert_eq!(world.count("build"), 2);
    // A test that waits for another world while it has one may wait for ever.
    drop(world);

    let world = World::new().await;
    let project = world.project(&environment).await.unwrap();
    world.set("fail-build", died);
    let failed = world.finish(&environment, "build", &build(&project)).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Infrastructure, "{failed:?}");
    assert_eq!(world.count("build"), 3);
}

#[tokio::test]
async fn a_killed_compose_plugin_is_not_the_task_s_fault() {
    for (end, kind) in [
        ("255", ErrorKind::Infrastructure),
        (
            "docker: unknown command: docker compose\n\nRun 'docker --help' for more information\n",
            ErrorKind::Infrastructure,
        ),
        ("docker: 'compose' is not a docker command.\nSee 'docker --help'\n", ErrorKind::Infrastructure),
        ("docker-compose.yaml: the service 'docker --help' has no image", ErrorKind::Task),
        ("15", ErrorKind::Task),
    ] {
        let world = World::new().await;
        let environment = environment("ep1");
        world.set("fail-config", end);
        let failed = world.project(&environment).await.unwrap_err();
        assert_eq!(failed.kind(), kind, "{end}: {failed:?}");
        drop(world);

        let world = World::new().await;
        let project = world.project(&environment).await.unwrap();
        world.finish(&environment, "build", &build(&project)).await.unwrap();
        world.set("fail-up", end);
        let failed = world.finish(&environment, "start", &start(&project)).await.unwrap_err();
        assert_eq!(failed.kind(), kind, "{end}: {failed:?}");
    }
}

#[tokio::test]
async fn what_the_host_s_filter_refuses_is_refused_with_its_line() {
    let from_filter =
        |reason: &str| format!("Error response from daemon: refused by the sandbox host: {reason}\n");
    for (reason, expected) in [
        (
            "Dockerfile:2: the flag `--x` of `RUN` is not allowed",
            "/c/Dockerfile` line 2: the flag `--x` of `RUN` is not allowed",
        ),
        ("image `a` is not available", "service `main`: image `a` is not available"),
    ] {
        let world = World::new().await;
        let environment = environment("ep1");
        let project = world.project(&environment).await.unwrap();
        world.set("fail-build", &from_filter(reason));
        let refused = world.finish(&environment, "build", &build(&project)).await.unwrap_err();
        assert!(matches!(refused, EnvironmentError::Refused(_)), "{refused:?}");
        assert!(refused.to_string().contains(expected), "{refused}");
    }

    let world = World::new().await;
    let environment = environment("ep1");
    let project = world.project(&environment).await.unwrap();
    world.finish(&environment, "build", &build(&project)).await.unwrap();
    world.set("fail-up", &from_filter("field `A` is not allowed; allowed: `0`"));
    let refused = world.finish(&environment, "start", &start(&project)).await.unwrap_err();
    let expected = ProjectError::Refused("field `A` is not allowed; allowed: `0`".to_owned());
    assert_eq!(refused, EnvironmentError::Refused(expected));
}

#[tokio::test]
async fn a_build_that_never_ends_is_ended() {
    let world = World::new().await;
    let environment = environment("ep1");
    let project = world.project(&environment).await.unwrap();
    world.set("hold-build", "");
    let mut build = build(&project);
    build.limits = BuildLimits { time: Duration::from_secs(1), ..build.limits };
    let failed = world.finish(&environment, "build", &build).await.unwrap_err();
    assert!(matches!(failed, EnvironmentError::LimitExceeded { limit: Limit::BuildTime, .. }), "{failed:?}");
    assert_eq!(std::fs::read_dir(world.engine("containers")).unwrap().count(), 0, "the lock is held");
}

#[tokio::test]
async fn a_sandbox_without_an_engine_is_recognized() {
    // Whether the machine has a docker command or not: no engine is at this address.
    let vars = vec![("DOCKER_HOST".to_owned(), "unix:///nowhere/docker.sock".to_owned())];
    let server = SandyServer::start(Options { vars, ..Options::default() }).await.unwrap();
    let sandy = server.sandy(Timing::default()).unwrap();
    let sandbox = sandy.create(&NewSandbox::default()).await.unwrap();
    let host = EngineHost::new(&sandy, &sandbox);
    let failed = host.probe().await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Unavailable, "{failed:?}");
    assert!(failed.to_string().ends_with("use a sandbox host with a container engine"), "{failed}");
    sandy.terminate(&sandbox).await.unwrap();
    assert_eq!(host.probe().await, Err(EnvironmentError::SandboxLost));
}

#[tokio::test]
async fn an_engine_without_networks_says_so() {
    for (labels, has_network) in
        [(None, true), (Some(r#"["a=b"]"#), true), (Some(r#"["a=b","bench-runner.network=none"]"#), false)]
    {
        let world = World::new().await;
        if let Some(labels) = labels {
            world.set("labels", labels);
        }
        assert_eq!(world.host().probe().await.unwrap().has_network, has_network, "{labels:?}");
    }
}

#[tokio::test]
async fn a_lost_container_is_recognized() {
    let world = World::new().await;
    let environment = environment("ep1");
    let started = world.start(&environment).await.unwrap();
    std::fs::remove_dir_all(world.engine("containers")).unwrap();
    world.set("fail-exec", "Error response from daemon: No such container");
    let failed = world.finish(&environment, "exec", &shell(&started, "true")).await;
    assert!(matches!(failed, Err(EnvironmentError::ContainerGone { .. })), "{failed:?}");
}

#[tokio::test]
async fn an_engine_that_has_ended_is_no_lost_container() {
    let world = World::new().await;
    let environment = environment("ep1");
    let started = world.start(&environment).await.unwrap();
    for (at, why) in [
        "can't connect to the container engine at `/x`: Connection refused (os error 111)",
        "the container engine did not answer properly: connection closed before message completed",
        "the sandbox is stopping",
    ]
    .into_iter()
    .enumerate()
    {
        world.set("fail-exec", &format!("Error response from daemon: {why}"));
        world.set("fail-inspect", &format!("Error response from daemon: {why}"));
        let failed = world.finish(&environment, &format!("exec-{at}"), &shell(&started, "true")).await;
        assert_eq!(failed.map_err(|error| error.kind()), Err(ErrorKind::Infrastructure), "{why}");
    }
}

#[tokio::test]
async fn an_engine_that_ends_during_a_command_is_not_the_command_s_fault() {
    for lists_running in [false, true] {
        let world = World::new().await;
        if lists_running {
            world.set(LISTS_RUNNING, "");
        }
        let environment = environment("ep1");
        let started = world.start(&environment).await.unwrap();
        world.set("cut-exec", "");
        let failed = world.finish(&environment, "cut", &shell(&started, "sleep 20")).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Infrastructure, "{failed:?}");
        // A command that has ended may print and return anything.
        let fault = "echo 'error during connect: unexpected EOF' >&2; exit";
        for status in [1, 255] {
            let ended = shell(&started, &format!("{fault} {status}"));
            let outcome = world.finish(&environment, &format!("own-{status}"), &ended).await.unwrap();
            assert_eq!(outcome.exit_code, Some(status), "{outcome:?}");
        }
        world.end_api();
        let failed = world.finish(&environment, "end", &shell(&started, "exit 255")).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Infrastructure, "{failed:?}");
    }
}

#[tokio::test]
async fn a_shell_that_pretends_faults_of_the_engine_is_the_container_s() {
    let fault = "echo 'error during connect: connection reset by peer' >&2";
    for lists_running in [false, true] {
        let world = World::new().await;
        if lists_running {
            world.set(LISTS_RUNNING, "");
        }
        let environment = environment("ep1");
        let started = world.start(&environment).await.unwrap();
        // Each command seems to be cut, and to run on if the shell is asked.
        let fakes = [
            (format!("case \"$2\" in kill*) exit 0;; *) echo 12; {fault}; exit 255;; esac"), true, 255),
            (format!("case \"$2\" in 'echo $$') echo 7;; *) {fault}; exit 1;; esac"), false, 1),
        ];
        for (at, (fake, is_started, status)) in fakes.into_iter().enumerate() {
            world.fake_shell(&fake);
            let name = format!("exec-{at}");
            let outcome = world.finish(&environment, &name, &shell(&started, "true")).await.unwrap();
            assert_eq!((outcome.started, outcome.exit_code), (is_started, Some(status)), "{outcome:?}");
        }
        let container = started.container("main").unwrap().to_owned();
        let put = PutFiles { container, folder: "/tests".to_owned(), replace: true, files: Vec::new() };
        let failed = world.finish(&environment, "put", &put).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Task, "{failed:?}");
        world.unset("fake-sh");
        // Of a real fault the engine knows no command. It is over at the next try.
        world.set("fail-once-exec", "error during connect: connection reset by peer");
        world.finish(&environment, "put-2", &put).await.unwrap();
        world.set("fail-once-exec", "error during connect: connection reset by peer");
        let failed = world.finish(&environment, "real", &shell(&started, "true")).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Infrastructure, "{failed:?}");
    }
}

#[tokio::test]
async fn the_time_limit_begins_with_the_command() {
    let world = World::new().await;
    let environment = environment("ep1");
    let started = world.start(&environment).await.unwrap();
    let limit = Duration::from_secs(4);
    let brief = |command: &str| Exec { time_limit: limit, ..shell(&started, command) };
    // The engine is busy for longer than the limit.
    world.set("hold-exec", "");
    let release = async {
        tokio::time::sleep(2 * limit).await;
        world.unset("hold-exec");
    };
    let echo = brief("echo started");
    let (ended, ()) = tokio::join!(world.finish(&environment, "late", &echo), release);
    let ended = ended.unwrap();
    assert_eq!((ended.exit_code, ended.stdout.text().as_str()), (Some(0), "started\n"), "{ended:?}");
    // An engine that never starts a command has failed; a shell that the agent replaced has not.
    world.set("hold-exec", "");
    let failed = world.finish(&environment, "never", &echo).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Infrastructure, "{failed:?}");
    world.unset("hold-exec");
    world.fake_shell("exec sleep 3600");
    let silent = world.finish(&environment, "silent", &echo).await.unwrap();
    assert_eq!((silent.started, silent.exit_code), (false, None), "{silent:?}");
}

#[tokio::test]
async fn names_of_files_are_no_faults_of_the_engine() {
    let world = World::new().await;
    let environment = environment("ep1");
    let started = world.start(&environment).await.unwrap();
    world.set("fail-put", "open /app/a/unexpected EOF: not a directory");
    for (path, kind) in [("a/unexpected EOF", ErrorKind::Task), ("a/b", ErrorKind::Infrastructure)] {
        let file = TaskFile { path: path.to_owned(), is_executable: false, bytes: Vec::new() };
        let container = started.container("main").unwrap().to_owned();
        let put = PutFiles { container, folder: "/app".to_owned(), replace: false, files: vec![file] };
        let name = if kind == ErrorKind::Task { "named" } else { "other" };
        let failed = world.finish(&environment, name, &put).await.unwrap_err();
        assert_eq!(failed.kind(), kind, "{failed:?}");
    }
}

#[tokio::test]
async fn a_refused_project_starts_nothing() {
    let world = World::new().await;
    let environment = environment("ep1");
    world.project(&environment).await.unwrap();
    let resolved = world.finish(&environment, "resolve", &Resolve { files: files() }).await.unwrap();
    let facts = world.host().probe().await.unwrap();
    let check = |_: &[u8]| Err("service `main` uses `privileged`".to_owned());
    let refused = Project::new(&resolved, &files(), &environment, &facts, &check);
    assert_eq!(refused, Err(ProjectError::Refused("service `main` uses `privileged`".to_owned())));
    assert_eq!(world.calls(), ["config"]);
}

#[tokio::test]
async fn invalid_requests_are_refused_before_any_call() {
    let world = World::new().await;
    let environment = environment("ep1");
    let started = world.start(&environment).await.unwrap();
    let before = world.server.log().len();
    let good = shell(&started, "true");
    for bad in [
        Exec { container: "--privileged".to_owned(), ..good.clone() },
        Exec { command: Vec::new(), ..good.clone() },
        Exec { user: Some("--tty".to_owned()), ..good.clone() },
        Exec { env: [("A=B".to_owned(), String::new())].into(), ..good },
    ] {
        let refused = world.finish(&environment, "bad", &bad).await;
        assert!(matches!(refused, Err(EnvironmentError::Invalid(_))), "{bad:?}");
    }
    assert_eq!(world.server.log().len(), before);
}

#[tokio::test]
async fn an_engine_without_an_init_program_starts_containers_without_one() {
    let world = World::new().await;
    world.set("no-init", "");
    world.start(&environment("ep1")).await.unwrap();
    assert_eq!(world.count("up"), 2);
}

#[tokio::test]
async fn files_that_an_engine_can_t_count_exceed_the_disk_limit() {
    let late = "Error response from daemon: the container's files were not counted within 25 s";
    let refused = "Error response from daemon: refused by the sandbox host: `number of files of the container` is above \
        this sandbox's limit of 9\n";
    for (text, counts, expected) in [(late, 2, "too many files to be counted"), (refused, 1, "limit of 9")] {
        let world = World::new().await;
        let environment = environment("ep1");
        let started = world.start(&environment).await.unwrap();
        let exec = Exec { disk_bytes_max: Some(1_000), ..shell(&started, "sleep 60") };
        let exec = Exec { time_limit: Duration::from_secs(60), ..exec };
        world.set("fail-size", text);
        let failed = world.finish(&environment, "exec", &exec).await.unwrap_err();
        assert!(
            matches!(&failed, EnvironmentError::LimitExceeded { limit: Limit::ContainerDisk, why, .. } if why.contains(expected)),
            "{failed:?}"
        );
        assert_eq!(world.count("size"), counts);
    }
}

#[tokio::test]
async fn an_engine_that_counts_slowly_and_answers_nothing_else_is_at_fault() {
    let world = World::new().await;
    let environment = environment("ep1");
    let started = world.start(&environment).await.unwrap();
    let exec = Exec { disk_bytes_max: Some(1_000), ..shell(&started, "sleep 8") };
    let exec = |name: &str| (name.to_owned(), Exec { time_limit: Duration::from_secs(60), ..exec.clone() });
    let (late, slow) = ("the container's files were not counted within 25 s", "the engine hangs");
    // Each command is measured once. Two counts in a row that took too long are no reason while nothing else is answered,
    // and no reason after one that didn't.
    for (at, (size, inspect)) in
        [(Some(late), None), (Some(late), Some(slow)), (None, None), (Some(late), None)]
            .into_iter()
            .enumerate()
    {
        for (file, text) in [("fail-size", size), ("fail-inspect", inspect)] {
            text.map_or_else(|| drop(std::fs::remove_file(world.engine(file))), |text| world.set(file, text));
        }
        let (name, exec) = exec(&format!("exec-{at}"));
        let ended = world.finish(&environment, &name, &exec).await;
        assert_eq!(ended.unwrap().exit_code, Some(0), "{at}");
    }
    assert_eq!(world.count("size"), 3);
}

#[tokio::test]
async fn a_copy_that_fails_while_the_engine_works_is_the_container_s_fault() {
    let world = World::new().await;
    let environment = environment("ep1");
    let started = world.start(&environment).await.unwrap();
    std::fs::create_dir(world.engine("put")).unwrap();
    std::fs::write(world.engine("put/a"), "1").unwrap();
    let fetch = FetchFiles::new(started.container("main").unwrap(), "/out");
    let fault = "Error response from daemon: unexpected EOF";
    world.set("fail-fetch", fault);
    let failed = world.finish(&environment, "changing", &fetch).await.unwrap_err();
    assert_eq!((failed.kind(), world.count("fetch")), (ErrorKind::Task, 3), "{failed:?}");
    world.set("fail-inspect", "error during connect: connection reset by peer");
    let failed = world.finish(&environment, "ended", &fetch).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Infrastructure, "{failed:?}");
    world.unset("fail-inspect");
    world.unset("fail-fetch");
    world.set("fail-once-fetch", fault);
    let fetched = world.finish(&environment, "again", &fetch).await.unwrap().unwrap();
    assert_eq!((fetched.get("a"), fetched.is_cut), (Some("1".as_bytes()), false));
    // Folders count, too.
    for number in 0..20_001 {
        std::fs::create_dir(world.engine(&format!("put/{number}"))).unwrap();
    }
    let fetched = world.finish(&environment, "many", &fetch).await.unwrap().unwrap();
    assert!(fetched.is_cut && fetched.skipped.is_empty());
    // What is looked for is found among all of them.
    std::fs::rename(world.engine("put/a"), world.engine("put/z")).unwrap();
    let first = FetchFiles { first: vec!["z".to_owned()], ..fetch };
    let fetched = world.finish(&environment, "first", &first).await.unwrap().unwrap();
    assert_eq!((fetched.get("z"), fetched.is_cut), (Some("1".as_bytes()), true));
}

#[tokio::test]
async fn files_that_are_looked_for_are_found_behind_a_huge_one() {
    let world = World::new().await;
    let environment = environment("ep1");
    let started = world.start(&environment).await.unwrap();
    std::fs::create_dir(world.engine("put")).unwrap();
    let huge = std::fs::File::create(world.engine("put/a.bin")).unwrap();
    huge.set_len((1 << 30) + 1).unwrap();
    let long = std::fs::File::create(world.engine("put/long.pane")).unwrap();
    long.set_len(3 << 20).unwrap();
    std::fs::write(world.engine("put/reward.txt"), "1").unwrap();
    std::fs::create_dir(world.engine("put/folder")).unwrap();
    std::fs::write(world.engine("put/folder/x"), "1").unwrap();
    std::os::unix::fs::symlink("a.bin", world.engine("put/link")).unwrap();
    let names = ["reward.txt", "none", "long.pane", "folder", "link"];
    let fetch = FetchFiles {
        file_bytes_max: 1 << 20,
        first: names.map(str::to_owned).to_vec(),
        shortens_logs: true,
        ..FetchFiles::new(started.container("main").unwrap(), "/out")
    };
    let fetched = world.finish(&environment, "huge", &fetch).await.unwrap().unwrap();
    assert_eq!((fetched.get("reward.txt"), fetched.is_cut), (Some("1".as_bytes()), true));
    let long = fetched.files.iter().find(|file| file.path == "long.pane").unwrap();
    assert_eq!(long.omitted, 1 << 20);
    for name in ["folder", "link"] {
        let skipped = fetched.skipped.iter().find(|file| file.path == name).unwrap();
        assert_eq!(skipped.why, SkipReason::NotAFile, "{name}");
    }
    assert_eq!(fetched.files.len(), 2, "{:?}", fetched.skipped);
}

#[tokio::test]
async fn shortened_logs_count_and_hard_links_are_files() {
    let world = World::new().await;
    let environment = environment("ep1");
    let started = world.start(&environment).await.unwrap();
    std::fs::create_dir(world.engine("put")).unwrap();
    for number in 10..34 {
        let log = std::fs::File::create(world.engine(&format!("put/{number}.log"))).unwrap();
        log.set_len((16 << 20) + 100).unwrap();
    }
    std::fs::write(world.engine("put/terminus_2.pane"), "$ ls").unwrap();
    std::fs::hard_link(world.engine("put/terminus_2.pane"), world.engine("put/a.pane")).unwrap();
    let fetch = FetchFiles {
        file_bytes_max: 16 << 20,
        bytes_max: 32 << 20,
        first: vec!["terminus_2.pane".to_owned()],
        shortens_logs: true,
        ..FetchFiles::new(started.container("main").unwrap(), "/out")
    };
    let fetched = world.finish(&environment, "many", &fetch).await.unwrap().unwrap();
    assert!(fetched.is_cut);
    let kept: usize = fetched.files.iter().map(|file| file.bytes.len()).sum();
    assert!(kept < 33 << 20, "{kept}");
    assert_eq!(fetched.get("terminus_2.pane"), Some("$ ls".as_bytes()));
    assert!(fetched.files.iter().filter(|file| file.omitted > 0).count() >= 15);
    for number in 10..34 {
        std::fs::remove_file(world.engine(&format!("put/{number}.log"))).unwrap();
    }
    let fetched = world.finish(&environment, "links", &fetch).await.unwrap().unwrap();
    assert_eq!(fetched.get("a.pane"), fetched.get("terminus_2.pane"));
    assert!(fetched.skipped.is_empty() && !fetched.is_cut);
}
