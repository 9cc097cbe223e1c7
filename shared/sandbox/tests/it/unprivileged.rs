//! The same suite for a host that is not root.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::host::{HELPER_VARIABLE, helper, is_root};

/// `nobody`.
const USER: u32 = 65_534;

#[test]
fn everything_holds_for_a_host_without_privileges() {
    if !is_root() {
        // This run is that suite.
        assert_ne!(nix::unistd::Uid::effective().as_raw(), 0);
        return;
    }
    // Programs and folders that this user can reach.
    let folder = tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o755)).tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::copy(helper(), place("helper")).unwrap();
    std::fs::copy(std::env::current_exe().unwrap(), place("suite")).unwrap();
    std::fs::create_dir(place("tmp")).unwrap();
    std::os::unix::fs::chown(place("tmp"), Some(USER), Some(USER)).unwrap();
    let output = Command::new(place("suite"))
        .env_clear()
        .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/nonexistent"), ("LANG", "C.UTF-8")])
        .envs([("A", "1"), ("B", "2"), ("C", "3"), ("D", "4")])
        .env(HELPER_VARIABLE, place("helper"))
        .env("TMPDIR", place("tmp"))
        .uid(USER)
        .gid(USER)
        .current_dir("/")
        .output()
        .unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
