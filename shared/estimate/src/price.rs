//! Prices of models, as far as they are known before a run.

use core::net::IpAddr;

use bench_domain::Price;

use crate::{TotalCost, UnknownPart};

/// Price of a model, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KnownPrice {
    /// The model costs nothing: it runs on this machine.
    Local,
    /// No model is asked.
    NoModel,
    /// Price in the provider's list, or given by the user.
    Listed(Price),
    /// The model runs in the user's own network, which has no price list.
    OwnServer,
    /// The provider may charge an unknown price.
    Unknown,
}

impl KnownPrice {
    /// Returns true if answers cost nothing.
    pub const fn is_free(self) -> bool {
        matches!(self, Self::Local | Self::NoModel)
    }

    /// Returns the cost of these tokens of prompts and answers; `None` for tokens that can't be estimated.
    pub fn cost(self, tokens: Option<(f64, f64)>) -> TotalCost {
        match (self, tokens) {
            (Self::Local | Self::NoModel, _) => TotalCost::default(),
            (Self::Listed(price), Some((input, output))) => TotalCost::known(
                (input * price.input_per_million_usd + output * price.output_per_million_usd) / 1_000_000.0,
            ),
            (Self::OwnServer, _) => TotalCost::unknown(UnknownPart::OwnServer),
            (Self::Listed(_), None) | (Self::Unknown, _) => TotalCost::unknown(UnknownPart::Provider),
        }
    }
}

/// Returns what is known of the price of answers from a host that has no price list. `is_local` is true if the host is named
/// as this machine knows it, not a server.
pub fn without_list(host: Option<&str>, is_local: bool) -> KnownPrice {
    match host {
        Some(host) if is_loopback(host) && is_local => KnownPrice::Local,
        Some(host) if is_loopback(host) || is_private(host) => KnownPrice::OwnServer,
        _ => KnownPrice::Unknown,
    }
}

/// Returns a host without its port.
fn without_port(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or(host),
    }
}

/// Returns true if a host, with or without a port, is this machine, so that its answers cost nothing.
fn is_loopback(host: &str) -> bool {
    let name = without_port(host);
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns true if a host, with or without a port, can't be reached over the internet: a private address, a name without a
/// domain, or a name of a local network.
fn is_private(host: &str) -> bool {
    let name = without_port(host);
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_private() || address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_unique_local() || address.is_unicast_link_local(),
        Err(_) => {
            let local = [".local", ".lan", ".internal", ".home.arpa"];
            !name.is_empty() && (!name.contains('.') || local.iter().any(|end| name.ends_with(end)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_its_address() {
        for here in ["localhost", "localhost:8000", "127.0.0.1:1234", "127.9.9.9", "[::1]", "[::1]:8000"] {
            assert!(is_loopback(here), "{here}");
        }
        for elsewhere in ["api.example.com", "10.0.0.1:8000", "localhost.example.com", "[fe80::1]:80", ""] {
            assert!(!is_loopback(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn a_servers_own_machine_is_another_one() {
        let price = |is_local| without_list(Some("127.0.0.1:1234"), is_local);
        assert_eq!((price(true), price(false)), (KnownPrice::Local, KnownPrice::OwnServer));
        assert_eq!(without_list(Some("api.example.com"), true), KnownPrice::Unknown);
        assert_eq!(without_list(None, true), KnownPrice::Unknown);
    }

    #[test]
    fn the_users_own_network_is_known_by_its_addresses() {
        let own =
            ["10.0.0.1:8000", "192.168.1.5", "172.16.0.9:1", "[fd00::1]:80", "gpu-box:8000", "gpu.local"];
        for here in own {
            assert!(is_private(here), "{here}");
        }
        for elsewhere in ["api.example.com", "8.8.8.8:80", "[2001:db8::1]:80", "local.example.com:443", ""] {
            assert!(!is_private(elsewhere), "{elsewhere}");
        }
    }
}
