//! Toolchains of programming tasks that sandboxes share with this machine, and the probe of each language.
//!
//! Python, Node and g++ are the machine's own, which every sandbox contains. Go and Rust are folders that
//! `bench sandy setup --toolchains` leaves in the data directory.

use std::path::{Path, PathBuf};

use bench_code_tasks::Language;
use bench_sandbox::isolation::SharedFolder;

/// Folder of the toolchains, in the data directory.
const FOLDER: &str = "toolchains";
/// Path of the toolchains inside sandboxes.
const INSIDE: &str = "/opt/toolchains";
/// Folder of the programs of each toolchain.
const PROGRAMS: &str = "bin";

/// Name of the toolchain of Go, and of the link to its folder.
pub const GO: &str = "go";
/// Name of the toolchain of Rust, and of the link to its folder.
pub const RUST: &str = "rust";
/// Folder in the toolchain of Go with the compiled standard library, in the form of a build cache.
pub const GO_CACHE: &str = "std-cache";

/// Returns the folder of all toolchains of a data directory.
#[must_use]
pub fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join(FOLDER)
}

/// Returns the path of the link to the current toolchain of this name.
#[must_use]
pub fn current_link(data_dir: &Path, name: &str) -> PathBuf {
    folder(data_dir).join(name)
}

/// Toolchain that sandboxes share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// Its folder on this machine and inside sandboxes.
    pub folder: SharedFolder,
    /// Folder of its programs inside sandboxes.
    pub programs: PathBuf,
}

/// Returns the toolchains of a data directory that are there.
#[must_use]
pub fn current(data_dir: &Path) -> Vec<Toolchain> {
    [GO, RUST]
        .into_iter()
        .filter_map(|name| {
            let host = current_link(data_dir, name).canonicalize().ok()?;
            host.join(PROGRAMS).is_dir().then(|| {
                let inside = Path::new(INSIDE).join(name);
                Toolchain { programs: inside.join(PROGRAMS), folder: SharedFolder { host, inside } }
            })
        })
        .collect()
}

/// Returns a shell command that compiles and runs a small program of a language, and prints `ok` if that works.
#[must_use]
pub fn probe(language: Language) -> &'static str {
    match language {
        Language::Python => "python3 -I -c 'print(\"ok\")'",
        Language::JavaScript | Language::Html => {
            "printf 'import fs from \"node:fs\"; console.log(fs.existsSync(\"probe.mjs\") ? \"ok\" : \"no\")' > probe.mjs && node probe.mjs"
        }
        Language::Go => {
            "mkdir go-probe && cd go-probe && export GOCACHE=$PWD/cache HOME=$PWD GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0 && \
             printf 'module probe\\n\\ngo 1.24\\n' > go.mod && printf 'package main\\n\\nfunc main() { println(\"ok\") }\\n' > main.go && \
             go build -o probe . && ./probe 2>&1"
        }
        Language::Rust => {
            "printf 'fn main() { println!(\"ok\"); }' > probe.rs && rustc --edition 2024 -o rust-probe probe.rs && \
             cp rust-probe rust-copy && ( [ -x rust-probe ] && ./rust-probe || /lib64/ld-linux-x86-64.so.2 ./rust-probe )"
        }
        Language::Cpp => {
            "printf '#include <iostream>\\nint main() { std::cout << \"ok\\\\n\"; }' > probe.cpp && g++ -std=c++20 -o cpp-probe probe.cpp && \
             ( [ -x cpp-probe ] && ./cpp-probe || /lib64/ld-linux-x86-64.so.2 ./cpp-probe )"
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn toolchains_are_shared_if_they_are_there() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().canonicalize().unwrap();
        assert_eq!(current(&data), []);
        fs::create_dir_all(folder(&data).join("go-1/bin")).unwrap();
        symlink("go-1", current_link(&data, GO)).unwrap();
        symlink("/no/such/rust", current_link(&data, RUST)).unwrap();
        let host = folder(&data).join("go-1");
        let go = Toolchain {
            folder: SharedFolder { host, inside: "/opt/toolchains/go".into() },
            programs: "/opt/toolchains/go/bin".into(),
        };
        assert_eq!(current(&data), [go]);
    }
}
