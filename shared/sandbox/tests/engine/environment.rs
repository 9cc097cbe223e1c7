//! The whole way of an environment through a sandbox host.

use std::time::Duration;

use bench_environments::{Built, EnvironmentError, Exec, FetchFiles, Limit, Network};

use crate::support::{dockerfile, each_form, environment, file, first_form, task, with_compose};

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_runs_through_a_sandbox() {
    each_form(
        |_| {},
        |world| async move {
            let began = std::time::Instant::now();
            let sandbox = world.sandbox().await;
            let asked_ms = began.elapsed().as_millis();
            let mut task = task("");
            let compose = "services:\n  main:\n    volumes: ['./files:/files:ro', '../../logs:/logs']\n";
            let files = with_compose(&mut task, compose);
            task.push(file("environment/files/a.txt", "mounted"));
            let environment = environment(&task);
            let started = sandbox.start(&environment, &task, &files, Network::None).await.unwrap();
            let main = started.container("main").unwrap();
            println!("{}: sandbox after {asked_ms} ms, container after {} ms", world.form, began.elapsed().as_millis());

            let command = "id -u; pwd; cat /files/a.txt; echo written > /logs/out; echo x > /files/a.txt; ls /sys/class/net";
            let exec = Exec::shell(main, command, Duration::from_secs(120));
            let ended = sandbox.finish(&environment, "exec", &exec).await.unwrap();
            assert_eq!(ended.stdout.text(), "0\n/app\nmountedlo\n", "{ended:?}");
            let logs = format!("cat {}/logs/out", environment.folders(&sandbox.facts).root);
            assert_eq!(sandbox.output(&logs).await, "written");
            let fetch = FetchFiles::new(main, "/logs");
            let fetched = sandbox.finish(&environment, "fetch", &fetch).await.unwrap().unwrap();
            assert_eq!(fetched.files.iter().map(|file| file.bytes.as_slice()).collect::<Vec<_>>(), [b"written\n"]);
            let own = sandbox.engine().leftovers().await.unwrap();
            assert_eq!((own.len(), own[0].containers, own[0].sample.as_str()), (1, 1, "sample-1"));
            assert_eq!(sandbox.engine().remove(&environment.name).await.unwrap(), 1);
            assert!(!world.left().iter().any(|left| left.starts_with("ps")), "{:?}", world.left());
            sandbox.end().await;
            assert_eq!(world.left(), Vec::<String>::new());

            // Another sandbox of the host finds the image.
            let other = world.sandbox().await;
            let environment = crate::support::environment(&task);
            let project = other.resolve(&environment, &task, &files).await.unwrap();
            let build = other.build(&project, Duration::from_secs(600));
            assert_eq!(other.finish(&environment, "build", &build).await, Ok(Built { images: 0 }));
            other.end().await;
            assert_eq!(world.left(), Vec::<String>::new());
            world
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_is_named_and_limits_are_the_host_s() {
    first_form(
        |_| {},
        |world| async move {
            assert!(world.host.engine().name.is_none());
            let sandbox = world.sandbox().await;
            let engine = world.host.resources().engine;
            println!("{engine:?}");
            assert!(
                engine.name.is_some() && engine.version.is_some() && engine.reason.is_none(),
                "{engine:?}"
            );
            let view = world.host.get(&sandbox.id).await.unwrap();
            assert!(view.engine.unwrap().starts_with(&engine.name.unwrap()));
            let plain = world.host.create(&bench_sandbox::host::NewSandbox::default()).await.unwrap();
            assert_eq!(plain.engine, None);
            let env = bench_sandbox::host::ExecRequest { command: "env".to_owned(), ..Default::default() };
            let env = world.host.exec(&plain.sandbox_id, env).await.unwrap();
            assert!(!env.stdout.contains("DOCKER"), "{}", env.stdout);

            let task = task("");
            let environment = environment(&task);
            let started = sandbox.start(&environment, &task, &dockerfile(), Network::Public).await.unwrap();
            let main = started.container("main").unwrap();
            let format = "{{.HostConfig.Memory}} {{.HostConfig.MemorySwap}} {{.HostConfig.PidsLimit}}";
            let limits = sandbox.output(&format!("docker inspect --format '{format}' {main}")).await;
            assert_eq!(limits, "268435456 268435456 100");
            let image =
                sandbox.output(&format!("docker inspect --format '{{{{.Config.Image}}}}' {main}")).await;
            sandbox
                .refuse(&format!("docker run --rm --memory 9g {image} true"), "above this sandbox's limit")
                .await;
            sandbox.end().await;
            assert_eq!(world.left(), Vec::<String>::new());
            world
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_limit_has_no_way_around() {
    first_form(
        |config| config.engine.as_mut().unwrap().limits.files_max = 5_000,
        |world| async move {
            let sandbox = world.sandbox().await;
            let task = task("");
            for (at, (command, expected)) in [
                ("dd if=/dev/zero of=/etc/hosts bs=1M count=60 && sleep 3600", "has written"),
                ("cd /tmp && seq 6000 | xargs mkdir && sleep 3600", "limit of 5000"),
            ]
            .into_iter()
            .enumerate()
            {
                let environment = environment(&task);
                let started =
                    sandbox.start(&environment, &task, &dockerfile(), Network::None).await.unwrap();
                let exec = Exec::shell(started.container("main").unwrap(), command, Duration::from_secs(600));
                let exec = Exec { disk_bytes_max: Some(50 << 20), ..exec };
                let ended = sandbox.finish(&environment, &format!("exec-{at}"), &exec).await.unwrap_err();
                assert!(
                    matches!(&ended, EnvironmentError::LimitExceeded { limit: Limit::ContainerDisk, why, .. } if why.contains(expected)),
                    "{ended:?}"
                );
                sandbox.engine().remove(&environment.name).await.unwrap();
            }
            sandbox.end().await;
            assert_eq!(world.left(), Vec::<String>::new());
            world
        },
    )
    .await;
}
