//! A network namespace in the place of the internet, the local network and metadata services.

use std::process::{Child, Command, Stdio};

use bench_engine::NetworkPolicy;

use crate::support::{BUSYBOX, ONE_AT_A_TIME, Sandbox, World};

const PUBLIC: &str = "192.31.196.2";
/// A private network, a carrier's, and the block of metadata services.
const NOT_PUBLIC: [&str; 5] =
    ["10.213.7.2", "172.30.213.2", "192.168.213.2", "100.100.213.2", "169.254.213.2"];
const PORT: &str = "7070";

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
            let machine = format!("{}1/30", address.trim_end_matches('2'));
            ip(&["addr", "add", &machine, "dev", &name]);
            ip(&["-n", &name, "addr", "add", &format!("{address}/30"), "dev", &peer]);
        }
        ip(&["-n", &name, "route", "add", "default", "via", "192.31.196.1"]);
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

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "ip {arguments:?} (this test needs root and iproute2): {output:?}");
}

/// Returns what a container in the sandbox's default network hears from these addresses, one after another.
fn answer(sandbox: &Sandbox, addresses: &[&str]) -> String {
    let tries: Vec<_> =
        addresses.iter().map(|address| format!("nc -w 3 {address} {PORT} </dev/null 2>/dev/null;")).collect();
    sandbox.succeed(&["run", "--rm", BUSYBOX, "sh", "-c", &format!("{} true", tries.concat())])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_network_reaches_public_addresses_only() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let world = World::start().await;
    let _outside = Outside::start();
    let open = world.sandbox("open", NetworkPolicy::Unfiltered);
    let public = world.sandbox("public", NetworkPolicy::Public);
    let none = world.sandbox("none", NetworkPolicy::None);
    assert_eq!(answer(&public, &[PUBLIC]), "outside");
    assert_eq!(answer(&none, &[PUBLIC]), "");
    for address in NOT_PUBLIC {
        assert_eq!(answer(&open, &[address]), "outside", "{address}");
    }
    assert_eq!(answer(&public, &NOT_PUBLIC), "");
    for sandbox in [open, public, none] {
        sandbox.proxy.stop().await.unwrap();
    }
    world.stop().await;
}
