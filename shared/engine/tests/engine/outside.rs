//! A network namespace in the place of the internet, the local network and metadata services.

use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};

use bench_engine::NetworkPolicy;

use crate::support::{BUSYBOX, ONE_AT_A_TIME, Sandbox, World};

const PUBLIC: &str = "192.31.196.2";
/// Private networks, a carrier's, metadata services, and reserved blocks in which a host can be.
const NOT_PUBLIC: [&str; 13] = [
    "10.213.7.2",
    "172.30.213.2",
    "192.168.213.2",
    "100.100.213.2",
    "169.254.213.2",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.170",
    "192.0.2.213",
    "192.88.99.2",
    "198.19.213.2",
    "198.51.100.2",
    "203.0.113.2",
];
const PORT: &str = "7070";
/// Number of tries to reach the service, which takes one connection after another and doesn't listen in between.
const TRIES: u32 = 20;

/// Hosts at these addresses, which answer `outside`.
struct Outside {
    name: String,
    service: Child,
}

impl Outside {
    fn start() -> Self {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let name = format!("bench{}", &id[..8]);
        let peer = format!("{name}p");
        ip(&["netns", "add", &name]);
        ip(&["link", "add", &name, "type", "veth", "peer", "name", &peer, "netns", &name]);
        ip(&["link", "set", &name, "up"]);
        ip(&["-n", &name, "link", "set", &peer, "up"]);
        for address in NOT_PUBLIC.into_iter().chain([PUBLIC]) {
            ip(&["addr", "add", &format!("{}/31", beside(address)), "dev", &name]);
            ip(&["-n", &name, "addr", "add", &format!("{address}/31"), "dev", &peer]);
        }
        ip(&["-n", &name, "route", "add", "default", "via", &beside(PUBLIC)]);
        let script = format!("while true; do echo outside | busybox nc -l -p {PORT}; done");
        let service = Command::new("ip")
            .args(["netns", "exec", &name, "sh", "-c", &script])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self { name, service }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.service.kill();
        let _ = self.service.wait();
        for id in String::from_utf8_lossy(
            &Command::new("ip").args(["netns", "pids", &self.name]).output().unwrap().stdout,
        )
        .lines()
        {
            let _ = Command::new("kill").arg(id).status();
        }
        let _ = Command::new("ip").args(["link", "del", &self.name]).status();
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

/// Returns the other address of a network with two.
fn beside(address: &str) -> String {
    Ipv4Addr::from(u32::from(address.parse::<Ipv4Addr>().unwrap()) ^ 1).to_string()
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "ip {arguments:?} (this test needs root and iproute2): {output:?}");
}

/// Returns from which of these addresses a container in the sandbox's default network hears anything.
fn answers(sandbox: &Sandbox, addresses: &[&str], tries: u32) -> Vec<String> {
    let ask = |address: &&str| {
        format!(
            "(for i in $(seq {tries}); do nc -w 3 {address} {PORT} </dev/null 2>/dev/null && echo {address} && break; \
                 sleep 0.5; done) & "
        )
    };
    let script = format!("{} wait", addresses.iter().map(ask).collect::<String>());
    let heard = sandbox.succeed(&["run", "--rm", BUSYBOX, "sh", "-c", &script]);
    heard.lines().filter(|line| *line != "outside").map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_network_reaches_public_addresses_only() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let world = World::start().await;
    let _outside = Outside::start();
    let open = world.sandbox("open", NetworkPolicy::Unfiltered);
    let public = world.sandbox("public", NetworkPolicy::Public);
    let none = world.sandbox("none", NetworkPolicy::None);
    assert_eq!(answers(&public, &[PUBLIC], TRIES), [PUBLIC]);
    assert_eq!(answers(&none, &[PUBLIC], 1), [""; 0]);
    // Proves that the attempts below would succeed without limits.
    let mut heard = answers(&open, &NOT_PUBLIC, TRIES);
    heard.sort_by_key(|address| NOT_PUBLIC.iter().position(|known| known == address));
    assert_eq!(heard, NOT_PUBLIC);
    assert_eq!(answers(&public, &NOT_PUBLIC, 1), [""; 0]);
    for sandbox in [open, public, none] {
        sandbox.proxy.stop().await.unwrap();
    }
    world.stop().await;
}
