//! Python environment for code benchmarks, created once for all tests.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

const REQUIREMENTS: &str = include_str!("../../../sandbox/python-requirements.txt");

/// Names of Python programs to try. The packages need one of these versions.
const PROGRAMS: [&str; 5] = ["python3", "python3.12", "python3.11", "python3.10", "python3.9"];

static ENVIRONMENT: LazyLock<PathBuf> = LazyLock::new(environment);

/// Returns the folder with `python3`. Created with pip from the pinned list at the first use, which needs the network.
pub(crate) fn bin() -> &'static Path {
    &ENVIRONMENT
}

/// Creates an environment without packages and returns the folder with its `python3`.
pub(crate) fn make_bare_environment(place: &Path) -> PathBuf {
    run(Command::new(program()).args(["-m", "venv", "--without-pip"]).arg(place), "make an environment");
    place.join("bin")
}

fn environment() -> PathBuf {
    let name = hex::encode(Sha256::digest(REQUIREMENTS));
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-environments");
    fs::create_dir_all(&all).unwrap();
    let lock = File::create(all.join("lock")).unwrap();
    lock.lock().unwrap();
    let place = all.join(&name[..16]);
    let whole = place.join("whole");
    if !whole.exists() {
        if place.exists() {
            // Left over from a test that was killed.
            fs::remove_dir_all(&place).unwrap();
        }
        run(Command::new(program()).args(["-m", "venv"]).arg(&place), "make an environment");
        let list = all.join("requirements.txt");
        fs::write(&list, REQUIREMENTS).unwrap();
        let mut pip = Command::new(place.join("bin/python3"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        pip.args(["--only-binary", ":all:", "-r"]).arg(list);
        run(&mut pip, "install the packages of shared/sandbox/python-requirements.txt");
        fs::write(whole, "").unwrap();
    }
    place.join("bin")
}

fn program() -> &'static str {
    const FITS: &str = "import sys, venv; sys.exit(not (3, 9) <= sys.version_info[:2] <= (3, 12))";
    let fits = |name: &&str| {
        let status =
            Command::new(name).args(["-c", FITS]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    PROGRAMS.into_iter().find(fits).expect("this test needs Python 3.9 to 3.12 with its venv module")
}

fn run(command: &mut Command, what: &str) {
    let output =
        command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("could not {what}: {error}"));
    assert!(output.status.success(), "could not {what}: {}", String::from_utf8_lossy(&output.stderr));
}
