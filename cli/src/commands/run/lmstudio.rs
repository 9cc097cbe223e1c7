//! Loads the models of a run into LM Studio before it, and unloads them after it, by LM Studio's command `lms`.
//!
//! Only models that aren't loaded yet are loaded, and only these are unloaded. Without the command, LM Studio loads models itself
//! when they are asked.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use bench_inference::providers::LMSTUDIO;
use bench_inference::{ModelSource, http_client_for};
use reqwest::Url;
use serde::Deserialize;
use tokio::process::Command;

use super::order::Plan;
use crate::exit::{Problem, last_line};
use crate::{format, output};

/// Time limits of the program's commands, and of the list of models.
const LOAD_TIMEOUT: Duration = Duration::from_secs(600);
const UNLOAD_TIMEOUT: Duration = Duration::from_secs(30);
const LIST_TIMEOUT: Duration = Duration::from_secs(3);
/// Name of the program, and its place in the user's home if it isn't on `PATH`.
const PROGRAM: &str = "lms";
const IN_HOME: &str = ".lmstudio/bin/lms";
/// End of the base URL of chat completions, which the native API doesn't have.
const VERSION: &str = "/v1";
const ERROR_CHARS_MAX: usize = 300;

/// Models that were loaded for a run.
#[derive(Debug)]
pub(super) struct LoadedModels {
    program: PathBuf,
    address: Url,
    models: Vec<String>,
}

/// Answer of LM Studio's native list of models.
#[derive(Debug, Deserialize)]
struct NativeList {
    data: Vec<NativeModel>,
}

#[derive(Debug, Deserialize)]
struct NativeModel {
    id: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    max_context_length: Option<u64>,
    #[serde(default)]
    loaded_context_length: Option<u64>,
}

impl LoadedModels {
    /// Loads the models of LM Studio that a run on this machine asks. Returns `None` if there are none, LM Studio is on another machine, or its
    /// command isn't installed.
    ///
    /// # Errors
    /// If a model can't be loaded. Those that were loaded before it are unloaded.
    pub(super) async fn load(plan: &Plan) -> anyhow::Result<Option<Self>> {
        let is_ours = |source: ModelSource| matches!(source, ModelSource::Provider(provider) if provider.name == LMSTUDIO.name);
        let models = plan.models.iter().filter(|model| model.source.is_some_and(is_ours));
        let models: BTreeSet<&str> = models.map(|model| model.slug.as_str()).collect();
        if models.is_empty() {
            return Ok(None);
        }
        let Some(address) = address(plan.base_url.as_deref()) else { return Ok(None) };
        let Some(program) = program() else { return Ok(None) };
        let listed = listed(&address).await;
        let mut loaded = Self { program, address, models: Vec::new() };
        for model in models {
            let known = listed.iter().flatten().find(|known| known.id == model);
            if let Some(tokens) =
                known.and_then(|known| known.loaded_context_length.or(known.max_context_length))
            {
                output::note(&format!("lmstudio/{model}: context of {} tokens", format::count(tokens)));
            }
            if known.is_some_and(|known| known.state == "loaded") {
                continue;
            }
            output::note(&format!("Loading lmstudio/{model}"));
            match loaded.command(&["load", model, "--exact", "-y"], LOAD_TIMEOUT).await {
                Ok(()) => loaded.models.push(model.to_owned()),
                Err(why) => {
                    loaded.unload().await;
                    return Err(Problem::failure(format!("LM Studio could not load `{model}`: {why}"))
                        .hint("`lms ls` lists the models that are installed")
                        .into());
                }
            }
        }
        Ok(Some(loaded))
    }

    /// Unloads the models. One that can't be unloaded is reported and stays.
    pub(super) async fn unload(self) {
        for model in &self.models {
            if let Err(why) = self.command(&["unload", model], UNLOAD_TIMEOUT).await {
                output::warn(&format!("LM Studio could not unload `{model}`: {why}"));
            }
        }
    }

    /// Runs LM Studio's command for this address. Returns the reason if it fails.
    async fn command(&self, words: &[&str], timeout: Duration) -> Result<(), String> {
        let host = self.address.host_str().unwrap_or_default();
        let port = self.address.port_or_known_default().unwrap_or_default().to_string();
        let mut command = Command::new(&self.program);
        command.args(words).args(["--host", host, "--port", &port]);
        command.stdin(Stdio::null()).kill_on_drop(true);
        match tokio::time::timeout(timeout, command.output()).await {
            Err(_) => Err(format!("it took longer than {} s", timeout.as_secs())),
            Ok(Err(error)) => Err(error.to_string()),
            Ok(Ok(done)) if done.status.success() => Ok(()),
            Ok(Ok(done)) => {
                let text = String::from_utf8_lossy(&done.stderr).into_owned()
                    + &String::from_utf8_lossy(&done.stdout);
                let line = last_line(&text).unwrap_or("it printed no reason");
                Err(line.chars().filter(|c| !c.is_control()).take(ERROR_CHARS_MAX).collect())
            }
        }
    }
}

/// Returns the address of LM Studio if it is on this machine.
fn address(given: Option<&str>) -> Option<Url> {
    let variable = env::var(LMSTUDIO.base_url_variable).ok().filter(|text| !text.trim().is_empty());
    let text = given.map(str::to_owned).or(variable);
    let url = Url::parse(text.as_deref().or(LMSTUDIO.default_base_url)?).ok()?;
    matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]")).then_some(url)
}

/// Returns the path of LM Studio's command, if it is installed.
fn program() -> Option<PathBuf> {
    let on_path = env::var_os("PATH");
    let folders = on_path.iter().flat_map(env::split_paths).map(|folder| folder.join(PROGRAM));
    let home = env::var_os("HOME").map(|home| Path::new(&home).join(IN_HOME));
    folders.chain(home).find(|path| path.is_file())
}

/// Returns the models that LM Studio knows; `None` if its native list can't be read.
async fn listed(address: &Url) -> Option<Vec<NativeModel>> {
    let base = address.as_str().trim_end_matches('/').trim_end_matches(VERSION);
    let client = http_client_for(address, |builder| builder.timeout(LIST_TIMEOUT)).ok()?;
    let answer = client.get(format!("{base}/api/v0/models")).send().await.ok()?;
    let list: NativeList = answer.error_for_status().ok()?.json().await.ok()?;
    Some(list.data)
}
