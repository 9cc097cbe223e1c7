use super::*;

const HASH: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn workspace<const N: usize>(files: [(&str, &str); N]) -> Workspace {
    Workspace::from(files)
}

fn file(text: &str) -> WorkspaceFile {
    WorkspaceFile { bytes: text.as_bytes().to_vec(), is_executable: false }
}

fn requirements(text: &str) -> Result<Vec<Dependencies>, Unfixed> {
    read(Some(&file(text)), &Workspace::default(), None)
}

fn refusal<const N: usize>(files: [(&str, &str); N]) -> String {
    read(None, &workspace(files), None).unwrap_err().to_string()
}

fn text(dependencies: &Dependencies, name: &str) -> String {
    String::from_utf8(dependencies.files.get(name).cloned().unwrap_or_default()).unwrap()
}

#[test]
fn exact_versions_of_pip_are_fixed() {
    let read_one = |text: &str| requirements(text).unwrap().pop().unwrap();
    let plain = read_one("# for the tests\npytest == 7.4.4  # pinned\npytest-asyncio==0.23.6\n\n");
    assert_eq!(text(&plain, "requirements.txt"), "pytest==7.4.4\npytest-asyncio==0.23.6\n");
    assert!(!plain.has_digests && plain.name().starts_with("pip-") && plain.name().len() == 36);
    assert_eq!(plain.digest, read_one("pytest==7.4.4\npytest-asyncio==0.23.6").digest);
    let hashed = read_one(&format!(
        "a[x]==1.0; python_version < '3.12' \\\n    --hash={HASH} \\\n    --hash {HASH}\n"
    ));
    assert!(hashed.has_digests);
    assert_eq!(
        text(&hashed, "requirements.txt"),
        format!("a[x]==1.0; python_version < '3.12' --hash={HASH} --hash={HASH}\n")
    );
    assert_eq!(requirements("\n# nothing\n").unwrap(), []);
    // The same line twice is one, and versions may depend on a condition.
    let twice = read_one("six==1.16.0\nsix == 1.16.0\n");
    assert_eq!(twice.digest, read_one("six==1.16.0\n").digest);
    let by_version = "a==1; python_version < '3.12'\na==2; python_version >= '3.12'\n";
    assert_eq!(text(&read_one(by_version), "requirements.txt"), by_version);
}

#[test]
fn requirements_that_leave_a_choice_are_refused() {
    for line in [
        "pytest",
        "pytest>=7",
        "pytest==7.*",
        "pytest~=7.4",
        "pytest==7.4.4,<8",
        "-r other.txt",
        "--index-url https://packages.example",
        "-e .",
        "a @ https://packages.example/a.whl",
        "./a.whl",
        "https://packages.example/a.whl",
        "pytest==7.4.4 --hash=md5:00",
        "pytest==7.4.4 --hash=sha256:00",
        "pytest==7.4.4 --config-settings x",
        "pytest==7.4.4; $(id)",
    ] {
        let why = requirements(line).unwrap_err().to_string();
        assert!(why.starts_with("`requirements.txt` doesn't fix its packages: `"), "{line}: {why}");
    }
    for (twice, why) in [
        ("six==1.16.0\nSix==1.15.0\n", "it has both `six==1.16.0` and `Six==1.15.0`; keep one of them"),
        (
            "a.b==1; python_version < '3.12'\na_b==2\n",
            "it has both `a.b==1; python_version < '3.12'` and `a_b==2`; keep one of them",
        ),
    ] {
        assert!(requirements(twice).unwrap_err().to_string().ends_with(why), "{twice}");
    }
    let other = HASH.replace('0', "1");
    let why = requirements(&format!("a==1 --hash={HASH}\na==1 --hash={other}\n")).unwrap_err();
    assert!(why.to_string().contains("`a==1` is there twice with different digests"), "{why}");
    let mixed = requirements(&format!("a==1 --hash={HASH}\nb==2\n")).unwrap_err().to_string();
    assert!(mixed.ends_with("some packages have a `--hash` and others don't; give all or none"), "{mixed}");
}

#[test]
fn the_file_beside_the_workspace_counts_first() {
    let within = workspace([("requirements.txt", "a==1\n"), ("sub/requirements.txt", "b==2\n")]);
    let names = |beside: Option<&WorkspaceFile>, dir| {
        let read = read(beside, &within, dir).unwrap();
        text(&read[0], "requirements.txt")
    };
    assert_eq!(names(None, None), "a==1\n");
    assert_eq!(names(None, Some("sub")), "b==2\n");
    assert_eq!(names(Some(&file("c==3")), Some("sub")), "c==3\n");
}

fn lock(packages: &str) -> String {
    format!(r#"{{"lockfileVersion": 3, "packages": {{"": {{"name": "x"}}{packages}}}}}"#)
}

#[test]
fn lock_files_of_npm_need_the_digest_of_every_package() {
    let good = lock(
        r#", "node_modules/ms": {"version": "2.1.3", "resolved": "https://registry.example/ms.tgz", "integrity": "sha512-AA"},
        "node_modules/ms/node_modules/inner": {"version": "1.0.0", "integrity": "sha512-AA"}"#,
    );
    let package = r#"{"dependencies": {"ms": "^2.1.3"}}"#;
    let files = workspace([("package.json", package), ("package-lock.json", &good)]);
    let read_all = read(None, &files, None).unwrap();
    assert_eq!(
        (read_all.len(), read_all[0].manager, text(&read_all[0], "package.json").as_str()),
        (1, PackageManager::Npm, package)
    );
    assert_eq!(
        read(None, &workspace([("package.json", "{}"), ("package-lock.json", &lock(""))]), None),
        Ok(Vec::new())
    );
    assert_eq!(read(None, &workspace([("package.json", r#"{"dependencies": {}}"#)]), None), Ok(Vec::new()));
    for (packages, part) in [
        (
            r#", "node_modules/a": {"version": "1", "resolved": "https://registry.example/a.tgz"}"#,
            "`node_modules/a` has no `integrity`",
        ),
        (
            r#", "node_modules/a": {"resolved": "git+ssh://git@host.example/a.git#0", "integrity": "sha512-AA"}"#,
            "`node_modules/a` has no `integrity`",
        ),
        (
            r#", "node_modules/a": {"resolved": "https://registry.example/a.tgz", "integrity": "sha1-AA"}"#,
            "`node_modules/a` has no `integrity`",
        ),
        (
            r#", "node_modules/a": {"resolved": "lib/a", "link": true}"#,
            "`node_modules/a` is a folder of the project",
        ),
        (r#", "lib/a": {"version": "1"}"#, "`lib/a` is a folder of the project"),
        (
            r#", "node_modules/a": {"resolved": "https://other.example/a.tgz", "inBundle": true}"#,
            "`node_modules/a` has no `integrity`",
        ),
        (
            r#", "../node_modules/a": {"version": "1", "integrity": "sha512-AA"}"#,
            "`../node_modules/a` is a folder of the project",
        ),
        (
            r#", "/x/node_modules/a": {"version": "1", "integrity": "sha512-AA"}"#,
            "`/x/node_modules/a` is a folder of the project",
        ),
        (
            r#", "node_modules/../../a": {"version": "1", "integrity": "sha512-AA"}"#,
            "`node_modules/../../a` is a folder of the project",
        ),
    ] {
        let why = refusal([("package.json", package), ("package-lock.json", &lock(packages))]);
        assert!(
            why.starts_with("`package-lock.json` doesn't fix its packages: ") && why.contains(part),
            "{why}"
        );
    }
    assert!(
        refusal([("package.json", package)])
            .contains("it has `dependencies`, and there is no `package-lock.json`")
    );
    assert!(refusal([("package-lock.json", r#"{"lockfileVersion": 1}"#)]).contains("npm 7 or later"));
    assert!(refusal([("package-lock.json", "{")]).contains("it can't be read"));
    assert!(refusal([("package-lock.json", &good)]).contains("`package.json` is missing"));
}

const INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[test]
fn lock_files_of_cargo_need_the_checksum_of_every_crate() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\nitoa = \"1\"\n";
    let own = "version = 4\n[[package]]\nname = \"x\"\nversion = \"0.1.0\"\n";
    let good = format!(
        "{own}[[package]]\nname = \"itoa\"\nversion = \"1.0.1\"\nsource = \"{INDEX}\"\nchecksum = \"00\"\n"
    );
    let files = workspace([
        ("Cargo.toml", manifest),
        ("Cargo.lock", &good),
        ("src/main.rs", ""),
        (".cargo/config.toml", "[build]\nrustc-wrapper = \"./x\"\n"),
        ("rust-toolchain.toml", ""),
    ]);
    let read_all = read(None, &files, None).unwrap();
    assert_eq!(read_all[0].manager, PackageManager::Cargo);
    let names: Vec<&String> = read_all[0].files.keys().collect();
    assert_eq!(names, ["Cargo.lock", "Cargo.toml", "src/main.rs"]);
    assert_eq!(
        read(None, &workspace([("Cargo.toml", "[dependencies]\n"), ("Cargo.lock", own)]), None),
        Ok(Vec::new())
    );
    let git = good.replace(INDEX, "git+https://host.example/itoa#00");
    assert!(
        refusal([("Cargo.toml", manifest), ("Cargo.lock", &git)])
            .contains("`itoa` isn't a crate of crates.io")
    );
    // Cargo looks at a patch that nothing uses, too.
    let patch =
        |source: &str| format!("{good}\n[[patch.unused]]\nname = \"ryu\"\nversion = \"1.0.0\"\n{source}");
    let unused = patch("source = \"git+https://host.example/ryu#00\"\n");
    let why = refusal([("Cargo.toml", manifest), ("Cargo.lock", &unused)]);
    assert!(why.contains("`ryu` is an unused patch from elsewhere"), "{why}");
    assert_eq!(
        read(None, &workspace([("Cargo.toml", manifest), ("Cargo.lock", &patch(""))]), None)
            .map(|all| all.len()),
        Ok(1)
    );
    let bare = good.replace("checksum = \"00\"\n", "");
    assert!(refusal([("Cargo.toml", manifest), ("Cargo.lock", &bare)]).contains("with a checksum"));
    for manifest in [
        manifest,
        "[dev-dependencies]\nitoa = { version = \"1\" }\n",
        "[target.'cfg(unix)'.dependencies]\nitoa = \"1\"\n",
        "[workspace.dependencies]\nitoa = { git = \"https://host.example/itoa\" }\n",
    ] {
        let why = refusal([("Cargo.toml", manifest)]);
        assert!(why.contains("it needs `itoa`, and there is no `Cargo.lock`"), "{why}");
    }
    let local = "[dependencies]\na = { path = \"a\" }\nb = { workspace = true }\n";
    assert_eq!(read(None, &workspace([("Cargo.toml", local)]), None), Ok(Vec::new()));
}

#[test]
fn modules_of_go_need_their_sums() {
    let module = "module x\n\ngo 1.24\n\nrequire example.com/a v1.0.0\nrequire (\n\texample.com/b v1.2.0 // indirect\n\texample.com/c v0.1.0\n)\n\nreplace example.com/c => ./c\n";
    let sums =
        "example.com/a v1.0.0 h1:x=\nexample.com/a v1.0.0/go.mod h1:x=\nexample.com/b v1.2.0/go.mod h1:y=\n";
    let read_all = read(None, &workspace([("go.mod", module), ("go.sum", sums)]), None).unwrap();
    assert_eq!((read_all[0].manager, text(&read_all[0], "go.sum").as_str()), (PackageManager::Go, sums));
    assert_eq!(read(None, &workspace([("go.mod", "module x\n\ngo 1.24\n")]), None), Ok(Vec::new()));
    assert_eq!(
        read(None, &workspace([("go.mod", module), ("vendor/modules.txt", "")]), None),
        Ok(Vec::new())
    );
    let why = refusal([("go.mod", module), ("go.sum", "example.com/a v1.0.0 h1:x=\n")]);
    assert!(why.contains("`go.sum` has no digest of `example.com/b v1.2.0`"), "{why}");
}

#[test]
fn modules_of_go_are_those_that_replace_others() {
    let sums = "example.com/fork v1.1.0 h1:x=\nexample.com/b v1.2.0 h1:x=\n";
    let module = |lines: &str| {
        format!("module x\n\nrequire(\n\t\"example.com/a\" v1.0.0\n\texample.com/b v1.2.0\n)\n{lines}")
    };
    let read_with = |lines: &str| {
        let module = module(lines);
        read(None, &workspace([("go.mod", &module), ("go.sum", sums)]), None).map_err(|why| why.to_string())
    };
    for lines in [
        "replace example.com/a => example.com/fork v1.1.0\n",
        "replace example.com/a v1.0.0 => example.com/fork v1.1.0\nreplace example.com/a => example.com/other v1.0.0\n",
        "replace (\n\texample.com/a => ../a // here\n)\n",
    ] {
        assert_eq!(read_with(lines).map(|all| all.len()), Ok(1), "{lines}");
    }
    for (lines, why) in [
        ("", "`go.sum` has no digest of `example.com/a v1.0.0`"),
        (
            "replace example.com/b => example.com/fork v1.2.0\nreplace example.com/a => ./a\n",
            "`go.sum` has no digest of `example.com/fork v1.2.0`",
        ),
        ("replace example.com/a v0.9.0 => ./a\n", "`go.sum` has no digest of `example.com/a v1.0.0`"),
        (
            "replace example.com/a => /etc\n",
            "it replaces `example.com/a` by `/etc`, which is no folder of the project",
        ),
    ] {
        let refused = read_with(lines).unwrap_err();
        assert!(refused.contains(why), "{lines}: {refused}");
    }
}
