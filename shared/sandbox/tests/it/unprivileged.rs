//! Runs this test suite again as an unprivileged user, for a host that isn't root.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::support::{HELPER_VARIABLE, copy_program, helper, is_root};

/// Uid of `nobody`.
const USER: u32 = 65_534;

#[test]
fn all_tests_pass_for_an_unprivileged_host() {
    if !is_root() {
        // This is the unprivileged run.
        assert_ne!(nix::unistd::Uid::effective().as_raw(), 0);
        return;
    }
    // Programs and folders that the unprivileged user can access.
    let folder = tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o755)).tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    copy_program(&helper(), &place("helper"));
    copy_program(&std::env::current_exe().unwrap(), &place("suite"));
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
