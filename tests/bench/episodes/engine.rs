//! Episodes on the machine's container engine, compared with the engine alone.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bench_domain::Timestamp;
use serde_json::Value;

use bench_tests::scripted_host::task;

/// Episodes for each processor.
const EPISODES_PER_PROCESSOR: usize = 8;
/// Static programs for the image, the first of which that exists is used.
const BUSYBOX: [&str; 2] = ["/bin/busybox", "/usr/bin/busybox"];
/// Time limit of a command.
const COMMAND_MAX: Duration = Duration::from_secs(300);
/// Time that a command has to end after SIGINT.
const GRACE: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Measures the oracle's episodes on the engine, or prints why there is none.
pub(crate) async fn measure(bench: &Path) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let folder = dir.path().join("task");
    let image = match build(&folder).await {
        Ok(image) => image,
        Err(reason) => {
            println!("\nepisodes on a container engine were left out: {reason:#}");
            return Ok(());
        }
    };
    let processors = std::thread::available_parallelism()?.get();
    let count = processors * EPISODES_PER_PROCESSOR;
    let work = Work { bench, dir: dir.path(), folder: &folder, processors };
    // Builds the image, which later episodes find.
    let first = work.episodes(1).await?;
    let _built = Images(first.images);
    let seconds = work.episodes(count).await?.seconds;
    let alone = run_containers(&image, count, processors).await?;
    let per_minute = |seconds: f64| count as f64 / seconds * 60.0;
    println!(
        "\n{count} episodes of the oracle on the container engine, {processors} at a time: {:.1} per minute\n\
         {count} times `docker run` of the same image, {processors} at a time: {:.1} per minute, {:.0} % of the episodes' time",
        per_minute(seconds),
        per_minute(alone),
        alone / seconds * 100.0
    );
    Ok(())
}

/// Writes a task, and builds its image.
async fn build(folder: &Path) -> anyhow::Result<Images> {
    let busybox = BUSYBOX.map(PathBuf::from).into_iter().find(|path| path.exists());
    let busybox = busybox.context("there is no /bin/busybox (Debian: busybox-static)")?;
    docker(&["version"]).await.context("`docker version` failed")?;
    task::write(folder, &busybox)?;
    let name = format!("bench-episodes-{}", std::process::id());
    let context = folder.join("environment").display().to_string();
    docker(&["build", "--tag", &name, &context]).await.context("no image can be built")?;
    Ok(Images(vec![name]))
}

/// Names of images, which are removed when this is dropped.
struct Images(Vec<String>);

impl Drop for Images {
    fn drop(&mut self) {
        for name in &self.0 {
            // An image that can't be removed is left to its owner.
            let _ = docker_command(&["image", "rm", "--force", name]).output();
        }
    }
}

struct Work<'a> {
    bench: &'a Path,
    dir: &'a Path,
    /// The task.
    folder: &'a Path,
    processors: usize,
}

struct Episodes {
    /// From the start of the run to its end.
    seconds: f64,
    /// Images that were built for the task.
    images: Vec<String>,
}

impl Work<'_> {
    /// Runs the oracle this number of times, with one sandbox per processor.
    async fn episodes(&self, count: usize) -> anyhow::Result<Episodes> {
        let data = self.dir.join("data");
        let mut command = Command::new(self.bench);
        command
            .args(["run", "--json", "--agent", "oracle", "--samples", &count.to_string()])
            .args(["--concurrency", &self.processors.to_string()])
            .args([Path::new("--task"), self.folder, Path::new("--data-dir"), &data])
            .args([Path::new("--out"), &self.dir.join("out")])
            .env("BENCH_SANDBOX_SLOTS", self.processors.to_string())
            .env_remove("SANDY_BASE_URL")
            .current_dir(self.dir);
        let output = finish(command, self.dir).await.context("`bench run` failed")?;
        let runs: Value = serde_json::from_str(&output).context("the run printed no JSON")?;
        let run = runs.get(0).context("the run printed no run")?;
        let time = |name: &str| -> anyhow::Result<Timestamp> {
            let text = run[name].as_str().with_context(|| format!("the run has no `{name}`"))?;
            Ok(text.parse()?)
        };
        let seconds = time("completed_at")?.since(time("started_at")?).as_secs_f64();
        let id = run["id"].as_str().context("the run has no id")?;
        let mut command = Command::new(self.bench);
        command.args(["runs", id, "--items", "--json", "--data-dir"]).arg(&data).current_dir(self.dir);
        let items: Vec<Value> = serde_json::from_str(&finish(command, self.dir).await?)?;
        let correct = items.iter().filter(|item| item["outcome"] == "correct").count();
        ensure!(
            correct == count,
            "{correct} of {count} episodes on the engine are correct: {:?}",
            items.first()
        );
        let hash = items.first().and_then(|item| item["source_id"].as_str()?.split_once('@'));
        let (_, hash) = hash.context("the task has no hash")?;
        let list = docker(&["image", "ls", "--format", "{{.Repository}}:{{.Tag}}"]).await?;
        let built = format!("bench__{hash}");
        let images = list.lines().filter(|name| name.contains(&built)).map(str::to_owned).collect();
        Ok(Episodes { seconds, images })
    }
}

/// Runs this number of containers of an image, some at a time. Returns the seconds.
async fn run_containers(image: &Images, count: usize, processors: usize) -> anyhow::Result<f64> {
    let name = image.0.first().context("there is no image")?;
    let begun = Instant::now();
    let lanes = (0..processors).map(|_| async {
        for _ in 0..count / processors {
            docker(&["run", "--rm", "--network", "none", name, "true"]).await?;
        }
        anyhow::Ok(())
    });
    futures_util::future::try_join_all(lanes).await?;
    Ok(begun.elapsed().as_secs_f64())
}

fn docker_command(arguments: &[&str]) -> Command {
    let mut command = Command::new("docker");
    // The command may have no BuildKit.
    command.args(arguments).env("DOCKER_BUILDKIT", "0").stdin(Stdio::null());
    command
}

/// Runs a docker command and returns its output.
async fn docker(arguments: &[&str]) -> anyhow::Result<String> {
    finish(docker_command(arguments), &std::env::temp_dir()).await
}

/// Waits for a command and returns its output. The command's folder for output is `dir`.
async fn finish(mut command: Command, dir: &Path) -> anyhow::Result<String> {
    let (out, err) = (tempfile::NamedTempFile::new_in(dir)?, tempfile::NamedTempFile::new_in(dir)?);
    // In a group of its own, so that Ctrl-C doesn't end it twice, which would leave containers.
    let child = command.process_group(0).stdout(out.reopen()?).stderr(err.reopen()?).spawn()?;
    let mut running = Running(child);
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = running.0.try_wait()? {
            break status;
        }
        ensure!(begun.elapsed() < COMMAND_MAX, "it took longer than {} s", COMMAND_MAX.as_secs());
        tokio::time::sleep(POLL_INTERVAL).await;
    };
    let errors = fs::read_to_string(err.path()).unwrap_or_default();
    if !status.success() {
        bail!("{}", errors.lines().next_back().unwrap_or("it printed no reason"));
    }
    Ok(fs::read_to_string(out.path())?)
}

/// A child process. If it is still running when this is dropped, it is asked to end, so that it removes its containers.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(None)) {
            return;
        }
        let _ = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        let begun = Instant::now();
        while begun.elapsed() < GRACE && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(POLL_INTERVAL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
