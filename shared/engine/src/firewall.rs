//! Rules of nftables for the networks of sandboxes.
//!
//! The engine's own means leave gaps: containers in an internal network reach the machine at the network's gateway, and
//! containers in others reach the local network and metadata services. The rules are in a table of this program's own
//! and match by the network's interface, so containers can't avoid them by other source addresses.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

/// Time limit of one command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of nft's message in an error, in characters.
const MESSAGE_CHARS_MAX: usize = 300;
/// Maximum length of an interface's name, in characters.
pub(crate) const INTERFACE_CHARS_MAX: usize = 15;

/// Addresses that aren't public: of this machine, private networks, carriers, metadata services (one of Azure's has an
/// address of its own), documentation, benchmarks, and groups.
const NOT_PUBLIC: &str = "0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 168.63.129.16/32, 169.254.0.0/16, \
                          172.16.0.0/12, 192.0.0.0/24, 192.0.2.0/24, 192.88.99.0/24, 192.168.0.0/16, 198.18.0.0/15, \
                          198.51.100.0/24, 203.0.113.0/24, 224.0.0.0/3";

/// Reach of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Only containers in the same network.
    Closed,
    /// Also public IPv4 addresses.
    Public,
}

/// A table of nftables.
#[derive(Debug, Clone)]
pub(crate) struct Firewall {
    nft: PathBuf,
    table: String,
}

impl Firewall {
    /// Creates the table, in place of the one that an earlier process left behind.
    pub(crate) async fn open(nft: PathBuf, run_folder: &Path) -> Result<Self, String> {
        Self::close_recorded(&nft, run_folder).await;
        let record = record(run_folder);
        let table = format!("bench_{}", uuid::Uuid::new_v4().simple());
        std::fs::write(&record, &table).map_err(|error| format!("{}: {error}", record.display()))?;
        let firewall = Self { nft, table };
        firewall.run(&firewall.definition()).await?;
        Ok(firewall)
    }

    /// Removes the table that an earlier process recorded.
    pub(crate) async fn close_recorded(nft: &Path, run_folder: &Path) {
        if let Ok(table) = std::fs::read_to_string(record(run_folder))
            && is_table(&table)
        {
            Self { nft: nft.to_owned(), table }.close().await;
        }
    }

    /// Removes the table.
    pub(crate) async fn close(&self) {
        if let Err(error) = self.run(&format!("delete table inet {}\n", self.table)).await {
            tracing::debug!(error, "Table of nftables was not removed");
        }
    }

    /// Limits the reach of all containers behind an interface. `has_dns`: their name server is this machine.
    pub(crate) async fn limit(&self, interface: &str, reach: Reach, has_dns: bool) -> Result<(), String> {
        check_interface(interface)?;
        let mut sets = vec!["limited", "public"];
        sets.truncate(if reach == Reach::Public { 2 } else { 1 });
        if has_dns {
            sets.push("named");
        }
        let mut commands =
            format!("add element inet {} inside {{ \"{interface}\" . \"{interface}\" }}\n", self.table);
        for set in sets {
            commands += &format!("add element inet {} {set} {{ \"{interface}\" }}\n", self.table);
        }
        self.run(&commands).await
    }

    /// Removes the limits of an interface that no longer exists.
    pub(crate) async fn forget(&self, interface: &str) {
        let pair = format!("\"{interface}\" . \"{interface}\"");
        let single = format!("\"{interface}\"");
        for (set, element) in
            [("inside", &pair), ("limited", &single), ("public", &single), ("named", &single)]
        {
            // An interface isn't in every set.
            let command = format!("delete element inet {} {set} {{ {element} }}\n", self.table);
            if let Err(error) = self.run(&command).await {
                tracing::trace!(error, "Interface was not in a set");
            }
        }
    }

    fn definition(&self) -> String {
        format!(
            "table inet {} {{
               set limited {{ type ifname; }}
               set public {{ type ifname; }}
               set named {{ type ifname; }}
               set inside {{ type ifname . ifname; }}
               set not_public {{ type ipv4_addr; flags interval; elements = {{ {NOT_PUBLIC} }} }}
               chain forward {{
                 type filter hook forward priority -150; policy accept;
                 iifname . oifname @inside accept
                 oifname @limited ct state established,related accept
                 oifname @limited drop
                 iifname @public meta nfproto ipv4 ip daddr != @not_public accept
                 iifname @limited drop
               }}
               chain input {{
                 type filter hook input priority -150; policy accept;
                 iifname @named meta l4proto {{ tcp, udp }} th dport 53 fib daddr . iif type local accept
                 iifname @limited ct state established,related accept
                 iifname @limited drop
               }}
             }}\n",
            self.table
        )
    }

    async fn run(&self, commands: &str) -> Result<(), String> {
        let run = async {
            let mut command = Command::new(&self.nft);
            command.args(["-f", "-"]).env_clear().kill_on_drop(true);
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut child = command.spawn()?;
            if let Some(mut input) = child.stdin.take() {
                input.write_all(commands.as_bytes()).await?;
            }
            child.wait_with_output().await
        };
        let output = match timeout(COMMAND_TIMEOUT, run).await {
            Ok(output) => output,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        let output = output.map_err(|error| format!("nft: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        let first = message.lines().next().unwrap_or("no message");
        Err(format!("nft: {}", first.chars().take(MESSAGE_CHARS_MAX).collect::<String>()))
    }
}

fn record(run_folder: &Path) -> PathBuf {
    run_folder.join("nftables")
}

fn is_table(name: &str) -> bool {
    name.strip_prefix("bench_")
        .is_some_and(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Checks a name that becomes part of a command.
fn check_interface(name: &str) -> Result<(), String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if !name.is_empty() && name.len() <= INTERFACE_CHARS_MAX && name.bytes().all(is_allowed) {
        return Ok(());
    }
    Err(format!("`{name}` is not the name of a network's interface"))
}
