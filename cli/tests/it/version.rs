//! `bench --version`.

use std::process::Command;

use crate::support::TestDir;

#[test]
fn the_version_names_the_commit() {
    let dir = TestDir::new();
    let version = dir.bench(&["--version"]).stdout.trim().to_owned();
    let package = format!("bench {}", env!("CARGO_PKG_VERSION"));
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let is_repository = git(&["rev-parse", "--show-prefix"]).is_some_and(|prefix| prefix == "cli/");
    let expected = match (
        option_env!("BENCH_GIT_SHA").filter(|sha| !sha.is_empty()),
        git(&["rev-parse", "--short=7", "HEAD"]),
    ) {
        (Some(sha), _) => format!("{package} ({})", sha.chars().take(7).collect::<String>()),
        (None, Some(sha)) if is_repository => {
            let date = git(&["log", "-1", "--no-show-signature", "--format=%cs"]).unwrap();
            let mark = if version.contains("-dirty") { "-dirty" } else { "" };
            format!("{package} ({sha}{mark} {date})")
        }
        // A tarball, or no git.
        _ => package,
    };
    assert_eq!(version, expected);
}
