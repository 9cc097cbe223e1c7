//! Commands in a sandbox that try to get at the machine through the engine.

use bench_environments::Network;

use crate::support::{dockerfile, each_form, environment, task};

/// A program that tries to use a socket as an engine's.
const CONNECT: &str = r#"
import socket, sys
for path in sys.argv[1:]:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    try:
        connection.connect(path)
        connection.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
        print("reached", path, connection.recv(100))
    except OSError as error:
        print("prevented", error)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_machine_and_other_sandboxes_are_out_of_reach() {
    each_form(
        |_| {},
        |world| async move {
            let (one, two) = (world.sandbox().await, world.sandbox().await);
            let task = task("");
            let environment = environment(&task);
            let started = one.start(&environment, &task, &dockerfile(), Network::None).await.unwrap();
            let main = started.container("main").unwrap();
            let image = one.output(&format!("docker inspect --format '{{{{.Config.Image}}}}' {main}")).await;

            // The engine's own socket, the usual ones, and that of the other sandbox.
            let raw = world.socket();
            assert!(raw.exists());
            one.sandy.write_file(&one.id, "connect.py", CONNECT).await.unwrap();
            let other = two.output("echo ${DOCKER_HOST#unix://}").await;
            let own = one.output("echo ${DOCKER_HOST#unix://}").await;
            let mut sockets =
                vec!["/run/podman/podman.sock".to_owned(), "/var/run/docker.sock".to_owned(), raw.display().to_string()];
            // In namespaces, both have the same path for another socket.
            sockets.extend((other != own).then_some(other));
            let tried = one.output(&format!("python3 connect.py {}", sockets.join(" "))).await;
            assert_eq!(tried.matches("prevented").count(), sockets.len(), "{}: {tried}", world.form);
            assert!(one.output(&format!("python3 connect.py {own}")).await.starts_with("reached"));
            // The socket can't be replaced by something else.
            one.refuse(&format!("rm -f {own} && ! test -e {own}"), "").await;

            for (options, expected) in [
                ("--privileged", "HostConfig.Privileged"),
                ("--pid host", "HostConfig.PidMode"),
                ("--network host", "HostConfig.NetworkMode"),
                ("--cap-add SYS_ADMIN", "HostConfig.CapAdd"),
                ("--device /dev/null", "HostConfig.Devices"),
                ("--volume /:/machine", "HostConfig.Binds"),
                ("--volume /etc:/machine", "HostConfig.Binds"),
                ("--volume /run/engine:/machine", "HostConfig.Binds"),
                ("--volume $HOME/link:/machine", "without symbolic links"),
                ("--security-opt seccomp=unconfined", "HostConfig.SecurityOpt"),
                ("--label bench-runner.sandbox=x", "Labels.bench-runner.sandbox"),
            ] {
                one.shell("ln -sf /etc $HOME/link").await;
                one.refuse(&format!("docker run --rm {options} {image} true"), expected).await;
            }
            for command in ["container inspect MAIN", "logs MAIN", "stop MAIN", "rm --force MAIN", "kill MAIN", "exec MAIN id"] {
                let output = two.shell(&format!("docker {}", command.replace("MAIN", main))).await;
                let text = format!("{}{}", output.stdout, output.stderr).to_lowercase();
                assert!(text.contains("no such"), "{command}: {output:?}");
            }
            assert_eq!(two.output("docker ps --all --quiet").await, "");
            assert_eq!(one.output("docker ps --quiet --no-trunc").await, main);
            // Files of a container's root are neither devices nor programs with its rights.
            let made = "docker run --rm --volume $HOME:/w -w /w IMAGE sh -c 'cp /bin/busybox busybox; chmod 4755 busybox; mknod null c 1 3'";
            one.output(&made.replace("IMAGE", &image)).await;
            assert_ne!(one.output("./busybox id -u").await, "0");
            one.refuse("echo x > null", "").await;
            one.end().await;
            two.end().await;
            assert_eq!(world.left(), Vec::<String>::new());
            world
        },
    )
    .await;
}
