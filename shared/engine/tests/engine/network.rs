//! Networks of sandboxes, tried from inside containers.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::process::Command;

use bench_engine::NetworkPolicy;

use crate::support::{BUSYBOX, ONE_AT_A_TIME, Sandbox, World, stdout};

/// Answers every connection on all addresses of this machine, and returns the port.
fn machine_service() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.unwrap().write_all(b"machine\n");
        }
    });
    port
}

/// Returns this machine's own addresses.
fn machine_addresses() -> Vec<String> {
    let output = Command::new("ip").args(["-4", "-o", "addr", "show", "scope", "global"]).output().unwrap();
    let text = stdout(&output);
    let words = text.lines().filter_map(|line| line.split_whitespace().nth(3)?.split('/').next());
    words.map(str::to_owned).collect()
}

/// Returns what a service answers to a container in a network.
fn answer(sandbox: &Sandbox, network: &str, address: &str, port: u16) -> String {
    answers(sandbox, network, &[(address.to_owned(), port)])
}

/// Does the same for several services at once.
fn answers(sandbox: &Sandbox, network: &str, services: &[(String, u16)]) -> String {
    let tries: Vec<_> = services.iter().map(|(address, port)| attempt(address, *port)).collect();
    let command = format!("{} wait", tries.concat());
    sandbox.succeed(&["run", "--rm", "--network", network, BUSYBOX, "sh", "-c", &command])
}

/// Returns the shell command that asks a service in the background.
fn attempt(address: &str, port: u16) -> String {
    format!("nc -w 2 {address} {port} </dev/null 2>/dev/null & ")
}

fn gateway(world: &World, network: &str) -> String {
    let format = "{{(index .IPAM.Config 0).Gateway}}";
    let gateway = stdout(&world.docker(&["network", "inspect", "--format", format, network]));
    gateway.parse::<IpAddr>().unwrap().to_string()
}

fn address_of(world: &World, container: &str) -> String {
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    stdout(&world.docker(&["inspect", "--format", format, container]))
}

#[tokio::test(flavor = "multi_thread")]
async fn limited_networks_reach_neither_the_machine_nor_other_sandboxes() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let world = World::start().await;
    if let Some(reason) = &world.engine.report().unfiltered {
        panic!("this test needs a firewall: {reason}");
    }
    let port = machine_service();
    let open = world.sandbox("open", NetworkPolicy::Unfiltered);
    let network = format!("open-{}", world.instance);
    open.succeed(&["network", "create", &network]);
    // Proves that the attempts below would succeed without limits.
    assert_eq!(answer(&open, &network, &gateway(&world, &network), port), "machine");
    let serve = ["sh", "-c", "while true; do echo peer | nc -l -p 7000; done"];
    let name = format!("peer-{}", world.instance);
    open.succeed(&[&["run", "-d", "--name", &name, "--network", &network, BUSYBOX][..], &serve].concat());
    let other = address_of(&world, &name);
    assert_eq!(answer(&open, &network, &other, 7000), "peer");
    open.succeed(&["rm", "-f", &name]);
    open.succeed(&[&["run", "-d", "--name", &name, "--network", &network, BUSYBOX][..], &serve].concat());
    let other = address_of(&world, &name);

    for (id, policy) in [("none", NetworkPolicy::None), ("public", NetworkPolicy::Public)] {
        let sandbox = world.sandbox(id, policy);
        let network = format!("{id}-{}", world.instance);
        sandbox.succeed(&["network", "create", &network]);
        let own = format!("own-{id}-{}", world.instance);
        sandbox
            .succeed(&[&["run", "-d", "--name", &own, "--network", &network, BUSYBOX][..], &serve].concat());
        assert_eq!(answer(&sandbox, &network, &address_of(&world, &own), 7000), "peer", "{id}");
        let machine: Vec<_> = machine_addresses().into_iter().map(|address| (address, port)).collect();
        let others = [(other.clone(), 7000), (gateway(&world, &network), port)];
        assert_eq!(answers(&sandbox, &network, &[&machine[..], &others].concat()), "", "{id}");
        // The network that containers use without a choice, and builds.
        assert_eq!(answers(&sandbox, "default", &machine), "", "{id}");
        let context = sandbox.workspace.join("context");
        std::fs::create_dir(&context).unwrap();
        let tries: Vec<_> = machine.iter().map(|(address, port)| attempt(address, *port)).collect();
        let text = format!("FROM {BUSYBOX}\nRUN ({} wait) > /found\n", tries.concat());
        std::fs::write(context.join("Dockerfile"), text).unwrap();
        let image = format!("localhost/bench/{id}/found:1");
        sandbox.succeed(&["build", "-t", &image, &context.display().to_string()]);
        assert_eq!(
            sandbox.succeed(&["run", "--rm", "--network", "none", &image, "cat", "/found"]),
            "",
            "{id}: build"
        );
        sandbox.proxy.stop().await.unwrap();
    }
    assert_eq!(answer(&open, &network, &other, 7000), "peer");
    open.proxy.stop().await.unwrap();
    world.stop().await;
}
