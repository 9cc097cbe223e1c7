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
        "main",
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
        sandbox.succeed(&["start", "main"]);
        sandbox.succeed(&["wait", "main"]);
        assert_eq!(sandbox.succeed(&["logs", "main"]), "checked");
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
