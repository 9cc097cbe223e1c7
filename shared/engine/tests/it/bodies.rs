//! Bodies that are allowed and refused, as they reach the engine.

use bench_engine::NetworkPolicy;
use serde_json::{Value, json};

use crate::fake::World;

const CREATE: &str = "/v1.41/containers/create?name=c1";

fn sent(world: &World) -> Value {
    let changes = world.changes();
    let create = changes.iter().find(|request| request.address.contains("/containers/create")).unwrap();
    serde_json::from_slice(&create.body).unwrap()
}

#[tokio::test]
async fn limits_labels_and_network_are_forced() {
    let world = World::start().await;
    // As docker's command writes it: every field, most of them unset.
    let body = json!({
        "Hostname": "", "User": "", "AttachStdin": false, "Tty": false, "Env": null, "Cmd": ["true"],
        "Image": "debian", "Volumes": {}, "OnBuild": null, "Labels": { "a": "b" },
        "HostConfig": {
            "Binds": ["/workspace:/w"], "ContainerIDFile": "", "LogConfig": { "Type": "", "Config": {} },
            "NetworkMode": "default", "PortBindings": {}, "RestartPolicy": { "Name": "always", "MaximumRetryCount": 0 },
            "AutoRemove": false, "VolumeDriver": "", "VolumesFrom": null, "ConsoleSize": [24, 80], "CapAdd": null,
            "CgroupnsMode": "", "Dns": [], "ExtraHosts": null, "IpcMode": "", "Links": null, "OomScoreAdj": 0,
            "PidMode": "", "Privileged": false, "PublishAllPorts": false, "SecurityOpt": null, "UsernsMode": "",
            "ShmSize": 0, "Isolation": "", "CpuShares": 0, "Memory": 0, "NanoCpus": 0, "CgroupParent": "",
            "BlkioDeviceReadBps": [], "CpuPeriod": 0, "Devices": [], "DeviceRequests": null, "MemorySwap": -1,
            "MemorySwappiness": -1, "OomKillDisable": false, "PidsLimit": -1, "Ulimits": [],
            "MaskedPaths": null, "ReadonlyPaths": null,
        },
        "NetworkingConfig": { "EndpointsConfig": { "default": { "Aliases": ["x"], "NetworkID": "" } } },
    });
    assert_eq!(world.send("POST", CREATE, &body).await.0, 201);
    let sent = sent(&world);
    let host = &sent["HostConfig"];
    assert_eq!(
        sent["Labels"],
        json!({ "a": "b", "bench-runner.instance": "i1", "bench-runner.sandbox": "s1" })
    );
    assert_eq!(host["NetworkMode"], "bench-i1-s1");
    assert_eq!(sent["NetworkingConfig"]["EndpointsConfig"], json!({ "bench-i1-s1": { "Aliases": ["x"] } }));
    assert_eq!(host["Memory"], 2_u64 << 30);
    assert_eq!(host["MemorySwap"], host["Memory"]);
    assert_eq!((&host["NanoCpus"], &host["PidsLimit"]), (&json!(1_000_000_000), &json!(512)));
    assert_eq!(host["RestartPolicy"], json!({ "Name": "no" }));
    assert_eq!(host["LogConfig"]["Config"]["max-size"], "67108864");
    // The folder isn't writable.
    assert_eq!(host["Binds"], json!([format!("{}:/w:ro", world.workspace.display())]));
    for field in ["Privileged", "MaskedPaths", "CgroupParent", "Devices", "MemorySwappiness"] {
        assert!(host.get(field).is_none(), "{field}");
    }
}

#[tokio::test]
async fn without_a_network_containers_have_none() {
    let world = World::with(|rules| rules.network = NetworkPolicy::None).await;
    for mode in ["default", "bridge", "none", ""] {
        let body = json!({ "Image": "debian", "HostConfig": { "NetworkMode": mode } });
        assert_eq!(world.send("POST", CREATE, &body).await.0, 201);
        assert_eq!(sent(&world)["HostConfig"]["NetworkMode"], "none");
    }
    // Without a firewall, containers in a network would reach the machine at its gateway.
    let body = json!({ "Name": "n1", "Internal": false, "IPAM": { "Driver": "default", "Config": [] } });
    let (status, answer) = world.send("POST", "/networks/create", &body).await;
    assert_eq!(status, 403, "{answer}");
    assert!(world.changes().is_empty(), "no network is made before it is limited");
}

#[tokio::test]
async fn host_config_beyond_the_sandbox_is_refused() {
    let world = World::start().await;
    let table = [
        ("Privileged", json!(true)),
        ("Privileged", json!("true")),
        ("Privileged", json!(1)),
        ("privileged", json!(true)),
        ("PRIVILEGED", json!(false)),
        ("NetworkMode", json!("host")),
        ("NetworkMode", json!("container:own")),
        ("NetworkMode", json!("ns:/proc/1/ns/net")),
        ("NetworkMode", json!("slirp4netns:allow_host_loopback=true")),
        ("NetworkMode", json!(["host"])),
        ("PidMode", json!("host")),
        ("PidMode", json!("container:own")),
        ("IpcMode", json!("host")),
        ("IpcMode", json!("container:own")),
        ("UTSMode", json!("host")),
        ("UsernsMode", json!("host")),
        ("UsernsMode", json!("keep-id")),
        ("CgroupnsMode", json!("host")),
        ("Cgroup", json!("container:own")),
        ("CgroupParent", json!("/")),
        ("Devices", json!([{ "PathOnHost": "/dev/sda" }])),
        ("DeviceRequests", json!([{ "Driver": "nvidia" }])),
        ("DeviceCgroupRules", json!(["a *:* rwm"])),
        ("BlkioWeightDevice", json!([{ "Path": "/dev/sda" }])),
        ("CapAdd", json!(["SYS_ADMIN"])),
        ("CapAdd", json!(["ALL"])),
        ("SecurityOpt", json!(["seccomp=unconfined"])),
        ("SecurityOpt", json!(["apparmor=unconfined"])),
        ("SecurityOpt", json!(["no-new-privileges:false"])),
        ("SecurityOpt", json!("label=disable")),
        ("MaskedPaths", json!([])),
        ("ReadonlyPaths", json!([])),
        ("Sysctls", json!({ "kernel.msgmax": "1" })),
        ("Runtime", json!("runc")),
        ("Annotations", json!({ "a": "b" })),
        ("VolumesFrom", json!(["own"])),
        ("VolumeDriver", json!("nfs")),
        ("Links", json!(["own:x"])),
        ("PortBindings", json!({ "80/tcp": [{ "HostPort": "80" }] })),
        ("PublishAllPorts", json!(true)),
        ("Dns", json!(["169.254.169.254"])),
        ("ExtraHosts", json!(["host:host-gateway"])),
        ("GroupAdd", json!(["keep-groups"])),
        ("OomKillDisable", json!(true)),
        ("OomScoreAdj", json!(-1000)),
        ("StorageOpt", json!({ "size": "1000G" })),
        ("LogConfig", json!({ "Type": "syslog", "Config": { "syslog-address": "tcp://10.0.0.1" } })),
        ("LogConfig", json!({ "Type": "json-file", "Config": { "path": "/etc/cron.d/x" } })),
        ("Memory", json!(1_u64 << 40)),
        ("Memory", json!(-2)),
        ("Memory", json!("1g")),
        ("PidsLimit", json!(1_000_000)),
        ("CpuQuota", json!(-1)),
        ("CpuQuota", json!(100_000)),
        ("ShmSize", json!(1_u64 << 40)),
        ("Ulimits", json!([{ "Name": "host" }])),
        ("Tmpfs", json!({ "/x": "dev" })),
        ("Tmpfs", json!({ "/x": "rw,bind" })),
        ("Binds", json!(["/:/host"])),
        ("Binds", json!(["/workspace/../etc:/host"])),
        ("Binds", json!(["/workspacex:/host"])),
        ("Binds", json!(["/workspace:/w:rshared"])),
        ("Binds", json!(["/workspace:/w:U"])),
        ("Binds", json!(["/workspace:/w:ro:rw"])),
        ("Binds", json!(["../etc:/host"])),
        ("Binds", json!(["foreign:/v"])),
        ("Binds", json!(["/workspace"])),
        ("Binds", json!("/:/host")),
        ("Mounts", json!([{ "Type": "bind", "Source": "/", "Target": "/host" }])),
        ("Mounts", json!([{ "type": "bind", "source": "/", "target": "/host" }])),
        ("Mounts", json!([{ "Type": "npipe", "Source": "x", "Target": "/x" }])),
        ("Mounts", json!([{ "Type": "image", "Source": "debian", "Target": "/x" }])),
        ("Mounts", json!([{ "Source": "/", "Target": "/x" }])),
        (
            "Mounts",
            json!([{ "Type": "bind", "Source": "/workspace", "Target": "/x", "BindOptions": { "Propagation": "rshared" } }]),
        ),
        (
            "Mounts",
            json!([{ "Type": "volume", "Source": "v", "Target": "/x", "VolumeOptions": { "DriverConfig": { "Name": "local", "Options": { "device": "/" } } } }]),
        ),
        ("Mounts", json!([{ "Type": "volume", "Source": "/", "Target": "/x" }])),
        ("Mounts", json!([{ "Type": "volume", "Source": "foreign", "Target": "/x" }])),
        ("Mounts", json!([{ "Type": "tmpfs", "Source": "/", "Target": "/x" }])),
        ("Unknown", json!(null)),
    ];
    for (field, value) in table {
        let body = json!({ "Image": "debian", "HostConfig": { field: value } });
        let (status, answer) = world.send("POST", CREATE, &body).await;
        assert!(matches!(status, 400 | 403 | 404), "{body}: {status} {answer}");
        assert!(answer.contains("\"message\""), "{body}: {answer}");
        assert!(world.changes().iter().all(|request| !request.address.contains("create")), "{body}");
    }
}

#[tokio::test]
async fn fields_of_containers_beyond_the_sandbox_are_refused() {
    let world = World::start().await;
    for fields in [
        json!({ "hostconfig": { "Privileged": true } }),
        json!({ "HOSTCONFIG": {} }),
        json!({ "HostConfig": [] }),
        json!({ "Env": ["SECRET"] }),
        json!({ "Env": ["AWS_*"] }),
        json!({ "Env": ["=x"] }),
        json!({ "MacAddress": "02:42:ac:11:00:02" }),
        json!({ "Labels": { "bench-runner.sandbox": "s2" } }),
        json!({ "Labels": { "Bench-Runner.Sandbox": "s2" } }),
        json!({ "Labels": { "io.podman.annotations.privileged": "TRUE" } }),
        json!({ "Labels": { "a": 1 } }),
        json!({ "Image": "localhost/bench/s2/x" }),
        json!({ "Image": "10.0.0.1:5000/x" }),
        json!({ "Image": "sha256:1111" }),
        json!({ "Image": "../x" }),
        json!({ "Image": "" }),
        json!({ "NetworkingConfig": { "EndpointsConfig": { "foreign": {} } } }),
        json!({ "NetworkingConfig": { "EndpointsConfig": { "host": {} } } }),
        json!({ "NetworkingConfig": { "EndpointsConfig": { "own": { "IPAMConfig": { "IPv4Address": "10.0.0.1" } } } } }),
        json!({ "NetworkingConfig": { "EndpointsConfig": { "own": { "DriverOpts": { "a": "b" } } } } }),
        json!({ "NetworkingConfig": { "Unknown": {} } }),
        json!({ "Healthcheck": { "Unknown": 1 } }),
    ] {
        let mut body = json!({ "Image": "debian" });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let (status, answer) = world.send("POST", CREATE, &body).await;
        assert!(matches!(status, 400 | 403 | 404), "{body}: {status} {answer}");
        assert!(world.changes().iter().all(|request| !request.address.contains("create")), "{body}");
    }
    // Of two fields with the same name, the engine receives the one that was checked.
    let twice = br#"{"Image":"debian","HostConfig":{"Privileged":true},"HostConfig":{"Privileged":false}}"#;
    assert_eq!(world.send_raw("POST", CREATE, "", twice).await.0, 201);
    assert!(sent(&world)["HostConfig"].get("Privileged").is_none());
}

#[tokio::test]
async fn refusals_name_the_field_and_what_is_allowed() {
    let world = World::start().await;
    let body = json!({ "Image": "debian", "HostConfig": { "Privileged": true } });
    let (status, answer) = world.send("POST", CREATE, &body).await;
    assert_eq!(status, 403);
    assert_eq!(
        answer,
        r#"{"message":"refused by the sandbox host: field `HostConfig.Privileged` is not allowed; allowed: `false`"}"#
    );
    let (_, answer) =
        world.send("POST", "/containers/own/exec", &json!({ "Cmd": ["id"], "Privileged": true })).await;
    assert!(answer.contains("`Privileged` is not allowed"), "{answer}");
}

#[tokio::test]
async fn other_bodies_beyond_the_sandbox_are_refused() {
    let world = World::start().await;
    let local = json!({ "type": "none", "o": "bind", "device": "/" });
    for (address, body) in [
        ("/volumes/create", json!({ "Name": "v", "DriverOpts": local })),
        ("/volumes/create", json!({ "Name": "v", "driveropts": local })),
        ("/volumes/create", json!({ "Name": "v", "Driver": "nfs" })),
        ("/volumes/create", json!({ "Name": "../v" })),
        ("/volumes/create", json!({ "Name": "foreign" })),
        ("/volumes/create", json!({ "ClusterVolumeSpec": { "Group": "x" } })),
        ("/networks/create", json!({ "Name": "n", "Driver": "macvlan" })),
        ("/networks/create", json!({ "Name": "n", "Driver": "host" })),
        ("/networks/create", json!({ "Name": "host" })),
        ("/networks/create", json!({ "Name": "n", "Options": { "com.docker.network.bridge.name": "eth0" } })),
        ("/networks/create", json!({ "Name": "n", "IPAM": { "Config": [{ "Subnet": "10.0.0.0/8" }] } })),
        ("/networks/create", json!({ "Name": "n", "ConfigFrom": { "Network": "x" } })),
        ("/networks/create", json!({ "Name": "n", "Ingress": true })),
        ("/networks/create", json!({ "Name": "n", "EnableIPv6": true })),
        ("/networks/own/connect", json!({ "Container": "foreign" })),
        ("/networks/own/connect", json!({ "Container": "../own" })),
        ("/networks/own/connect", json!({ "Container": "own", "EndpointConfig": { "MacAddress": "x" } })),
        ("/networks/foreign/connect", json!({ "Container": "own" })),
        ("/containers/own/exec", json!({ "Cmd": ["id"], "Privileged": true })),
        ("/containers/own/exec", json!({ "Cmd": ["id"], "Env": ["SECRET"] })),
        ("/containers/own/exec", json!({ "Cmd": ["id"], "cmd": ["id"] })),
        ("/exec/own/start", json!({ "Unknown": 1 })),
        ("/containers/own/update", json!({ "Memory": 1_u64 << 40 })),
        ("/containers/own/update", json!({ "PidsLimit": -1 })),
        ("/containers/own/update", json!({ "Devices": [{ "PathOnHost": "/dev/sda" }] })),
        ("/containers/own/update", json!({ "CpuQuota": -1 })),
        ("/containers/own/update", json!({ "RestartPolicy": { "Name": "always" } })),
        ("/containers/own/rename?name=a%20b", json!(null)),
        ("/containers/create?name=a%3Fb", json!({ "Image": "debian" })),
        ("/images/create?fromImage=localhost/bench/s2/x", json!(null)),
        ("/images/create?fromImage=10.0.0.1:5000/x&tag=1", json!(null)),
        ("/images/create?fromSrc=-&repo=debian", json!(null)),
        ("/images/debian/tag?repo=debian&tag=2", json!(null)),
        ("/images/localhost/bench/s2/x/tag?repo=localhost/bench/s1/x", json!(null)),
    ] {
        let (status, answer) = world.send("POST", address, &body).await;
        assert!(matches!(status, 400 | 403 | 404), "{address} {body}: {status} {answer}");
        assert!(world.changes().is_empty(), "{address} {body}");
    }
    let long = json!({ "Image": "debian", "Cmd": ["x".repeat(2 << 20)] });
    assert_eq!(world.send("POST", CREATE, &long).await.0, 413);
    for broken in ["{", "[]", "null", "\"x\"", "{\"Image\":\"debian\"} {}"] {
        assert_eq!(world.send_raw("POST", CREATE, "", broken.as_bytes()).await.0, 400, "{broken}");
    }
}
