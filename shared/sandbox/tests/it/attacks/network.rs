//! Attacks on the network and on servers on this machine.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

use crate::support::{each_form, each_form_with, stdout_of};

#[tokio::test(flavor = "multi_thread")]
async fn sockets_of_the_machine() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let four = TcpListener::bind("127.0.0.1:0").unwrap();
        // A machine without IPv6 has nothing to reach there.
        let six = TcpListener::bind("[::1]:0").ok();
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        datagrams.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let name = format!("bench-sandbox-test-{}", uuid::Uuid::new_v4());
        let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let path = form.folder().join(format!("socket-{}", form.description().name));
        let visible = UnixListener::bind(&path).unwrap();
        for path in [path.as_path(), form.folder()] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
        }
        let (port, datagram_port) =
            (four.local_addr().unwrap().port(), datagrams.local_addr().unwrap().port());
        let port_six = six.as_ref().map_or(port, |six| six.local_addr().unwrap().port());
        // The form's description says if these sockets can be reached.
        let reaches_files = form.lacks("sockets in the machine's file system");
        let program = format!(
            r#"
def connect(family, address, kind=socket.SOCK_STREAM):
    def attempt():
        with socket.socket(family, kind) as s:
            s.settimeout(5)
            s.connect(address)
            s.send(b"x")
            return "sent"
    return attempt

refused("127.0.0.1", connect(socket.AF_INET, ("127.0.0.1", {port})))
refused("::1", connect(socket.AF_INET6, ("::1", {port_six})))
refused("0.0.0.0", connect(socket.AF_INET, ("0.0.0.0", {port})))
refused("abstract", connect(socket.AF_UNIX, "\0{name}"))
refused("abstract datagrams", connect(socket.AF_UNIX, "\0{name}", socket.SOCK_DGRAM))
if not {reaches_files}:
    refused("in the file system", connect(socket.AF_UNIX, {path:?}))
for address in (("192.0.2.1", 53), ("10.0.0.1", 80), ("169.254.169.254", 80)):
    refused("outside " + address[0], connect(socket.AF_INET, address))
try:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {datagram_port}))
except OSError as error:
    prevented("datagram", error)
refused("name", lambda: socket.getaddrinfo("example.com", 80))
"#,
            reaches_files = if reaches_files { "True" } else { "False" },
        );
        form.attack(
            &sandbox,
            &program,
            &["127.0.0.1", "::1", "0.0.0.0", "abstract", "outside 192.0.2.1", "name"],
        )
        .await;
        for listener in [Some(&four), six.as_ref()].into_iter().flatten() {
            listener.set_nonblocking(true).unwrap();
            assert!(listener.accept().is_err());
        }
        hidden.set_nonblocking(true).unwrap();
        assert!(hidden.accept().is_err());
        visible.set_nonblocking(true).unwrap();
        assert!(visible.accept().is_err());
        assert!(datagrams.recv(&mut [0; 8]).is_err());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rare_families() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let program = r#"
families = {"packet": 17, "vsock": 40, "crypto": 38, "bluetooth": 31, "can": 29, "tipc": 30, "key": 15, "xdp": 44, "rds": 21,
            "appletalk": 5, "ax25": 3, "x25": 9, "nfc": 39, "kcm": 41, "smc": 43}
for name, number in families.items():
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        refused(name, lambda: socket.socket(number, kind))
refused("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
def add_address():
    import fcntl
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        return fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 0))
refused("take the interface down", add_address)
"#;
        form.attack(&sandbox, program, &["packet", "vsock", "crypto", "raw", "take the interface down"]).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allowed_network_is_available_and_reported() {
    each_form_with(
        |options| options.allow_network = true,
        |form| async move {
            assert!(form.lacks("Programs can reach every address"));
            assert!(!form.has("no network"));
            let sandbox = form.sandbox().await;
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let connect = format!(
                "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port})); print(1)'"
            );
            assert_eq!(stdout_of(&sandbox, &connect).await, "1");
        },
    )
    .await;
}
