use serde_json::json;

use super::*;
use crate::path::TaskPath;
use crate::tree::TreeBuilder;

fn policy() -> ComposePolicy {
    ComposePolicy {
        project: "ep1".to_owned(),
        task_folder: "/w/task/environment".to_owned(),
        mount_folders: vec!["/w/logs".to_owned()],
        image_prefix: "bench-task/".to_owned(),
        service: "main".to_owned(),
        shm_bytes_max: 1 << 30,
    }
}

fn check(project: &Value) -> Result<ProjectPlan, Refusal> {
    check_compose(project.to_string().as_bytes(), &policy(), &[])
}

/// Checks a project whose only service has this entry in addition.
fn with(key: &str, value: Value) -> Result<ProjectPlan, Refusal> {
    let mut project = json!({"services": {"main": {"image": "debian:12"}}});
    project["services"]["main"][key] = value;
    check(&project)
}

fn tree(files: &[(&str, &str)]) -> Tree {
    let mut builder = TreeBuilder::default();
    for (path, content) in files {
        builder.add(&TaskPath::new(path).unwrap(), None, &mut content.as_bytes()).unwrap();
    }
    builder.finish()
}

#[test]
fn a_usual_project_is_accepted() {
    let project = json!({
        "name": "ep1",
        "services": {
            "main": {
                "build": {"context": "/w/task/environment", "dockerfile": "Dockerfile", "args": {"A": "1"}},
                "image": "bench-task/0123", "command": ["sh", "-c", "sleep infinity"], "entrypoint": null,
                "container_name": "ep1", "depends_on": {"db": {"condition": "service_healthy", "required": true}},
                "environment": {"TEST_DIR": "/tests", "EMPTY": null}, "networks": {"default": null}, "init": true,
                "volumes": [
                    {"type": "bind", "source": "/w/logs/agent", "target": "/logs", "bind": {"create_host_path": true}},
                    {"type": "volume", "source": "data", "target": "/data", "volume": {}},
                    {"type": "tmpfs", "target": "/run", "tmpfs": {"size": "1000"}},
                ],
                "deploy": {"resources": {"limits": {"cpus": 2, "memory": "1073741824", "pids": 100}}, "placement": {}},
                "mem_limit": "2147483648", "cpus": 1.5, "shm_size": "67108864", "pids_limit": 512,
                "cap_drop": ["ALL"], "cap_add": [], "security_opt": ["no-new-privileges:true"], "privileged": false,
                "configs": [{"source": "conf", "target": "/etc/conf"}], "x-note": {"anything": []},
                "ulimits": {"nofile": {"soft": 1024, "hard": 4096}, "core": 0},
                "extra_hosts": ["mirror=192.0.2.1"], "stop_grace_period": "1s", "tty": true,
            },
            "db": {
                "image": "postgres:17", "expose": ["5432"], "restart": "no", "network_mode": "service:main",
                "healthcheck": {"test": ["CMD", "true"], "interval": "1s", "retries": 3},
                "logging": {"driver": "json-file", "options": {"max-size": "1m"}},
            },
        },
        "networks": {"default": {"name": "ep1_default", "ipam": {}, "internal": true}},
        "volumes": {"data": {"name": "ep1_data"}},
        "configs": {"conf": {"name": "ep1_conf", "file": "/w/task/environment/conf"}},
        "x-common": {"a": 1},
    });
    let plan = check(&project).unwrap();
    assert_eq!(plan.pulled_images().collect::<Vec<_>>(), ["postgres:17"]);
    let build = plan.services["main"].build.as_ref().unwrap();
    assert_eq!(
        (build.context.as_str(), build.dockerfile.as_deref()),
        ("/w/task/environment", Some("Dockerfile"))
    );
}

/// `config.json` is what compose 2.26.1 wrote for `docker-compose.yaml` beside it, with the folder's name replaced.
#[test]
fn the_output_of_compose_is_accepted() {
    let files = [
        ("environment/docker-compose.yaml", include_str!("data/docker-compose.yaml")),
        ("environment/base.yaml", include_str!("data/base.yaml")),
    ];
    let sources = check_compose_source(&tree(&files), "environment/docker-compose.yaml").unwrap();
    let output = include_str!("data/config.json");
    let policy = ComposePolicy { service: "client".to_owned(), ..policy() };
    let plan = check_compose(output.as_bytes(), &policy, &sources).unwrap();
    assert_eq!(plan.services["client"].container_name.as_deref(), Some("ep1"));
    assert_eq!(plan.pulled_images().collect::<Vec<_>>(), ["postgres:17"]);
    // The line is that of the key in the source, whatever form it has there.
    let outside = output.replace("/w/task/environment/data", "/var/run/docker.sock");
    let refusal = check_compose(outside.as_bytes(), &policy, &sources).unwrap_err();
    assert!(
        refusal.to_string().starts_with(
            "`environment/docker-compose.yaml` line 18: service `client` sets `volumes.1.source`"
        ),
        "{refusal}"
    );
}

/// Entries of services that no task may have.
fn refused_entries() -> Vec<(&'static str, Value)> {
    vec![
        ("privileged", json!(true)),
        ("privileged", json!("true")),
        ("network_mode", json!("host")),
        ("network_mode", json!("bridge")),
        ("network_mode", json!("container:other")),
        ("network_mode", json!("service:other")),
        ("pid", json!("host")),
        ("ipc", json!("host")),
        ("ipc", json!("shareable")),
        ("uts", json!("host")),
        ("userns_mode", json!("host")),
        ("cgroup", json!("host")),
        ("cgroup_parent", json!("/")),
        ("devices", json!([{"source": "/dev/kvm", "target": "/dev/kvm"}])),
        ("device_cgroup_rules", json!(["a *:* rwm"])),
        ("gpus", json!([{"count": -1}])),
        ("cap_add", json!(["SYS_ADMIN"])),
        ("security_opt", json!(["seccomp:unconfined"])),
        ("security_opt", json!(["no-new-privileges:true", "apparmor=unconfined"])),
        ("security_opt", json!("no-new-privileges:false")),
        ("sysctls", json!({"net.ipv4.ip_forward": "1"})),
        ("runtime", json!("sysbox")),
        ("annotations", json!({"io.podman.annotations.privileged": "TRUE"})),
        ("labels", json!({"com.docker.compose.project": "other"})),
        ("volumes_from", json!(["container:other"])),
        ("external_links", json!(["other"])),
        ("use_api_socket", json!(true)),
        ("provider", json!({"type": "program"})),
        ("post_start", json!([{"command": "x", "privileged": true}])),
        ("pre_stop", json!([{"command": "x"}])),
        ("models", json!({"m": {}})),
        ("develop", json!({"watch": [{"path": "/", "action": "sync"}]})),
        ("ports", json!([{"target": 80, "published": "80"}])),
        ("oom_score_adj", json!(-1000)),
        ("oom_kill_disable", json!(true)),
        ("memswap_limit", json!("-1")),
        ("mem_limit", json!("-1")),
        ("pids_limit", json!(-1)),
        ("shm_size", json!("999999999999")),
        ("scale", json!(5)),
        ("group_add", json!(["docker"])),
        ("container_name", json!("other")),
        ("container_name", json!("ep10")),
        ("dns", json!(["169.254.169.254"])),
        ("extra_hosts", json!(["x=host-gateway"])),
        ("extra_hosts", json!({"x": "host-gateway"})),
        ("logging", json!({"driver": "syslog", "options": {"syslog-address": "tcp://10.0.0.1"}})),
        ("logging", json!({"driver": "json-file", "options": {"env": "X"}})),
        ("deploy", json!({"resources": {"reservations": {"devices": [{"capabilities": ["gpu"]}]}}})),
        ("deploy", json!({"replicas": 100})),
        ("ulimits", json!({"memlock": -1})),
        ("ulimits", json!({"nofile": -1})),
        ("networks", json!({"host": null})),
        ("image", json!("--privileged")),
        ("credential_spec", json!({"file": "x"})),
        ("storage_opt", json!({"size": "1T"})),
        ("platform", json!("windows/amd64")),
        ("secrets", json!([{"source": "undeclared"}])),
        ("unknown_key", json!(1)),
    ]
}

#[test]
fn what_reaches_the_host_is_refused() {
    for (key, value) in refused_entries() {
        let refusal = with(key, value.clone()).unwrap_err();
        assert!(
            matches!(refusal.code(), "compose_key_not_allowed" | "compose_value_not_allowed"),
            "{refusal}"
        );
        assert!(refusal.to_string().starts_with("service `main` "), "{refusal}");
        assert!(refusal.to_string().contains(key), "{refusal}");
    }
}

#[test]
fn mounts_stay_in_the_tasks_folders() {
    let mount = |source: &str| with("volumes", json!([{"type": "bind", "source": source, "target": "/x"}]));
    for source in ["/w/task/environment", "/w/task/environment/data", "/w/logs", "/w/logs/a"] {
        mount(source).unwrap();
    }
    for source in [
        "/",
        "/etc",
        "/var/run/docker.sock",
        "/w",
        "/w/task",
        "/w/task/environment2",
        "/w/task/environment/../../..",
        "/w/logs/../x",
        "/w/task/environment/./x",
        "//w/logs",
        "w/logs",
        "",
        "/w/logs/",
    ] {
        let refusal = mount(source).unwrap_err();
        assert!(refusal.to_string().contains("volumes.0.source"), "{refusal}");
    }
    for mount in [
        json!({"type": "bind", "target": "/x"}),
        json!({"type": "bind", "source": "/w/logs", "target": "/x", "bind": {"propagation": "shared"}}),
        json!({"type": "bind", "source": "/w/logs", "target": "/x", "bind": {"selinux": "z"}}),
        json!({"type": "bind", "source": "/w/logs", "target": "x"}),
        json!({"type": "volume", "source": "undeclared", "target": "/x"}),
        json!({"type": "volume", "source": "/etc", "target": "/x"}),
        json!({"type": "npipe", "source": "x", "target": "/x"}),
        json!({"type": "image", "source": "x", "target": "/x"}),
        json!({"source": "/w/logs", "target": "/x"}),
        json!("/etc:/x"),
    ] {
        assert!(with("volumes", json!([mount])).is_err(), "{mount}");
    }
}

#[test]
fn builds_stay_in_the_tasks_folder() {
    let build = |build: Value, image: Option<&str>| {
        check(&json!({"services": {"main": {"build": build, "image": image}}}))
    };
    let good = || json!({"context": "/w/task/environment/sub", "dockerfile": "../Dockerfile"});
    assert!(build(json!({"context": "/w/task/environment"}), None).is_ok());
    assert!(
        build(
            json!({"context": "/w/task/environment", "dockerfile": "./a/Dockerfile"}),
            Some("bench-task/x")
        )
        .is_ok()
    );
    for (value, image) in [
        (good(), None),
        (json!({}), None),
        (json!("/w/task/environment"), None),
        (json!({"context": "/"}), None),
        (json!({"context": "https://example.com/x.git"}), None),
        (json!({"context": "/w/task/environment", "dockerfile": "/etc/passwd"}), None),
        (json!({"context": "/w/task/environment"}), Some("debian:12")),
        (json!({"context": "/w/task/environment", "privileged": true}), None),
        (json!({"context": "/w/task/environment", "network": "host"}), None),
        (json!({"context": "/w/task/environment", "entitlements": ["security.insecure"]}), None),
        (json!({"context": "/w/task/environment", "additional_contexts": {"x": "/"}}), None),
        (json!({"context": "/w/task/environment", "ssh": ["default"]}), None),
        (json!({"context": "/w/task/environment", "secrets": [{"source": "x"}]}), None),
        (json!({"context": "/w/task/environment", "tags": ["debian:12"]}), None),
        (json!({"context": "/w/task/environment", "cache_to": ["type=local,dest=/"]}), None),
        (json!({"context": "/w/task/environment", "extra_hosts": ["x=host-gateway"]}), None),
    ] {
        assert!(build(value.clone(), image).is_err(), "{value} {image:?}");
    }
}

#[test]
fn shared_elements_belong_to_the_project() {
    let base = || json!({"services": {"main": {"image": "x"}}});
    for (section, element) in [
        ("networks", json!({"external": true, "name": "host"})),
        ("networks", json!({"name": "ep2_n"})),
        ("networks", json!({"driver": "host"})),
        ("networks", json!({"driver": "macvlan", "driver_opts": {"parent": "eth0"}})),
        ("networks", json!({"driver_opts": {"com.docker.network.bridge.name": "docker0"}})),
        ("networks", json!({"ipam": {"config": [{"subnet": "10.0.0.0/8"}]}})),
        ("networks", json!({"attachable": true})),
        ("volumes", json!({"external": true})),
        ("volumes", json!({"name": "ep2_n"})),
        ("volumes", json!({"driver": "nfs"})),
        ("volumes", json!({"driver_opts": {"type": "none", "o": "bind", "device": "/"}})),
        ("volumes", json!({"labels": {"com.docker.compose.volume": "x"}})),
        ("secrets", json!({"file": "/etc/shadow"})),
        ("secrets", json!({"environment": "KEY"})),
        ("configs", json!({"external": true})),
        ("configs", json!("x")),
    ] {
        let mut project = base();
        project[section] = json!({"n": element});
        let refusal = check(&project).unwrap_err();
        assert!(refusal.code().starts_with("compose_"), "{refusal}");
    }
    for (key, value) in [
        ("name", json!("other")),
        ("include", json!(["x"])),
        ("models", json!({"m": 1})),
        ("services", json!([])),
    ] {
        let mut project = base();
        project[key] = value;
        assert!(check(&project).is_err(), "{key}");
    }
    let many: Map<String, Value> =
        (0..17).map(|index| (format!("s{index}"), json!({"image": "x"}))).collect();
    assert_eq!(check(&json!({"services": many})).unwrap_err().code(), "compose_too_large");
    assert_eq!(
        check(&json!({"services": {"db": {"image": "x"}}})).unwrap_err().code(),
        "compose_service_missing"
    );
    for output in ["", "[]", "{", "null"] {
        assert_eq!(
            check_compose(output.as_bytes(), &policy(), &[]).unwrap_err().code(),
            "compose_output_invalid"
        );
    }
}

#[test]
fn refusals_name_file_and_line() {
    let files = [
        (
            "environment/docker-compose.yaml",
            "services:\n  main:\n    image: x\n  db:\n    extends:\n      file: base.yaml\n      service: db\n    volumes:\n      - ./data:/d\n      - /etc:/x\n",
        ),
        ("environment/base.yaml", "services:\n  db:\n    image: y\n\n    sysctls:\n      a: 1\n"),
    ];
    let tree = tree(&files);
    let sources = files.map(|(file, _)| ComposeSource::read(&tree, file).unwrap());
    let mut project =
        json!({"services": {"main": {"image": "x"}, "db": {"image": "y", "sysctls": {"a": 1}}}});
    let refusal = check_compose(project.to_string().as_bytes(), &policy(), &sources).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "`environment/base.yaml` line 5: service `db` uses `sysctls`, which tasks must not use; leave it out"
    );
    project["services"]["db"] = json!({"image": "y", "volumes": [
        {"type": "bind", "source": "/w/task/environment/data", "target": "/d"},
        {"type": "bind", "source": "/etc", "target": "/x"},
    ]});
    let refusal = check_compose(project.to_string().as_bytes(), &policy(), &sources).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "`environment/docker-compose.yaml` line 10: service `db` sets `volumes.1.source` to `/etc`, which tasks must \
         not do; mount a folder of the task"
    );
}

#[test]
fn sources_lead_to_files_of_the_task_only() {
    let code = |service: &str| {
        let text = format!("services:\n  main:\n    image: x\n    {service}\n");
        check_compose_source(
            &tree(&[("c/docker-compose.yaml", &text), ("base.yaml", ""), ("c/x.env", "")]),
            "c/docker-compose.yaml",
        )
        .map_err(|refusal| (refusal.code(), refusal.place.unwrap().line.unwrap()))
    };
    for service in [
        "env_file: x.env",
        "env_file: [{path: ./x.env}]",
        "extends: {file: ../base.yaml, service: x}",
        "extends: {service: y}",
    ] {
        assert!(code(service).is_ok(), "{service}");
    }
    for service in [
        "env_file: /etc/shadow",
        "env_file: [x.env, ../../secret]",
        "env_file: ~/.ssh/id",
        "env_file: ${HOME}/x",
        "env_file: [{path: /etc/shadow}]",
        "label_file: /etc/shadow",
        "extends: {file: /etc/x.yaml, service: x}",
        "extends: {file: 'https://example.com/x.yaml', service: x}",
        "privileged: true",
        "network_mode: host",
        "ipc: container:x",
    ] {
        assert_eq!(code(service).unwrap_err(), ("compose_value_not_allowed", 4), "{service}");
    }
    for service in
        ["cap_add: [ALL]", "pid: host", "devices: [/dev/kvm]", "ports: ['80:80']", "provider: {type: x}"]
    {
        assert_eq!(code(service).unwrap_err(), ("compose_key_not_allowed", 4), "{service}");
    }
    let include = tree(&[("docker-compose.yaml", "services: {}\ninclude: [other.yaml]")]);
    let refusal = check_compose_source(&include, "docker-compose.yaml").unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "`docker-compose.yaml` line 2: the project uses `include`, which tasks must not use; write the services into one file"
    );
    let missing = tree(&[("docker-compose.yaml", "services: {a: {extends: {file: no.yaml, service: x}}}")]);
    assert_eq!(check_compose_source(&missing, "docker-compose.yaml").unwrap_err().code(), "missing_file");
}

/// Reads a source with an entry of its only service, and returns code and line of the refusal.
fn source_with(service: &str) -> Result<(), (String, u32)> {
    let text = format!("services:\n  main:\n    {service}\n");
    let sources = check_compose_source(&tree(&[("c/docker-compose.yaml", &text)]), "c/docker-compose.yaml");
    sources.map(drop).map_err(|refusal| (refusal.code().to_owned(), refusal.place.unwrap().line.unwrap()))
}

#[test]
fn an_upload_is_refused_for_what_its_runs_would_be_refused_for() {
    // Texts and numbers that compose changes, and names that other files may declare.
    let left_to_the_output = ["models=", "mem_limit=", "pids_limit=", "networks=", "secrets="];
    for (key, value) in refused_entries() {
        let entry = format!("{key}={value}");
        if left_to_the_output.iter().any(|left| entry.starts_with(left)) {
            continue;
        }
        let (code, line) = source_with(&format!("{key}: {value}")).expect_err(&entry);
        assert!(
            matches!(code.as_str(), "compose_key_not_allowed" | "compose_value_not_allowed"),
            "{entry}: {code}"
        );
        assert_eq!(line, 3, "{entry}");
    }
    for service in [
        "privileged: yes",
        "privileged: 'TRUE'",
        "volumes: ['/var/run/docker.sock:/s']",
        "volumes: ['~/.ssh:/s']",
        "volumes: ['../../other:/s']",
        "volumes: [{type: bind, source: /etc, target: /s}]",
        "volumes: [{type: npipe, source: x, target: /s}]",
        "volumes: ['./a:/s:rshared']",
        "volumes: ['./a:/s:ro,slave']",
        "volumes: [{type: bind, source: ./a, target: /s, bind: {propagation: shared}}]",
        "shm_size: 900g",
        "shm_size: '2.5 GiB'",
        "shm_size: 3000000000",
        "build: {context: ., shm_size: 3gb}",
        "build: /",
        "build: ../..",
        "build: 'https://example.com/x.git'",
        "build: {context: ., ssh: [default]}",
        "build: {context: ., network: host}",
        "build: {context: ., dockerfile: /etc/passwd}",
        "labels: ['com.docker.compose.project=other']",
        "deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}",
        "networks: {default: {ipv4_address: 10.0.0.1}}",
    ] {
        assert_eq!(source_with(service).map_err(|(_, line)| line), Err(3), "{service}");
    }
    for service in [
        "volumes: ['./data:/d', 'named:/n', '${HOST_LOGS}:/l', /anonymous, {type: bind, source: ./x, target: /x}]",
        "volumes: [{type: tmpfs, target: /t}, {type: volume, source: v, target: /v}]",
        "{build: {context: ./sub, dockerfile: Dockerfile, args: [A=1]}, image: '${IMAGE}', container_name: '${NAME}'}",
        "build: .",
        "{shm_size: 2g, build: {context: ., shm_size: 512mb, dockerfile_inline: FROM scratch}}",
        "shm_size: '${SHM}'",
        "volumes: ['./shared:/shared', './a:/s:ro', {type: bind, source: ./a, target: /s, bind: {create_host_path: true}}]",
        "{build: {context: .., dockerfile: c/Dockerfile}, image: 'app:1', volumes: ['../shared:/s:ro', './a:b:/c']}",
        "{deploy: {replicas: '${R:-1}'}, extra_hosts: {db: '${IP:-10.0.0.1}'}, ulimits: {nofile: {soft: '${S:-5}', hard: 10}}}",
        "{extra_hosts: ['db: 10.0.0.1'], security_opt: ['${OPTION}'], network_mode: '', pid: '', oom_score_adj: 0}",
        "{build: {context: ., privileged: false, network: ''}, logging: {driver: ''}, networks: {default: {ipv4_address: ''}}}",
        "{privileged: 'false', oom_kill_disable: no}",
        "{profiles: [dev], ports: ['80:80'], privileged: true}",
        "network_mode: 'service:main'",
        "network_mode: '${MODE}'",
        "{privileged: false, user: 1000, command: [sleep, 5], mem_limit: 2g, cpus: '1.5', expose: [80]}",
        "{environment: [A=1], labels: [a=b], ulimits: {nofile: 1024}, shm_size: 64m, tmpfs: /run}",
        "deploy: {resources: {limits: {cpus: '2', memory: 1G}}}",
        "{networks: [default], depends_on: [main], healthcheck: {test: [CMD, 'true'], interval: 1s}}",
        "{configs: [c], secrets: [{source: s}], x-note: {privileged: true}, restart: always}",
    ] {
        assert_eq!(source_with(service), Ok(()), "{service}");
    }
}

#[test]
fn names_of_services_can_be_parts_of_other_names() {
    for (name, line) in [
        ("-x", Some(3)),
        ("_x", Some(3)),
        ("a b", Some(3)),
        ("x".repeat(61).as_str(), Some(3)),
        ("Db.1_x-y", None),
    ] {
        let text = format!("services:\n  main: {{build: .}}\n  {name}: {{image: x}}\n");
        let checked = check_compose_source(&tree(&[("c.yaml", &text)]), "c.yaml");
        assert_eq!(checked.err().map(|refusal| refusal.place.unwrap().line.unwrap()), line, "{name}");
    }
}

#[test]
fn lines_count_elements_with_variables() {
    let service = "volumes:\n      - ${A}:/a\n      - /etc:/x";
    assert_eq!(source_with(service).map_err(|(_, line)| line), Err(5));
}

#[test]
fn shared_elements_of_a_source_are_checked() {
    let of = |sections: &str| {
        let used = "networks: [n], volumes: ['v:/v'], secrets: [s], configs: [{source: c}]";
        let text = format!("services:\n  main: {{image: x, {used}}}\n\n{sections}\n");
        let sources =
            check_compose_source(&tree(&[("c/docker-compose.yaml", &text)]), "c/docker-compose.yaml");
        sources.map(drop).map_err(|refusal| refusal.place.unwrap().line.unwrap())
    };
    for sections in [
        "networks: {n: {external: true}}",
        "networks: {n: {external: 'yes'}}",
        "networks: {n: {driver: host}}",
        "volumes: {v: {driver_opts: {device: /}}}",
        "volumes: {v: {name: other}}",
        "secrets: {s: {environment: KEY}}",
        "secrets: {s: {file: /etc/shadow}}",
        "configs: {c: {file: ../../x}}",
        "models: {m: {model: x}}",
    ] {
        assert_eq!(of(sections), Err(4), "{sections}");
    }
    for sections in [
        "name: any\nversion: '3.8'\nx-y: [1]",
        "networks: {n: , m: {internal: 'true', labels: [a=b]}, default: {driver: '', ipam: {config: []}}}",
        "networks: {unused: {external: true}}\nsecrets: {unused: {environment: KEY}}",
        "volumes: {v: {name: '${V}'}}\nsecrets: {s: {file: ./s.txt}}\nconfigs: {c: {content: text}}",
    ] {
        assert_eq!(of(sections), Ok(()), "{sections}");
    }
}

#[test]
fn anchors_do_not_hide_keys() {
    let text = "x-base: &base\n  cap_add: [SYS_ADMIN]\nservices:\n  main:\n    <<: *base\n    image: x\n";
    let refusal =
        check_compose_source(&tree(&[("docker-compose.yaml", text)]), "docker-compose.yaml").unwrap_err();
    assert_eq!((refusal.code(), refusal.place.unwrap().line), ("compose_key_not_allowed", Some(2)));
}

/// Values for generated services.
fn any_value() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let texts = prop::sample::select(vec!["host", "none", "/", "/w/logs", "bind", "volume", "default", "x"]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..3).prop_map(Value::from),
        texts.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        let keys =
            prop::sample::select(vec!["type", "source", "target", "driver", "limits", "context", "name"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(keys.prop_map(str::to_owned), inner, 0..3)
                .prop_map(|table| Value::Object(table.into_iter().collect())),
        ]
    })
}

#[test]
fn any_output_ends_in_a_plan_or_a_refusal() {
    const KEYS: [&str; 14] = [
        "build",
        "image",
        "volumes",
        "networks",
        "network_mode",
        "deploy",
        "ulimits",
        "logging",
        "configs",
        "extra_hosts",
        "depends_on",
        "healthcheck",
        "privileged",
        "pid",
    ];
    proptest::proptest!(|(key in proptest::sample::select(&KEYS[..]), value in any_value())| {
        if with(key, value.clone()).is_ok() {
            // No accepted service names the host.
            proptest::prop_assert!(!matches!(key, "network_mode" | "pid") || value != "host");
            proptest::prop_assert!(key != "privileged" || value != true);
        }
    });
}

#[test]
fn a_key_that_is_mistyped_is_named() {
    let refused = |text: &str| {
        let tree = tree(&[("environment/docker-compose.yaml", text)]);
        check_compose_source(&tree, "environment/docker-compose.yaml").unwrap_err().to_string()
    };
    for (text, line, rest) in [
        (
            "services:\n  main:\n    imge: debian:12\n",
            3,
            "service `main` uses `imge`, which tasks must not use; did you mean `image`?",
        ),
        (
            "servces:\n  main:\n    image: x\n",
            1,
            "the project uses `servces`, which tasks must not use; did you mean `services`?",
        ),
        (
            "services:\n  main:\n    build:\n      contxt: .\n",
            4,
            "service `main` uses `build.contxt`, which tasks must not use; did you mean `context`?",
        ),
        (
            "services:\n  main:\n    image: x\n    healthcheck:\n      retris: 3\n",
            5,
            "service `main` uses `healthcheck.retris`, which tasks must not use; did you mean `retries`?",
        ),
    ] {
        assert_eq!(refused(text), format!("`environment/docker-compose.yaml` line {line}: {rest}"));
    }
}

#[test]
fn keys_that_compose_knows_are_not_taken_for_mistyped_ones() {
    for key in super::service::FORBIDDEN {
        let refused = with(key, json!({"x": 1})).unwrap_err().to_string();
        assert!(
            refused.ends_with(&format!("uses `{key}`, which tasks must not use; leave it out")),
            "{refused}"
        );
    }
    // `docker compose config` resolves two of them.
    for key in super::service::KEYS.into_iter().filter(|key| !["env_file", "extends"].contains(key)) {
        if let Err(refusal) = with(key, Value::Null) {
            assert!(!refusal.to_string().contains("must not use"), "{refusal}");
        }
    }
}
