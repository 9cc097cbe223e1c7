//! `bench access`.

use std::env;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiArgs, with_api};
use crate::client::{Client, encode};
use crate::exit::{ExitStatus, Problem};
use crate::output;
use crate::table::{Column, Table};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench access create ci --expires 90d
      issues an access token; it is printed once and stored as a hash
  bench access create lab --oracle --gated
      a token that may also run the oracle and gated benchmarks
  bench access create ann --key-env ANN_KEY
      gives permissions to a caller with a provider key of their own
  bench access create bob --user SUBJECT --tasks
      gives permissions to a signed-in user
  bench access list
  bench access revoke ci

Callers send `Authorization: Bearer TOKEN`; `bench` reads it from BENCH_API_KEY.
The operator's keys pay for orders with a token, and tokens are never sent to a
provider. For a server, give --server URL and set BENCH_ADMIN_SECRET.
docs/access.md explains the access policy.";

const LIST_EXAMPLE: &str = "\
Example:
  bench access list --server https://bench.example";
const CREATE_EXAMPLES: &str = "\
Examples:
  bench access create ci --expires 90d
  bench access create ann --key-env ANN_KEY --gated
  bench access create bob --user SUBJECT --tasks";
const REVOKE_EXAMPLE: &str = "\
Example:
  bench access revoke ci";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AccessArgs {
    #[command(subcommand)]
    command: Option<AccessCommand>,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Args)]
struct CreateArgs {
    /// Name of the new entry
    name: String,
    /// Allow runs of the oracle and of stored responses
    #[arg(long)]
    oracle: bool,
    /// Allow runs of gated benchmarks
    #[arg(long)]
    gated: bool,
    /// Allow uploads of terminal tasks and runs of them
    #[arg(long)]
    tasks: bool,
    /// Time until the entry expires, such as 15m, 12h, 30d or 1y [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    expires: Option<u64>,
    /// Name of the environment variable that holds the provider key of a caller, who needs no token then
    #[arg(long, value_name = "VAR")]
    key_env: Option<String>,
    /// Subject of a signed-in user, who needs no token then: the id that the sign-in provider gives the user
    #[arg(long, value_name = "SUBJECT", conflicts_with = "key_env")]
    user: Option<String>,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Args)]
struct RevokeArgs {
    /// Name or id of the entry
    entry: String,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Subcommand)]
enum AccessCommand {
    /// List the entries; the default
    #[command(after_help = LIST_EXAMPLE)]
    List(ApiArgs),
    /// Issue an access token, or give permissions to a caller's own key or a signed-in user
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateArgs),
    /// Revoke an entry at once; runs that were ordered with it continue
    #[command(after_help = REVOKE_EXAMPLE)]
    Revoke(RevokeArgs),
}

/// An entry of `/api/admin/access`.
#[derive(Debug, Deserialize)]
struct Entry {
    id: String,
    name: String,
    kind: String,
    oracle: bool,
    gated: bool,
    #[serde(default)]
    tasks: bool,
    created_at: String,
    expires_at: Option<String>,
    expired: bool,
}

pub(crate) async fn run(args: AccessArgs) -> anyhow::Result<ExitStatus> {
    match args.command.unwrap_or(AccessCommand::List(args.api)) {
        AccessCommand::List(args) => as_operator(&args, async |client| list(client, args.json).await).await,
        AccessCommand::Create(args) => {
            let body = args.body()?;
            as_operator(&args.api, async |client| create(client, &args, &body).await).await
        }
        AccessCommand::Revoke(args) => {
            as_operator(&args.api, async |client| revoke(client, &args).await).await
        }
    }
}

/// Opens the API for the operator, whom the list belongs to, regardless of the key that is set for orders.
async fn as_operator(
    args: &ApiArgs,
    act: impl AsyncFnOnce(&Client) -> anyhow::Result<()>,
) -> anyhow::Result<ExitStatus> {
    with_api(args, async |api| act(&api.client.clone().acting_as_admin()).await).await
}

impl CreateArgs {
    fn body(&self) -> anyhow::Result<Value> {
        let key = match &self.key_env {
            None => None,
            Some(name) => {
                let key = env::var(name).ok().filter(|key| !key.trim().is_empty());
                Some(key.ok_or_else(|| {
                    // The value may be the key itself, so the message doesn't repeat it.
                    Problem::usage("--key-env: the variable is not set")
                        .hint("`export CALLER_KEY=…`, then give --key-env CALLER_KEY")
                })?)
            }
        };
        Ok(json!({
            "name": self.name, "oracle": self.oracle, "gated": self.gated, "tasks": self.tasks,
            "expires_in_seconds": self.expires, "key": key, "user": self.user,
        }))
    }
}

async fn create(client: &Client, args: &CreateArgs, body: &Value) -> anyhow::Result<()> {
    let made: Value = client.post("/api/admin/access", Some(body)).await?;
    if args.api.json {
        return output::json(&made);
    }
    match made.get("token").and_then(Value::as_str) {
        Some(token) => {
            output::print(token)?;
            output::note(&format!("Access token of {}; it is not shown again", args.name));
        }
        None if args.user.is_some() => output::print(&format!("Added the user {}", args.name))?,
        None => output::print(&format!("Added the key of {}", args.name))?,
    }
    Ok(())
}

async fn list(client: &Client, json: bool) -> anyhow::Result<()> {
    let found: Value = client.get("/api/admin/access").await?;
    let entries = found.get("entries").cloned().unwrap_or_default();
    if json {
        return output::json(&entries);
    }
    let entries: Vec<Entry> = serde_json::from_value(entries)?;
    if entries.is_empty() {
        output::note("There are no entries; `bench access create --help` shows how to issue an access token");
        return Ok(());
    }
    output::print_table(&table(entries))
}

fn table(entries: Vec<Entry>) -> Table {
    let mut table = Table::new([
        Column::words("name"),
        Column::text("id"),
        Column::words("kind"),
        Column::words("permissions"),
        Column::text("created").drop_as(1),
        Column::text("expires"),
    ]);
    for entry in entries {
        let permissions: Vec<&str> =
            [(entry.oracle, "oracle"), (entry.gated, "gated"), (entry.tasks, "tasks")]
                .into_iter()
                .filter_map(|(has, name)| has.then_some(name))
                .collect();
        let expires = match (&entry.expires_at, entry.expired) {
            (None, _) => "never".to_owned(),
            (Some(_), true) => "expired".to_owned(),
            (Some(at), false) => at.clone(),
        };
        let permissions = if permissions.is_empty() { "-".to_owned() } else { permissions.join(", ") };
        table.row([entry.name, entry.id, entry.kind, permissions, entry.created_at, expires]);
    }
    table
}

async fn revoke(client: &Client, args: &RevokeArgs) -> anyhow::Result<()> {
    let path = format!("/api/admin/access/{}", encode(args.entry.trim()));
    let revoked: Value = client.delete(&path).await?;
    if args.api.json {
        output::json(&revoked)
    } else {
        output::print(&format!("Revoked {}", args.entry.trim()))
    }
}

/// Parses `90s`, `15m`, `12h`, `30d` or `1y`.
fn parse_seconds(text: &str) -> Result<u64, String> {
    let invalid = || "it must be a number with a unit: 15m, 12h, 30d or 1y".to_owned();
    let unit = text.chars().next_back().ok_or_else(invalid)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 24 * 3_600,
        'y' => 365 * 24 * 3_600,
        _ => return Err(invalid()),
    };
    let digits = text.strip_suffix(unit).unwrap_or_default();
    let count: u64 = digits.parse().map_err(|_| invalid())?;
    count
        .checked_mul(seconds)
        .filter(|seconds| *seconds >= 60)
        .ok_or_else(|| "it must be at least 60s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, seconds) in
            [("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000), ("1y", 31_536_000)]
        {
            assert_eq!(parse_seconds(text), Ok(seconds));
        }
        for bad in ["", "30", "d", "-1d", "1 d", "59s", "18446744073709551615y", "3ö"] {
            assert!(parse_seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn screen_of_access() {
        let entry = |name: &str, kind: &str, oracle: bool, expires: Option<&str>| Entry {
            id: "a1b2c3d4e5f6".into(),
            name: name.into(),
            kind: kind.into(),
            oracle,
            gated: oracle,
            tasks: false,
            created_at: "2026-01-02T03:04:05Z".into(),
            expires_at: expires.map(str::to_owned),
            expired: false,
        };
        let entries = || {
            vec![
                entry("ci", "token", false, Some("2026-04-02T03:04:05Z")),
                entry("the laboratory of ann and bob", "key", true, None),
            ]
        };
        crate::screen_tests::check("access", |layout| table(entries()).render(layout));
    }
}
