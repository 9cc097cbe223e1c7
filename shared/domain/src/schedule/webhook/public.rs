//! Public IP addresses.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns true if the address is public on the internet: neither loopback, private, link-local, shared, multicast,
/// reserved nor unspecified, and not an IPv6 address that embeds one of them.
pub fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        // This network; reserved and broadcast.
        (0 | 240..=255, _, _) => true,
        // Carrier-grade NAT.
        (100, 64..=127, _) => true,
        // Protocol assignments; network benchmarks; 6to4 relays.
        (192, 0, 0) | (198, 18 | 19, _) | (192, 88, 99) => true,
        _ => false,
    };
    !(special
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // ::ffff:a.b.c.d, and 64:ff9b::a.b.c.d of NAT64.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        // 6to4.
        [0x2002, high, low, ..] => embedded(high, low),
        // Protocol assignments, including Teredo and benchmarking; documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // All other public addresses begin with the bits 001.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}
