//! `bench agents`.

mod find;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::Context;
use bench_domain::Agent;
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use self::find::find;
use super::export::{check_out, print_path};
use super::{Api, ApiArgs, check_not_there, with_api};
use crate::agent_archive::{self, AgentArchive};
use crate::client::{Client, StoredAgent};
use crate::exit::{ExitStatus, Problem};
use crate::page::Page;
use crate::table::{Column, Table};
use crate::{format, output};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench agents
      lists the agents of this version and the uploaded ones
  bench agents check ./my-agent
  bench agents upload ./my-agent --server https://bench.example
  bench agents download as-told@0.1 --out as-told.zip
  bench agents remove as-told@0.1

An agent of your own is a folder with agent.toml, which names a run command and
an optional install script. `bench run --task PATH --agent-folder DIR` uploads
and runs one in one step. docs/terminal-tasks.md explains the format.";

const LIST_EXAMPLE: &str = "\
Example:
  bench agents list --json";
const CHECK_EXAMPLE: &str = "\
Example:
  bench agents check ./my-agent
      reads the files as an upload would, and stores nothing";
const UPLOAD_EXAMPLES: &str = "\
Examples:
  bench agents upload ./my-agent
  bench agents upload my-agent.zip --server https://bench.example";
const SHOW_EXAMPLES: &str = "\
Examples:
  bench agents show as-told
  bench agents show 3f2b8c1e7d4a --json";
const DOWNLOAD_EXAMPLES: &str = "\
Examples:
  bench agents download as-told@0.1
      into the current folder, as agent-HASH.zip
  bench agents download 3f2b8c1e7d4a --out as-told.zip";
const REMOVE_EXAMPLE: &str = "\
Example:
  bench agents remove as-told@0.1
      runs that are over keep their results";

/// Number of digits of a content hash to show.
const DIGITS: usize = 12;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: Option<AgentsCommand>,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// List the agents of this version and the uploaded ones; the default
    #[command(after_help = LIST_EXAMPLE)]
    List(ApiArgs),
    /// Check an agent as an upload would, without storing it
    #[command(after_help = CHECK_EXAMPLE)]
    Check(CheckArgs),
    /// Check an agent and store it, for orders by its content hash
    #[command(after_help = UPLOAD_EXAMPLES)]
    Upload(UploadArgs),
    /// Show an uploaded agent
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Write the archive of an uploaded agent to a file
    #[command(after_help = DOWNLOAD_EXAMPLES)]
    Download(DownloadArgs),
    /// Remove uploaded agents
    #[command(after_help = REMOVE_EXAMPLE)]
    Remove(RemoveArgs),
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// Agent: a folder with agent.toml, or a ZIP archive of one
    #[arg(value_name = "DIR")]
    path: PathBuf,
    /// Print JSON
    #[arg(long, help_heading = None)]
    json: bool,
}

#[derive(Debug, Args)]
struct UploadArgs {
    /// Agent: a folder with agent.toml, or a ZIP archive of one
    #[arg(value_name = "DIR")]
    path: PathBuf,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// Agent: its name, NAME@VERSION, or the first digits of its content hash, if that means one agent
    #[arg(value_name = "AGENT")]
    agent: String,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Args)]
struct DownloadArgs {
    /// Agent: its name, NAME@VERSION, or the first digits of its content hash, if that means one agent
    #[arg(value_name = "AGENT")]
    agent: String,
    /// File to write, an existing folder for it, or `-` for standard output [default: the current folder]
    #[arg(long, value_name = "FILE|DIR|-")]
    out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Args)]
struct RemoveArgs {
    /// Agent: its name, NAME@VERSION, or the first digits of its content hash, if that means one agent
    #[arg(required = true, value_name = "AGENT")]
    agents: Vec<String>,
    #[command(flatten)]
    api: ApiArgs,
}

/// An agent of the server's version.
#[derive(Debug, Deserialize)]
struct KnownAgent {
    /// Name in orders.
    id: String,
    /// Name for people.
    name: String,
}

pub(crate) async fn run(args: AgentsArgs) -> anyhow::Result<ExitStatus> {
    match args.command.unwrap_or(AgentsCommand::List(args.api)) {
        AgentsCommand::List(args) => with_api(&args, async |api| list(api, args.json).await).await,
        AgentsCommand::Check(args) => {
            check(&agent_archive::read(&args.path)?, args.json).map(|()| ExitStatus::Success)
        }
        AgentsCommand::Upload(args) => {
            let archive = agent_archive::read(&args.path)?;
            with_api(&args.api, async |api| upload(api, &archive, args.api.json).await).await
        }
        AgentsCommand::Show(args) => with_api(&args.api, async |api| show(api, &args).await).await,
        AgentsCommand::Download(args) => {
            let out = args.out.clone().unwrap_or_else(|| PathBuf::from("."));
            check_target(&out, &args)?;
            with_api(&args.api, async |api| download(api, &args, &out).await).await
        }
        AgentsCommand::Remove(args) => with_api(&args.api, async |api| remove(api, &args).await).await,
    }
}

/// Returns the uploaded agents as the server describes them, newest first.
async fn stored(client: &Client) -> anyhow::Result<Vec<Value>> {
    client.get("/api/agents/custom").await
}

fn parse<T: serde::de::DeserializeOwned>(agents: &[Value]) -> anyhow::Result<Vec<T>> {
    let agents = agents.iter().map(|agent| serde_json::from_value(agent.clone()));
    agents.collect::<Result<_, _>>().context("the server's list of agents is not valid")
}

async fn list(api: &Api, json: bool) -> anyhow::Result<()> {
    let known: Vec<Value> = api.client.get("/api/agents").await?;
    let custom = stored(&api.client).await?;
    if json {
        return output::json(&json!({ "agents": known, "custom": custom }));
    }
    output::print_table(&table(&parse(&known)?, &parse(&custom)?))?;
    if custom.is_empty() {
        output::note("There are no uploaded agents; `bench agents upload DIR` stores one");
    }
    Ok(())
}

fn table(known: &[KnownAgent], custom: &[StoredAgent]) -> Table {
    let mut table = Table::new([
        Column::path("AGENT"),
        Column::words("WHAT IT IS").drop_as(2),
        Column::words("NEEDS"),
        Column::text("ID"),
        Column::words("UPLOADED (UTC)").drop_as(1),
    ]);
    for KnownAgent { id, name } in known {
        let needs = match id.parse::<Agent>() {
            Ok(agent) if agent.asks_model() => "a model",
            Ok(Agent::Custom) => "an uploaded agent",
            _ => "–",
        };
        table.row([id.clone(), name.clone(), needs.to_owned(), "–".to_owned(), "–".to_owned()]);
    }
    for agent in custom {
        table.row([
            agent.model.clone(),
            size(agent.files, agent.expanded_bytes),
            needs(&agent.required_variables).unwrap_or_else(|| "–".to_owned()),
            short(&agent.id).to_owned(),
            format::minute(agent.created_at),
        ]);
    }
    table
}

/// Names the variables that an order has to give; `None` if there are none.
fn needs(variables: &[String]) -> Option<String> {
    let options: Vec<String> = variables.iter().map(|name| format!("env.{name}")).collect();
    (!options.is_empty()).then(|| options.join(", "))
}

fn size(files: u64, bytes: u64) -> String {
    format!("{}, {}", format::plural(files, "file"), format::bytes(bytes))
}

fn short(hash: &str) -> &str {
    hash.get(..DIGITS).unwrap_or(hash)
}

fn check(archive: &AgentArchive, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&json!({
            "id": archive.content_hash, "name": archive.name, "version": archive.version, "model": archive.model,
            "required_variables": archive.required_variables, "files": archive.files,
            "expanded_bytes": archive.expanded_bytes, "archive_bytes": archive.bytes.len(),
        }));
    }
    let size = size(archive.files, archive.expanded_bytes);
    output::print(&format!("{}: its files are accepted; {size}", archive.model))?;
    note_variables(&archive.required_variables);
    Ok(())
}

fn note_variables(variables: &[String]) {
    if let Some(first) = variables.first() {
        let names: Vec<String> = variables.iter().map(|name| format!("`{name}`")).collect();
        let word = if variables.len() == 1 { "variable" } else { "variables" };
        output::note(&format!(
            "Orders of this agent need the {word} {}: `--option env.{first}=VALUE`",
            names.join(", ")
        ));
    }
}

async fn upload(api: &Api, archive: &AgentArchive, json: bool) -> anyhow::Result<()> {
    let earlier = if json { Vec::new() } else { stored(&api.client).await? };
    let added = api.client.add_agent(archive).await.context("the agent was not accepted")?;
    if json {
        return output::json(&added);
    }
    let done = match earlier.iter().any(|agent| agent["id"] == archive.content_hash.as_str()) {
        true => "Known already, with the same files:",
        false => "Uploaded",
    };
    output::print(&format!("{done} {}: {}", archive.model, archive.content_hash))?;
    note_variables(&archive.required_variables);
    Ok(())
}

async fn show(api: &Api, args: &ShowArgs) -> anyhow::Result<()> {
    let all = stored(&api.client).await?;
    let agents: Vec<StoredAgent> = parse(&all)?;
    let found = find(&args.agent, &agents)?;
    if args.api.json {
        return output::json(&all.iter().find(|agent| agent["id"] == found.id.as_str()));
    }
    output::print_page(&detail(found))
}

/// Describes an uploaded agent, one line per field.
fn detail(agent: &StoredAgent) -> Page {
    let mut page = Page::new(2, 11);
    page.heading(agent.title());
    page.field("id:", &agent.id);
    page.field("in runs:", &agent.model);
    if let Some(needs) = needs(&agent.required_variables) {
        page.field("needs:", needs);
    }
    page.field("files:", size(agent.files, agent.expanded_bytes));
    page.field("archive:", format::bytes(agent.archive_bytes));
    page.field("uploaded:", format!("{} UTC", format::minute(agent.created_at)));
    let variables: String =
        agent.required_variables.iter().map(|name| format!(" --option env.{name}=VALUE")).collect();
    page.field("order:", format!("--agent custom --agent-option content_hash={}{variables}", agent.id));
    page
}

/// Rejects a file that can't be written.
fn check_target(out: &Path, args: &DownloadArgs) -> anyhow::Result<()> {
    if out != Path::new("-") {
        check_out(out)?;
        return check_not_there("--out", out, args.force);
    }
    if args.api.json {
        return Err(Problem::usage("--json can't be given with --out -: standard output has the file alone")
            .hint("leave --json out")
            .into());
    }
    match std::io::stdout().is_terminal() {
        true => Err(Problem::usage("an archive is not text, so it is not written to a terminal")
            .hint("`bench agents download AGENT --out agent.zip` writes a file")
            .into()),
        false => Ok(()),
    }
}

async fn download(api: &Api, args: &DownloadArgs, out: &Path) -> anyhow::Result<()> {
    let agents: Vec<StoredAgent> = parse(&stored(&api.client).await?)?;
    let id = &find(&args.agent, &agents)?.id;
    if out.is_dir() {
        // The name that the server gives it.
        let name = format!("agent-{}.zip", id.chars().take(12).collect::<String>());
        check_not_there("--out", &out.join(name), args.force)?;
    }
    let path = format!("/api/agents/custom/{id}/archive");
    if out == Path::new("-") {
        return api.client.print_file(&path).await;
    }
    let written = api.client.download(&path, out).await?;
    print_path(written.strip_prefix(".").unwrap_or(&written), args.api.json)
}

async fn remove(api: &Api, args: &RemoveArgs) -> anyhow::Result<()> {
    let agents: Vec<StoredAgent> = parse(&stored(&api.client).await?)?;
    // All are found before any is removed.
    let mut found: Vec<&StoredAgent> = Vec::new();
    for given in &args.agents {
        let agent = find(given, &agents)?;
        if !found.iter().any(|other| other.id == agent.id) {
            found.push(agent);
        }
    }
    let mut removed = Vec::new();
    for agent in found {
        let gone: anyhow::Result<Value> =
            api.client.delete(&format!("/api/agents/custom/{}", agent.id)).await;
        gone.with_context(|| agent.model.clone())?;
        if !args.api.json {
            output::print(&format!("Removed {} ({})", agent.model, short(&agent.id)))?;
        }
        removed.push(json!({ "id": agent.id, "status": "removed" }));
    }
    if args.api.json { output::json(&removed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screen_of_agents() {
        let known = Agent::ALL
            .map(|agent| KnownAgent { id: agent.as_str().to_owned(), name: agent.title().to_owned() });
        let agent = |name: &str, version: Option<&str>, variables: &[&str]| StoredAgent {
            id: "0123456789abcdef".repeat(4),
            name: name.to_owned(),
            version: version.map(str::to_owned),
            model: format!("custom/{name}{}", version.map(|at| format!("@{at}")).unwrap_or_default()),
            required_variables: variables.iter().map(|name| (*name).to_owned()).collect(),
            files: 3,
            expanded_bytes: 12_345,
            archive_bytes: 2_345,
            created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
        };
        let custom =
            [agent("as-told", Some("0.1"), &[]), agent("asks-another-program", None, &["PLACE", "WHO"])];
        crate::screen_tests::check("agents", |layout| table(&known, &custom).render(layout));
        crate::screen_tests::check("agent", |layout| detail(&custom[1]).render(layout));
    }
}
