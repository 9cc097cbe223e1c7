//! `bench keys`.

use std::io::{IsTerminal, Read};
use std::path::Path;

use anyhow::Context;
use bench_signing::{
    Distrust, KeyNameError, KeyRing, KeyRingError, KeyStatus, KeysDocument, PublicKey, find_key,
    rotate_secret,
};
use clap::{Args, Subcommand};
use comfy_table::Cell;
use serde_json::json;

use crate::client::ServerArgs;
use crate::data_dir::{DataArgs, key_ring};
use crate::exit::{ExitStatus, Problem};
use crate::{format, output, show};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench keys                                 public keys: to be handed to who verifies your archives
  bench keys rotate                          sign with a new key from now on; old archives still verify
  bench keys rotate --distrust               the present key leaked: what it signed verifies no longer
  bench keys distrust 56475aa75463           the same for an earlier key
  bench keys rotate --secret < old > new     a new key for a server's stored secret (docs/operations.md)
  bench keys pin A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg= --label lab
  bench keys unpin 56475aa75463
  bench keys --server https://bench.example  the keys that a server signs with";

/// Maximum size of a public key file, in bytes.
const KEY_FILE_BYTES_MAX: u64 = 16 * 1024;
/// Maximum size of a stored secret, in bytes.
const SECRET_BYTES_MAX: u64 = 1024 * 1024;
/// Value of `--distrust` for the present key.
const PRESENT: &str = "present";

#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    command: Option<KeysCommand>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Show the public keys (what happens without a command)
    Show,
    /// Make a new signing key; the present one is kept for verification
    Rotate {
        /// Read a server's signing secret (JSON) from standard input and write the new one to standard output
        #[arg(long)]
        secret: bool,
        /// Do not trust a key any longer, since somebody else may have it: what it signed is not valid any more [default:
        /// the present key]
        #[arg(long, value_name = "KEY", num_args = 0..=1, default_missing_value = PRESENT)]
        distrust: Option<String>,
    },
    /// Do not trust one of your own keys any longer, since somebody else may have it; the present key is replaced
    Distrust {
        /// The key, its fingerprint, or the first 8 digits of that or more
        key: String,
    },
    /// Trust somebody else's key
    Pin {
        /// The key in base64, or a file with it in base64 or PEM
        key: String,
        /// A name for it
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
    },
    /// Trust somebody else's key no longer
    Unpin {
        /// The key, its fingerprint, or the first 8 digits of that or more
        key: String,
    },
}

pub(crate) async fn run(args: KeysArgs) -> anyhow::Result<ExitStatus> {
    if let Some(KeysCommand::Rotate { secret: true, distrust }) = &args.command {
        return rotate_stored(match distrust.as_deref() {
            None => Distrust::Nothing,
            Some(PRESENT) => Distrust::Current,
            Some(name) => Distrust::Named(name),
        });
    }
    if let Some(client) = args.server.client()? {
        if !matches!(args.command, None | Some(KeysCommand::Show)) {
            return Err(Problem::usage("a server's keys are changed where it runs").into());
        }
        let document: KeysDocument = client.get("/.well-known/bench-runner-keys.json").await?;
        if args.json {
            output::json(&document)?
        } else {
            output::print(&own(&document).to_string())?
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
            let present = ring.current().map(|key| key.public_key);
            let key = match name.as_str() {
                PRESENT => present.ok_or_else(|| Problem::failure("there is no present key"))?,
                name => own_key(&ring, name)?,
            };
            if Some(key) != present {
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
            output::note(&format!("Archives signed with {} verify now, as {label}", key.fingerprint()));
        }
        KeysCommand::Unpin { key } => {
            let pinned = ring.pinned().iter().map(|pin| pin.public_key);
            let fingerprint = find_key(pinned, &key).map_err(|error| no_key("pinned", &error))?.fingerprint();
            ring.unpin(&fingerprint)?;
            output::note(&format!("Archives signed with {fingerprint} verify no longer"));
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
    output::print(&own(&ring.document()).to_string())?;
    if !ring.pinned().is_empty() {
        let mut table = show::table(&["pinned as", "public key", "fingerprint", "since"]);
        for pin in ring.pinned() {
            table.add_row([
                pin.label.clone(),
                pin.public_key.to_base64(),
                format::short(&pin.public_key.fingerprint()),
                second(pin.pinned_at),
            ]);
        }
        output::print(&table.to_string())?;
    }
    if !ring.distrusted().is_empty() {
        let mut table = show::table(&["distrusted", "fingerprint", "since"]);
        for key in ring.distrusted() {
            let (public_key, since) = (key.public_key, key.distrusted_at);
            table.add_row([public_key.to_base64(), format::short(&public_key.fingerprint()), second(since)]);
        }
        output::print(&table.to_string())?;
    }
    Ok(ExitStatus::Success)
}

/// Formats a time for the table of keys.
fn second(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Distrusts one of the installation's own keys, and replaces it if it is the present one.
fn distrust(ring: &mut KeyRing, key: PublicKey, now: jiff::Timestamp) -> anyhow::Result<()> {
    ring.distrust(key, now)?;
    if let Some(current) = ring.current() {
        output::note(&format!("New archives are signed with {}", current.public_key.fingerprint()));
    }
    output::note(&format!("Archives signed with {} verify no longer", key.fingerprint()));
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
                Problem::usage(format!("the key `{}` is distrusted already", key.fingerprint())).into()
            }
            Err(_) => no_key("own", &error).into(),
        }
    })
}

fn no_key(kind: &str, error: &KeyNameError) -> Problem {
    let text = match error {
        KeyNameError::Unknown(name) => format!("no {kind} key is named `{name}`"),
        KeyNameError::Ambiguous(name) => {
            format!("`{name}` names several {kind} keys; give more digits of the fingerprint")
        }
    };
    Problem::usage(text).hint("`bench keys` lists them; a fingerprint's first 8 digits are enough")
}

/// Rotates a secret from standard input to standard output. On a command line, other users could see a private key.
fn rotate_stored(distrust: Distrust<'_>) -> anyhow::Result<ExitStatus> {
    let input = std::io::stdin();
    if input.is_terminal() {
        return Err(Problem::usage("--secret reads the present secret from standard input")
            .hint("aws secretsmanager get-secret-value … --query SecretString --output text | bench keys rotate --secret")
            .into());
    }
    let mut secret = String::new();
    let read = input.lock().take(SECRET_BYTES_MAX).read_to_string(&mut secret);
    read.map_err(|_| Problem::usage("standard input is no text"))?;
    let rotated = rotate_secret(secret.trim(), distrust, jiff::Timestamp::now())
        .map_err(|error| Problem::usage(error.to_string()))?;
    output::print(&rotated.secret)?;
    output::note(&format!("New archives are signed with {}", rotated.current.fingerprint()));
    if rotated.distrusted != Some(rotated.retired) {
        output::note(&format!("Archives signed with {} still verify", rotated.retired.fingerprint()));
    }
    if let Some(distrusted) = rotated.distrusted {
        output::note(&format!("Archives signed with {} verify no longer", distrusted.fingerprint()));
    }
    Ok(ExitStatus::Success)
}

fn own(document: &KeysDocument) -> comfy_table::Table {
    let mut table = show::table(&["status", "public key", "fingerprint", "from", "until"]);
    for entry in &document.keys {
        table.add_row(vec![
            Cell::new(match entry.status {
                KeyStatus::Current => "current",
                KeyStatus::Retired => "retired",
            }),
            Cell::new(entry.public_key.to_base64()),
            Cell::new(&entry.key_id),
            Cell::new(entry.valid_from.as_deref().unwrap_or("-")),
            Cell::new(entry.valid_until.as_deref().unwrap_or("-")),
        ]);
    }
    for column in [1, 2] {
        // Keys must stay on one line, so that users can copy them.
        if let Some(column) = table.column_mut(column) {
            column.set_constraint(comfy_table::ColumnConstraint::ContentWidth);
        }
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
    let no_key = || Problem::usage(format!("the file {given} holds no Ed25519 public key in base64 or PEM"));
    if !metadata.is_file() || metadata.len() > KEY_FILE_BYTES_MAX {
        return Err(no_key().into());
    }
    let text = std::fs::read(path).with_context(|| format!("could not read {given}"))?;
    let key = std::str::from_utf8(&text).ok().and_then(|text| PublicKey::parse(text).ok());
    key.ok_or_else(|| no_key().into())
}
