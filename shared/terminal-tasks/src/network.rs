//! Network access of a task, and the hosts of an allowlist.

use core::net::{IpAddr, Ipv6Addr};
use std::fmt;

/// Network access of an environment or a phase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NetworkPolicy {
    /// Public addresses.
    #[default]
    Public,
    /// No network.
    NoNetwork,
    /// These hosts only.
    Allowlist(Vec<AllowedHost>),
}

/// Entry of an allowlist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedHost {
    /// A host name, in lower case.
    Name(String),
    /// All names below this one, as written after `*.`.
    Suffix(String),
    /// An address.
    Address(IpAddr),
    /// A range of addresses.
    Range {
        /// First address; the bits after the prefix are 0.
        network: IpAddr,
        /// Number of bits that are equal in the range.
        prefix: u8,
    },
}

impl AllowedHost {
    /// Parses an entry. Returns `None` for anything else, such as URLs, ports and paths.
    pub fn parse(entry: &str) -> Option<Self> {
        let entry = entry.trim().to_lowercase();
        let entry = entry.trim_end_matches('.');
        if let Some((network, prefix)) = entry.split_once('/') {
            let network: IpAddr = network.parse().ok()?;
            let is_plain = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
            let prefix: u8 = prefix.parse().ok().filter(|_| is_plain)?;
            return has_clear_host_bits(network, prefix).then_some(Self::Range { network, prefix });
        }
        if let Ok(address) = entry.parse() {
            return Some(Self::Address(address));
        }
        let (name, is_suffix) = match entry.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (entry, false),
        };
        let is_name = name.len() <= 253 && name.split('.').all(is_label) && name.parse::<IpAddr>().is_err();
        let host = if is_suffix { Self::Suffix } else { Self::Name };
        is_name.then(|| host(name.to_owned()))
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.pad(name),
            Self::Suffix(name) => write!(f, "*.{name}"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Range { network, prefix } => write!(f, "{network}/{prefix}"),
        }
    }
}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    matches!(bytes.len(), 1..=63)
        && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn has_clear_host_bits(network: IpAddr, prefix: u8) -> bool {
    let (bits, length) = match network {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(Ipv6Addr::from(address.octets())), 128),
    };
    prefix <= length && bits.checked_shl(u32::from(prefix)).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_hosts_addresses_and_ranges() {
        for (entry, expected) in [
            ("Example.COM.", "example.com"),
            (" pypi.org ", "pypi.org"),
            ("*.example.com", "*.example.com"),
            ("192.0.2.1", "192.0.2.1"),
            ("2001:DB8::1", "2001:db8::1"),
            ("192.0.2.0/24", "192.0.2.0/24"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(AllowedHost::parse(entry).unwrap().to_string(), expected, "{entry}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for entry in [
            "",
            " ",
            "https://example.com",
            "example.com:443",
            "example.com/path",
            "*",
            "*.",
            "a.*.com",
            "*.1.2.3.4",
            "192.0.2.1/24",
            "192.0.2.0/33",
            "192.0.2.0/+24",
            "[::1]",
            "fe80::1%eth0",
            "-a.com",
            "a_b.com",
            "a..b",
            "ä.com",
        ] {
            assert_eq!(AllowedHost::parse(entry), None, "{entry}");
        }
    }
}
