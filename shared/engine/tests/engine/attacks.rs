//! Attempts to leave a sandbox through the engine.

use std::os::unix::fs::symlink;

use bench_engine::NetworkPolicy;
use serde_json::json;

use crate::support::{BUSYBOX, World, stdout};

#[tokio::test(flavor = "multi_thread")]
async fn rights_over_the_machine_are_refused() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    symlink("/etc", sandbox.workspace.join("link")).unwrap();
    let attempts: [(&[&str], &str); 22] = [
        (&["--privileged"], "HostConfig.Privileged"),
        (&["--network", "host"], "HostConfig.NetworkMode"),
        (&["--pid", "host"], "HostConfig.PidMode"),
        (&["--ipc", "host"], "HostConfig.IpcMode"),
        (&["--uts", "host"], "HostConfig.UTSMode"),
        (&["--userns", "host"], "HostConfig.UsernsMode"),
        (&["--cgroupns", "host"], "HostConfig.CgroupnsMode"),
        (&["--device", "/dev/null"], "HostConfig.Devices"),
        (&["--cap-add", "SYS_ADMIN"], "HostConfig.CapAdd"),
        (&["--security-opt", "seccomp=unconfined"], "HostConfig.SecurityOpt"),
        (&["--security-opt", "systempaths=unconfined"], "HostConfig."),
        (&["--sysctl", "net.ipv4.ip_forward=1"], "HostConfig.Sysctls"),
        (&["--cgroup-parent", "/"], "HostConfig.CgroupParent"),
        (&["--runtime", "runc"], "HostConfig.Runtime"),
        (&["--volumes-from", "x"], "HostConfig.VolumesFrom"),
        (&["--publish", "80:80"], "HostConfig.PortBindings"),
        (&["--volume", "/:/host"], "HostConfig.Binds"),
        (&["--volume", "/workspace/link:/host"], "without symbolic links"),
        (&["--volume", "/workspace/../etc:/host"], "HostConfig.Binds"),
        (&["--mount", "type=bind,source=/etc,target=/host"], "HostConfig.Mounts[0].Source"),
        (&["--memory", "100g"], "above this sandbox's limit"),
        (&["--pids-limit", "100000"], "above this sandbox's limit"),
    ];
    for (options, expected) in attempts {
        sandbox.refuse(&[&["run", "--rm"], options, &[BUSYBOX, "true"]].concat(), expected);
    }
    sandbox.refuse(
        &["volume", "create", "-o", "type=none", "-o", "o=bind", "-o", "device=/", "v"],
        "DriverOpts",
    );
    sandbox.refuse(&["network", "create", "--subnet", "10.0.0.0/8", "n"], "IPAM.Config");
    sandbox.refuse(&["network", "create", "-o", "com.docker.network.bridge.name=eth0", "n"], "Options");
    sandbox.refuse(&["plugin", "ls"], "is not available to sandboxes");
    sandbox.refuse(&["system", "df"], "is not available to sandboxes");
    for (method, path) in
        [("POST", "/session"), ("GET", "/v4.0.0/libpod/info"), ("GET", "/%76ersion"), ("GET", "//info")]
    {
        assert_eq!(sandbox.request(method, path, &json!({})).0, 403, "{path}");
    }
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_spellings_of_fields_are_refused() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    for body in [
        json!({ "Image": BUSYBOX, "hostconfig": { "Privileged": true } }),
        json!({ "Image": BUSYBOX, "HostConfig": { "privileged": true } }),
        json!({ "Image": BUSYBOX, "HostConfig": { "MaskedPaths": [] } }),
        json!({ "Image": BUSYBOX, "Env": ["PATH"] }),
        json!({ "Image": BUSYBOX, "HostConfig": { "Annotations": { "run.oci.keep_original_groups": "1" } } }),
    ] {
        let (status, answer) = sandbox.request("POST", "/v1.41/containers/create", &body);
        assert_eq!(status, 403, "{body}: {answer}");
    }
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn others_objects_look_like_absent_ones() {
    let world = World::start().await;
    let (one, two) = (world.sandbox("s1", NetworkPolicy::None), world.sandbox("s2", NetworkPolicy::None));
    let (container, volume, network) =
        (format!("c-{}", world.instance), format!("v-{}", world.instance), format!("n-{}", world.instance));
    one.succeed(&["network", "create", &network]);
    let mount = format!("{volume}:/v");
    let id = one.succeed(&[
        "run",
        "-d",
        "--name",
        &container,
        "--network",
        &network,
        "-v",
        &mount,
        BUSYBOX,
        "sleep",
        "600",
    ]);
    for name in [container.as_str(), id.as_str(), &id[..12]] {
        for call in [
            &["container", "inspect"][..],
            &["logs"],
            &["stop"],
            &["rm", "-f"],
            &["top"],
            &["kill"],
            &["wait"],
            &["start"],
        ] {
            let output = two.docker(&[call, &[name]].concat());
            let error = String::from_utf8_lossy(&output.stderr).to_lowercase();
            assert!(error.contains("no such"), "{call:?}: {error}");
        }
        two.refuse(&["exec", name, "id"], "no such");
        two.refuse(&["cp", &format!("{name}:/bin/sh"), "-"], "no such");
    }
    two.refuse(&["network", "inspect", &network], "no such");
    two.refuse(&["network", "rm", &network], "no such");
    two.refuse(&["volume", "rm", &volume], "no such");
    two.refuse(&["run", "--rm", "-v", &mount, BUSYBOX, "true"], "a volume that this sandbox created");
    two.refuse(
        &["run", "--rm", "--network", &network, BUSYBOX, "true"],
        "a network that this sandbox created",
    );
    for list in [&["ps", "--all", "--quiet"][..], &["network", "ls", "--quiet"], &["volume", "ls", "--quiet"]]
    {
        assert_eq!(two.succeed(list), "", "{list:?}");
    }
    let exec = one.request("POST", &format!("/containers/{container}/exec"), &json!({ "Cmd": ["true"] })).1;
    let exec = exec["Id"].as_str().unwrap().to_owned();
    assert_eq!(two.request("GET", &format!("/exec/{exec}/json"), &json!({})).0, 404);
    assert_eq!(two.request("POST", &format!("/exec/{exec}/start"), &json!({ "Detach": true })).0, 404);
    assert_eq!(stdout(&world.docker(&["inspect", "--format", "{{.State.Running}}", &id])), "true");
    one.proxy.stop().await.unwrap();
    two.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mounted_folder_stays_the_one_that_was_checked() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let data = sandbox.workspace.join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("hostname"), "checked").unwrap();
    let created = sandbox.docker(&[
        "create",
        "--name",
        "checked",
        "-v",
        "/workspace/data:/d",
        BUSYBOX,
        "cat",
        "/d/hostname",
    ]);
    let error = String::from_utf8_lossy(&created.stderr);
    if error.contains("only whole folders") {
        println!("this user can't mount, so parts of folders are refused");
    } else {
        assert!(created.status.success(), "{error}");
        // A path that was checked becomes a link to the machine's files before the engine mounts it.
        std::fs::rename(&data, sandbox.workspace.join("moved")).unwrap();
        symlink("/etc", &data).unwrap();
        sandbox.succeed(&["start", "checked"]);
        sandbox.succeed(&["wait", "checked"]);
        assert_eq!(sandbox.succeed(&["logs", "checked"]), "checked");
    }
    sandbox.proxy.stop().await.unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&world.folder.path().display().to_string()), "{mounts}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_network_nothing_outside_is_reached() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let interfaces = sandbox.succeed(&["run", "--rm", BUSYBOX, "ls", "/sys/class/net"]);
    assert_eq!(interfaces, "lo");
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_of_the_machine_are_out_of_reach() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let context = sandbox.workspace.display().to_string();
    let write = |text: &str| std::fs::write(sandbox.workspace.join("Dockerfile"), text).unwrap();
    let victim = format!("localhost/victim-{}:1", world.instance);
    write(&format!("FROM {BUSYBOX}\nRUN echo secret > /secret\n"));
    let built = world.docker(&["build", "-t", &victim, &context]);
    assert!(built.status.success(), "{built:?}");
    let id = stdout(&world.docker(&["image", "inspect", "--format", "{{.Id}}", &victim]));
    let digits = id.trim().trim_start_matches("sha256:");
    for length in [1, 7, 12, 64] {
        let short = &digits[..length];
        for arguments in [
            &["image", "inspect", short][..],
            &["create", "--pull", "never", short, "true"],
            &["tag", short, "localhost/bench/s1/mine:1"],
            &["image", "rm", short],
        ] {
            let output = sandbox.docker(arguments);
            assert!(!output.status.success(), "{arguments:?}: {output:?}");
        }
    }
    for (text, expected) in [
        (
            format!("FROM {BUSYBOX} AS {victim}\nCOPY --from={victim} /secret /x\n"),
            "of a stage is not allowed",
        ),
        (
            format!(
                "FROM {BUSYBOX} AS {}\nFROM {BUSYBOX}\nCOPY --from={victim} /secret /x\n",
                victim.to_uppercase()
            ),
            "of a stage is not allowed",
        ),
        (format!("FROM {BUSYBOX} AS DIR:/ETC\nFROM dir:/etc\n"), "of a stage is not allowed"),
        (format!("FROM {BUSYBOX}\nCOPY --from={victim} /secret /x\n"), "is not available to this sandbox"),
        (
            format!("FROM {BUSYBOX}\nCOPY --from=docker-archive:/tmp/x.tar / /x\n"),
            "is not the name of an image",
        ),
        // Podman's service would end.
        (format!("FROM {BUSYBOX}\nCOPY --from=4 /a /b\n"), "is not the number of an earlier stage"),
    ] {
        write(&text);
        sandbox.refuse(&["build", "-t", "localhost/bench/s1/x:1", &context], expected);
    }
    write(&format!(
        "FROM {BUSYBOX} AS one\nRUN echo one > /one\nFROM {BUSYBOX}\nCOPY --from=one /one /a\nCOPY --from=0 /one /b\n"
    ));
    sandbox.succeed(&["build", "-t", "localhost/bench/s1/x:1", &context]);
    assert_eq!(sandbox.succeed(&["run", "--rm", "localhost/bench/s1/x:1", "cat", "/a", "/b"]), "one\none");
    world.docker(&["image", "rm", &victim]);
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn contexts_write_and_read_nothing_outside() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let outside = world.folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "secret").unwrap();
    let script = r#"
set -eu
mkdir -p a b/x
printf 'FROM %s\nCOPY s /s\n' "$2" > a/Dockerfile
ln -s "$1" a/x
touch b/x/written
echo own > b/s
tar -cf "$3/write.tar" -C a Dockerfile x
tar -rf "$3/write.tar" -C "$PWD/b" x/written s
ln b/s b/x/s
tar -cf "$3/read.tar" -C a Dockerfile x
tar -rf "$3/read.tar" -C "$PWD/b" --transform 's,^x/s$,s,;s,^s$,x/secret,' --no-recursion s x/s
"#;
    let place = world.folder.path().display().to_string();
    let made = std::process::Command::new("sh")
        .args(["-c", script, "sh", &outside.display().to_string(), BUSYBOX, &place])
        .current_dir(&sandbox.workspace)
        .status();
    assert!(made.unwrap().success());
    for archive in ["write.tar", "read.tar"] {
        let context = std::fs::File::open(world.folder.path().join(archive)).unwrap();
        let output = sandbox.docker_with(&["build", "-t", "localhost/bench/s1/x:1", "-"], context);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && message.contains("leads out of it"), "{archive}: {message}");
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_others_use_is_not_replaced() {
    let world = World::start().await;
    let prefix = || vec![format!("localhost/bench-shared-{}/", world.instance)];
    let (one, two) = (
        world.sandbox_naming("s1", NetworkPolicy::None, prefix()),
        world.sandbox_naming("s2", NetworkPolicy::None, prefix()),
    );
    let name = format!("{}task:1", prefix()[0]);
    for (sandbox, text) in [(&one, "good"), (&two, "evil")] {
        let text = format!("FROM {BUSYBOX}\nRUN echo {text} > /text\n");
        std::fs::write(sandbox.workspace.join("Dockerfile"), text).unwrap();
    }
    let context = |sandbox: &crate::support::Sandbox| sandbox.workspace.display().to_string();
    one.succeed(&["build", "-t", &name, &context(&one)]);
    two.refuse(&["build", "-t", &name, &context(&two)], "is here already");
    two.refuse(&["tag", BUSYBOX, &name], "is here already");
    two.refuse(&["image", "rm", &name], "is here already");
    assert!(!two.succeed(&["images", "--all"]).contains("bench-shared"));
    assert_eq!(two.succeed(&["run", "--rm", &name, "cat", "/text"]), "good");
    // The sandbox that built it may.
    one.succeed(&["build", "-t", &name, &context(&one)]);
    one.succeed(&["image", "rm", &name]);
    for sandbox in [one, two] {
        sandbox.proxy.stop().await.unwrap();
    }
    world.stop().await;
}
