//! Brings up the loopback interface of a new network namespace.

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::Context;

/// From `linux/rtnetlink.h` and `linux/netlink.h`.
const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST_ACK: u16 = 1 | 4;
const NLMSG_ERROR: u16 = 2;
/// Index of the loopback interface, the first one of a namespace.
const LOOPBACK_INDEX: i32 = 1;
const IFF_UP: u32 = 1;

/// Brings up the loopback interface, so that programs of one sandbox can talk to each other.
pub(super) fn up() -> Result<(), String> {
    const CONTEXT: &str = "cannot bring up the loopback interface";
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // Protocol 0: routes and interfaces.
        None,
    )
    .context(CONTEXT)?;
    let mut request = Vec::with_capacity(32);
    request.extend(32_u32.to_ne_bytes());
    request.extend(RTM_NEWLINK.to_ne_bytes());
    request.extend(NLM_F_REQUEST_ACK.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([0; 4]);
    request.extend(LOOPBACK_INDEX.to_ne_bytes());
    request.extend(IFF_UP.to_ne_bytes());
    request.extend(IFF_UP.to_ne_bytes());
    rustix::net::send(&socket, &request, SendFlags::empty()).context(CONTEXT)?;

    let mut answer = [0_u8; 256];
    let (_, bytes) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty()).context(CONTEXT)?;
    let answer = &answer[..bytes.min(answer.len())];
    let kind = answer.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    let error = answer.get(16..20).map(|code| i32::from_ne_bytes([code[0], code[1], code[2], code[3]]));
    match (kind, error) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(code)) => {
            Err(format!("{CONTEXT}: {}", std::io::Error::from_raw_os_error(-code)))
        }
        _ => Err(format!("{CONTEXT}: unexpected answer from the kernel")),
    }
}
