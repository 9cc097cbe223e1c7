//! `bench keys`.

use std::io::{IsTerminal, Read};
use std::path::Path;

use anyhow::Context;
use bench_signing::{
    Distrust, KeyNameError, KeyRing, KeyRingError, KeyStatus, KeysDocument, PublicKey, find_key,
    rotate_secret,
};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::client::ServerArgs;
use crate::data_dir::{DataArgs, key_ring};
use crate::exit::{ExitStatus, Problem};
use crate::table::{Column, Table};
use crate::{format, output};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench keys
      the public keys; give them to those who verify your archives
  bench keys rotate
      signs with a new key from now on; earlier archives still verify
  bench keys rotate --distrust
      after the current key leaked: archives that it signed no longer verify
  bench keys distrust 56475aa75463
      the same for an earlier key
  bench keys pin A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg= --label lab
      trusts the key of another installation
  bench keys rotate --secret < old.json > new.json
      a new key for the stored secret of a server (docs/operations.md)
  bench keys --server https://bench.example
      the public keys of a server";

const SHOW_EXAMPLE: &str = "\
Example:
  bench keys show --json";
const ROTATE_EXAMPLES: &str = "\
Examples:
  bench keys rotate
  bench keys rotate --distrust
      after the current key leaked
  bench keys rotate --secret < old.json > new.json
      for the stored secret of a server";
const DISTRUST_EXAMPLE: &str = "\
Example:
  bench keys distrust 56475aa75463";
const PIN_EXAMPLES: &str = "\
Examples:
  bench keys pin A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg= --label lab
  bench keys pin lab-key.pem";
const UNPIN_EXAMPLE: &str = "\
Example:
  bench keys unpin 56475aa75463";

/// Maximum size of a public key file, in bytes.
const KEY_FILE_BYTES_MAX: u64 = 16 * 1024;
/// Maximum size of a stored secret, in bytes.
const SECRET_BYTES_MAX: u64 = 1024 * 1024;
/// Value of `--distrust` for the current key.
const CURRENT: &str = "present";

#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    command: Option<KeysCommand>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long, global = true, help_heading = None)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Show the public keys; the default
    #[command(after_help = SHOW_EXAMPLE)]
    Show,
    /// Create a new signing key; archives of earlier keys still verify
    #[command(after_help = ROTATE_EXAMPLES)]
    Rotate {
        /// Read the signing secret of a server (JSON) from standard input, and write the new one to standard output
        #[arg(long)]
        secret: bool,
        /// Also distrust a key that may have leaked: archives that it signed no longer verify [default: the current key]
        #[arg(long, value_name = "KEY", num_args = 0..=1, default_missing_value = CURRENT)]
        distrust: Option<String>,
    },
    /// Distrust one of your own keys, which may have leaked; the current key is replaced
    #[command(after_help = DISTRUST_EXAMPLE)]
    Distrust {
        /// Public key, its fingerprint, or at least 8 of the fingerprint's first digits
        key: String,
    },
    /// Trust the key of another installation
    #[command(after_help = PIN_EXAMPLES)]
    Pin {
        /// Public key in base64, or a file with it in base64 or PEM
        key: String,
        /// Name that `bench verify` shows for the key [default: the start of its fingerprint]
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
    },
    /// Stop trusting a pinned key
    #[command(after_help = UNPIN_EXAMPLE)]
    Unpin {
        /// Public key, its fingerprint, or at least 8 of the fingerprint's first digits
        key: String,
    },
}

pub(crate) async fn run(args: KeysArgs) -> anyhow::Result<ExitStatus> {
    if let Some(KeysCommand::Rotate { secret: true, distrust }) = &args.command {
        return rotate_stored(match distrust.as_deref() {
            None => Distrust::Nothing,
            Some(CURRENT) => Distrust::Current,
            Some(name) => Distrust::Named(name),
        });
    }
    if let Some(client) = args.server.client()? {
        if !matches!(args.command, None | Some(KeysCommand::Show)) {
            return Err(Problem::usage("the keys of a server can't be changed from here")
                .hint("run `bench keys` on the machine of the server, without --server")
                .into());
        }
        let document: KeysDocument = client.get("/.well-known/bench-runner-keys.json").await?;
        if args.json {
            output::json(&document)?
        } else {
            output::print_table(&own(&document))?
        }
        return Ok(ExitStatus::Success);
    }
    let now = jiff::Timestamp::now();
    let mut ring = match key_ring(|| args.data.path(), true) {
        // The distrusted key file was put back. Only this command replaces it.
        Err(error) if is_distrusted(&error) && matches!(args.command, Some(KeysCommand::Rotate { .. })) => {
            key_ring(|| args.data.path(), false)?
        }
        ring => ring?,
    };
    match args.command.unwrap_or(KeysCommand::Show) {
        KeysCommand::Show => {}
        KeysCommand::Rotate { distrust: None, .. } => {
            let key = ring.rotate(now)?;
            output::note(&format!("New archives are signed with {}", key.fingerprint()));
        }
        KeysCommand::Rotate { distrust: Some(name), .. } => {
            let current = ring.current().map(|key| key.public_key);
            let key = match name.as_str() {
                CURRENT => current.ok_or_else(|| Problem::failure("there is no current key"))?,
                name => own_key(&ring, name)?,
            };
            if Some(key) != current {
                ring.rotate(now)?;
            }
            distrust(&mut ring, key, now)?;
        }
        KeysCommand::Distrust { key } => {
            let key = own_key(&ring, &key)?;
            distrust(&mut ring, key, now)?;
        }
        KeysCommand::Pin { key, label } => {
            let key = read_public_key(&key)?;
            let label = label.unwrap_or_else(|| format::short(&key.fingerprint()));
            ring.pin(key, &label, now)?;
            output::note(&format!("Archives signed with {} now verify, as `{label}`", key.fingerprint()));
        }
        KeysCommand::Unpin { key } => {
            let pinned = ring.pinned().iter().map(|pin| pin.public_key);
            let fingerprint = find_key(pinned, &key).map_err(|error| no_key("pinned", &error))?.fingerprint();
            ring.unpin(&fingerprint)?;
            output::note(&format!("Archives signed with {fingerprint} no longer verify"));
        }
    }
    if args.json {
        let mut shown = json!({ "keys": ring.document().keys, "pinned": ring.pinned() });
        if !ring.distrusted().is_empty() {
            shown["distrusted"] = json!(ring.distrusted());
        }
        output::json(&shown)?;
        return Ok(ExitStatus::Success);
    }
    output::print_table(&own(&ring.document()))?;
    if !ring.pinned().is_empty() {
        let mut table = Table::new([
            Column::words("pinned as"),
            Column::text("public key"),
            Column::text("fingerprint"),
            Column::text("since").drop_as(1),
        ]);
        for pin in ring.pinned() {
            table.row([
                pin.label.clone(),
                pin.public_key.to_base64(),
                format::short(&pin.public_key.fingerprint()),
                second(pin.pinned_at),
            ]);
        }
        output::print_table(&table)?;
    }
    if !ring.distrusted().is_empty() {
        let mut table = Table::new(["distrusted", "fingerprint", "since"].map(Column::text));
        for key in ring.distrusted() {
            let (public_key, since) = (key.public_key, key.distrusted_at);
            table.row([public_key.to_base64(), format::short(&public_key.fingerprint()), second(since)]);
        }
        output::print_table(&table)?;
    }
    Ok(ExitStatus::Success)
}

/// Formats a time for the table of keys.
fn second(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Distrusts one of the installation's own keys, and replaces it if it is the current one.
fn distrust(ring: &mut KeyRing, key: PublicKey, now: jiff::Timestamp) -> anyhow::Result<()> {
    ring.distrust(key, now)?;
    if let Some(current) = ring.current() {
        output::note(&format!("New archives are signed with {}", current.public_key.fingerprint()));
    }
    output::note(&format!("Archives signed with {} no longer verify", key.fingerprint()));
    Ok(())
}

fn is_distrusted(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(KeyRingError::Distrusted { .. }))
}

/// Finds the installation's own key that `name` refers to.
fn own_key(ring: &KeyRing, name: &str) -> anyhow::Result<PublicKey> {
    let own = ring.current().into_iter().chain(ring.retired()).map(|key| key.public_key);
    find_key(own, name).map_err(|error| {
        let distrusted = ring.distrusted().iter().map(|key| key.public_key);
        match find_key(distrusted, name) {
            Ok(key) => {
                Problem::usage(format!("the key `{}` is already distrusted", key.fingerprint())).into()
            }
            Err(_) => no_key("own", &error).into(),
        }
    })
}

fn no_key(kind: &str, error: &KeyNameError) -> Problem {
    let text = match error {
        KeyNameError::Unknown(name) => format!("there is no {kind} key `{name}`"),
        KeyNameError::Ambiguous(name) => {
            format!("several {kind} keys start with `{name}`; give more digits")
        }
    };
    Problem::usage(text).hint("`bench keys` lists the keys; the first 8 digits of a fingerprint are enough")
}

/// Rotates a secret from standard input to standard output. On a command line, other users could see a private key.
fn rotate_stored(distrust: Distrust<'_>) -> anyhow::Result<ExitStatus> {
    let input = std::io::stdin();
    if input.is_terminal() {
        return Err(Problem::usage("--secret reads the current secret from standard input")
            .hint("`aws secretsmanager get-secret-value … --query SecretString --output text | bench keys rotate --secret`")
            .into());
    }
    let mut secret = String::new();
    let read = input.lock().take(SECRET_BYTES_MAX).read_to_string(&mut secret);
    read.map_err(|_| Problem::usage("standard input is not text"))?;
    let rotated = rotate_secret(secret.trim(), distrust, jiff::Timestamp::now())
        .map_err(|error| Problem::usage(error.to_string()))?;
    output::print(&rotated.secret)?;
    output::note(&format!("New archives are signed with {}", rotated.current.fingerprint()));
    if rotated.distrusted != Some(rotated.retired) {
        output::note(&format!("Archives signed with {} still verify", rotated.retired.fingerprint()));
    }
    if let Some(distrusted) = rotated.distrusted {
        output::note(&format!("Archives signed with {} no longer verify", distrusted.fingerprint()));
    }
    Ok(ExitStatus::Success)
}

fn own(document: &KeysDocument) -> Table {
    let mut table = Table::new([
        Column::text("status"),
        Column::text("public key"),
        Column::text("fingerprint"),
        Column::text("from").drop_as(2),
        Column::text("until").drop_as(1),
    ]);
    for entry in &document.keys {
        let status = match entry.status {
            KeyStatus::Current => "current",
            KeyStatus::Retired => "retired",
        };
        let time = |time: &Option<String>| time.clone().unwrap_or_else(|| "-".to_owned());
        table.row([
            status.to_owned(),
            entry.public_key.to_base64(),
            format::short(&entry.key_id),
            time(&entry.valid_from),
            time(&entry.valid_until),
        ]);
    }
    table
}

/// Reads a public key, or a file that contains one, as given on the command line.
pub(crate) fn read_public_key(given: &str) -> anyhow::Result<PublicKey> {
    if let Ok(key) = PublicKey::parse(given) {
        return Ok(key);
    }
    let path = Path::new(given);
    let metadata = std::fs::metadata(path).map_err(|_| {
        Problem::usage(format!("`{given}` is neither an Ed25519 public key nor a file with one"))
    })?;
    let no_key = || Problem::usage(format!("the file `{given}` has no Ed25519 public key in base64 or PEM"));
    if !metadata.is_file() || metadata.len() > KEY_FILE_BYTES_MAX {
        return Err(no_key().into());
    }
    let text = std::fs::read(path).with_context(|| format!("could not read `{given}`"))?;
    let key = std::str::from_utf8(&text).ok().and_then(|text| PublicKey::parse(text).ok());
    key.ok_or_else(|| no_key().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screen_of_keys() {
        let key = |status: &str, until: Option<&str>| {
            serde_json::json!({
                "key_id": "56475aa75463474c0285df5dbf2bcab73da651358839e9b77481b2eab107708c", "algorithm": "ed25519",
                "public_key": "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=", "status": status,
                "valid_from": "2026-01-02T03:04:05Z", "valid_until": until,
            })
        };
        let keys = [key("current", None), key("retired", Some("2026-02-02T03:04:05Z"))];
        let document: KeysDocument = serde_json::from_value(serde_json::json!({ "keys": keys })).unwrap();
        crate::screen_tests::check("keys", |layout| own(&document).render(layout));
    }
}
