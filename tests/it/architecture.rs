//! Checks the statements of `ARCHITECTURE.md` about crates: dependencies, linked crates, and what `domain` must not
//! use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Returns cargo's output, with the features of a build of one crate alone.
pub(crate) fn cargo(args: &[&str]) -> String {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(root())
        .args(args)
        .args(["--offline", "--locked"])
        .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION");
    let output = command.output().unwrap();
    assert!(output.status.success(), "cargo {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns all crates that a crate of ours links, itself included.
fn linked_crates(package: &str) -> BTreeSet<String> {
    let tree =
        cargo(&["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--format", "{lib}"]);
    tree.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// Returns our crates with their folders and their dependencies on crates of ours: always, and for tests.
fn workspace() -> BTreeMap<String, (String, BTreeSet<String>, BTreeSet<String>)> {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap();
    let is_ours = |dependency: &&Value| dependency["path"].is_string();
    let packages = metadata["packages"].as_array().unwrap().iter().map(|package| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let folder = manifest.parent().unwrap().strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        let (mut always, mut for_tests) = (BTreeSet::new(), BTreeSet::new());
        for dependency in package["dependencies"].as_array().unwrap().iter().filter(is_ours) {
            let to = if dependency["kind"] == "dev" { &mut for_tests } else { &mut always };
            to.insert(text(&dependency["name"]));
        }
        (text(&package["name"]), (folder, always, for_tests))
    });
    packages.collect()
}

#[test]
fn a_crate_links_no_more_than_its_work_needs() {
    const S3: &[&str] = &["aws_sdk_s3"];
    const HTTP_SERVER: &[&str] = &["axum", "lambda_http", "bench_web", "bench_http_server"];
    const ANY_IO: &[&str] =
        &["tokio", "reqwest", "rustls", "hyper", "axum", "parquet", "aws_types", "rusqlite"];
    // Needed only by deployed functions: the first build of the command is slow enough without them.
    const DEPLOYED: &[&str] = &[
        "aws_config",
        "aws_sdk_kms",
        "aws_sdk_secretsmanager",
        "aws_sdk_sns",
        "aws_sdk_sts",
        "lambda_runtime",
        "lambda_http",
    ];
    let claims: [(&[&str], &[&str]); 4] = [
        (&["bench-cli"], DEPLOYED),
        // Crates that don't use S3.
        (
            &[
                "bench-state",
                "bench-queue",
                "bench-inference",
                "bench-sandy",
                "bench-environments",
                "bench-sandbox",
                "bench-engine",
                "bench-signing",
                "bench-web",
                "bench-http-server",
                "bench-catalog",
                "bench-lambda",
                "bench-dead-letters",
                "bench-scheduler",
                "bench-runs",
            ],
            S3,
        ),
        // Functions driven by queues and timers.
        (
            &[
                "bench-planner",
                "bench-worker",
                "bench-turns",
                "bench-finisher",
                "bench-dead-letters",
                "bench-scheduler",
                "bench-pipeline",
                "bench-environments",
                "bench-runs",
            ],
            HTTP_SERVER,
        ),
        // Crates without I/O.
        (
            &[
                "bench-domain",
                "bench-items",
                "bench-benchmarks",
                "bench-estimate",
                "bench-signing",
                "bench-terminal-tasks",
                "bench-agents",
            ],
            ANY_IO,
        ),
    ];
    for (packages, forbidden) in claims {
        for package in packages {
            let linked = linked_crates(package);
            // A function that is only a binary has no library of its own name.
            assert!(linked.len() > 1, "{package} links {linked:?}");
            let too_much: Vec<_> = forbidden.iter().filter(|name| linked.contains(**name)).collect();
            assert!(too_much.is_empty(), "{package} links {too_much:?}");
        }
    }
}

#[test]
fn dependencies_point_down() {
    let workspace = workspace();
    let folder = |name: &str| workspace[name].0.as_str();
    /// Returns true for the parts that assemble the whole system.
    fn is_whole(folder: &str) -> bool {
        matches!(folder, "shared/stack" | "cli" | "tests")
    }
    for (name, (own, always, _)) in &workspace {
        for dependency in always {
            let other = folder(dependency);
            let allowed = match other {
                "cli" => false,
                "tests" => false,
                "shared/stack" => is_whole(own),
                other if other.starts_with("functions/") => is_whole(own),
                _ => true,
            };
            assert!(allowed, "{name} depends on {dependency}");
        }
    }
    // The lowest crate depends on none of ours, and deployed crates don't depend on the embedded services.
    assert_eq!(workspace["bench-domain"].1, BTreeSet::new());
    for (name, (own, always, _)) in &workspace {
        let may_embed = is_whole(own) || own == "tests/hello";
        assert!(may_embed || !always.contains("bench-embedded"), "{name} depends on bench-embedded");
    }
}

#[test]
fn no_crate_is_tested_by_what_depends_on_it() {
    // A crate that depends on itself enables features for its own tests.
    let workspace = workspace();
    let reaches = |from: &str, to: &str| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(name) = left.pop() {
            if name == to {
                return true;
            }
            if seen.insert(name.clone()) {
                left.extend(workspace[&name].1.iter().cloned());
            }
        }
        false
    };
    for (name, (_, _, for_tests)) in &workspace {
        let cyclic: Vec<_> =
            for_tests.iter().filter(|other| *other != name && reaches(other, name)).collect();
        // The embedded services must be below all crates that are tested on them.
        assert!(cyclic.is_empty(), "{name} is tested by {cyclic:?}, which depends on it");
    }
}

/// Returns the source files of a crate.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn what_is_pure_has_no_clock_and_no_files() {
    const NAMES: [&str; 9] = [
        "::now()",
        "SystemTime",
        "Instant",
        "std::fs",
        "std::net",
        "std::env",
        "std::process",
        "std::thread",
        "std::io::std",
    ];
    let mut looked_at = 0;
    for folder in [
        "shared/domain/src",
        "shared/items/src",
        "shared/benchmarks/src",
        "shared/estimate/src",
        "shared/terminal-tasks/src",
        "shared/agents/src",
    ] {
        for path in sources(&root().join(folder)) {
            let is_test =
                path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("test"));
            if is_test {
                continue;
            }
            looked_at += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            // Tests come last in a file, and may read test vectors.
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            for (line, name) in code.flat_map(|line| NAMES.iter().map(move |name| (line, name))) {
                assert!(!line.contains(name), "{} uses {name}: {line}", path.display());
            }
        }
    }
    assert!(looked_at > 100, "only {looked_at} files were looked at");
}
