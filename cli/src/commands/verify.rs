//! `bench verify`.

mod contents;
mod unknown_key;

use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context;
use bench_signing::{
    KeyRole, KeysDocument, Limits, Reason, TrustedKey, Verification, unverified_manifest, verify,
};
use clap::Args;
use console::style;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::contents::{BenchmarkFacts, RunFacts, benchmark_facts};
use super::keys::read_public_key;
use crate::client::{Client, ServerArgs};
use crate::data_dir::{DataArgs, key_ring};
use crate::exit::{ExitStatus, Problem, plain};
use crate::{format, output};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench verify bench-results/*.zip
      with the keys of this installation, including pinned ones
  bench verify results.zip \\
      --public-key A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=
  bench verify results.zip --public-key lab-key.pem
  bench verify results.zip --server https://bench.example
      at the server; more than 4 MB are uploaded first, which needs a key
  bench verify results.zip --server https://bench.example --here
      on this machine with the public keys of the server

Exit code 0 if every archive is valid, else 1.";

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Archives to verify
    #[arg(required = true, value_name = "FILE.zip")]
    files: Vec<PathBuf>,
    /// Trust only this Ed25519 key, in base64, or in a file in base64 or PEM; repeat for several
    #[arg(long, value_name = "KEY|FILE")]
    public_key: Vec<String>,
    /// Verify on this machine with the public keys of --server, without uploading the archive
    #[arg(long, requires = "server")]
    here: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON: an object for one archive, an array for several
    #[arg(long, help_heading = None)]
    json: bool,
}

/// Verification of an archive, as printed by `--json`.
#[derive(Debug, Serialize)]
struct Verdict {
    file: String,
    #[serde(flatten)]
    verification: Verification,
    /// One code for each of `errors`.
    reasons: Vec<Reason>,
    /// Signer, if known and trusted.
    signed_by: Option<String>,
    /// Facts about the run from the signed manifest.
    run: RunFacts,
    /// Facts about each benchmark from the signed manifest; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    benchmarks: Vec<BenchmarkFacts>,
}

pub(crate) async fn run(args: VerifyArgs) -> anyhow::Result<ExitStatus> {
    // A key given on the command line is checked here, independent of the keys that a server trusts.
    if !args.here
        && args.public_key.is_empty()
        && let Some(client) = args.server.client()?
    {
        return verify_at_server(&args, &client).await;
    }
    let trusted = trusted_keys(&args).await?;
    let mut verdicts = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let verdict = verify_file(path, &trusted);
        if !args.json {
            output::print(&describe(&verdict))?;
        }
        verdicts.push(verdict);
    }
    if args.json {
        match verdicts.as_slice() {
            [only] => output::json(only)?,
            all => output::json(&all)?,
        }
    }
    let all_valid = verdicts.iter().all(|verdict| verdict.verification.valid);
    Ok(if all_valid { ExitStatus::Success } else { ExitStatus::Failure })
}

/// Asks a server to verify the archives.
async fn verify_at_server(args: &VerifyArgs, client: &Client) -> anyhow::Result<ExitStatus> {
    let mut verdicts = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let file = path.display().to_string();
        if matches!(path.try_exists(), Ok(false)) {
            return Err(Problem::failure(format!("there is no file `{file}`")).into());
        }
        let found = client.verify(path).await.with_context(|| file.clone())?;
        let mut found: ServersVerdict =
            serde_json::from_value(found).context("unexpected answer of the server")?;
        if let Some(text) = unknown_key::explain_servers(path, &found.errors) {
            found.errors = vec![text];
        }
        // The server's response has no manifest, so it is read from the archive that the server found valid.
        let manifest = File::open(path).ok().filter(|_| found.valid);
        let manifest = manifest.and_then(|archive| unverified_manifest(archive, &Limits::default()));
        let benchmarks = manifest.as_ref().map(benchmark_facts).unwrap_or_default();
        let run = manifest.as_ref().map(RunFacts::from_manifest).unwrap_or_default();
        if !args.json {
            output::print(&describe_servers(&file, &found, &run, &benchmarks))?;
        }
        verdicts.push(FileVerdict { file, verdict: found, run, benchmarks });
    }
    if args.json {
        match verdicts.as_slice() {
            [only] => output::json(only)?,
            all => output::json(&all)?,
        }
    }
    let all_valid = verdicts.iter().all(|verdict| verdict.verdict.valid);
    Ok(if all_valid { ExitStatus::Success } else { ExitStatus::Failure })
}

/// Verification by a server.
#[derive(Debug, Serialize, Deserialize)]
struct ServersVerdict {
    valid: bool,
    #[serde(default)]
    errors: Vec<String>,
    run_id: Option<String>,
    model_slug: Option<String>,
    overall_score: Option<f64>,
    exported_at: Option<String>,
    benchmark_count: Option<u64>,
    public_key_fingerprint: Option<String>,
    /// Other fields of the response.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Serialize)]
struct FileVerdict {
    file: String,
    #[serde(flatten)]
    verdict: ServersVerdict,
    run: RunFacts,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    benchmarks: Vec<BenchmarkFacts>,
}

fn describe_servers(
    file: &str,
    found: &ServersVerdict,
    run: &RunFacts,
    benchmarks: &[BenchmarkFacts],
) -> String {
    let mut lines = Vec::new();
    if found.valid {
        lines.push(format!("{} {file}", style("valid:").green().bold()));
        let mut field = |name: &str, value: Option<String>| {
            lines.extend(value.map(|value| format!("  {:<12}{value}", format!("{name}:"))));
        };
        let signer = found.public_key_fingerprint.as_deref();
        field("signed by", signer.map(|key| format!("{} (trusted by the server)", format::short(key))));
        field("run", found.run_id.clone());
        field("model", found.model_slug.clone());
        field("provider", run.answered_by());
        field("score", Some(run.score(found.overall_score)));
        field("benchmarks", found.benchmark_count.map(|count| count.to_string()));
        field("exported", found.exported_at.clone());
        lines.extend(contents::describe(benchmarks));
    } else {
        lines.push(format!("{} {file}", style("invalid:").red().bold()));
        lines.extend(found.errors.iter().map(|error| format!("  {error}")));
        if let Some(claimed) = &found.public_key_fingerprint {
            lines.push(format!("  claimed signer: {}", format::short(claimed)));
        }
    }
    lines.join("\n")
}

async fn trusted_keys(args: &VerifyArgs) -> anyhow::Result<Vec<TrustedKey>> {
    if !args.public_key.is_empty() {
        return args.public_key.iter().map(|key| Ok(TrustedKey::given(read_public_key(key)?))).collect();
    }
    if let Some(client) = args.server.client()? {
        let document: KeysDocument = client.get("/.well-known/bench-runner-keys.json").await?;
        return Ok(document.trusted_keys());
    }
    Ok(key_ring(|| args.data.path(), false)?.known_keys())
}

fn verify_file(path: &std::path::Path, trusted: &[TrustedKey]) -> Verdict {
    let file = path.display().to_string();
    let mut verification = match File::open(path) {
        // Problems with the file itself use the same form, so that one bad file doesn't affect the others.
        Err(error) => {
            let mut verification = Verification::default();
            let (reason, text) = match error.kind() {
                ErrorKind::NotFound => (Reason::NotFound, "not found".to_owned()),
                _ => (Reason::ReadFailed, format!("could not open the file: {error}")),
            };
            verification.errors.push(text);
            return Verdict {
                file,
                verification,
                reasons: vec![reason],
                signed_by: None,
                run: RunFacts::default(),
                benchmarks: Vec::new(),
            };
        }
        Ok(archive) => verify(archive, trusted, &Limits::default(), jiff::Timestamp::now()),
    };
    let mut reasons = verification.reasons().to_vec();
    for (error, reason) in verification.errors.iter_mut().zip(&reasons) {
        let text = match reason {
            // The library's text refers to a server's variables.
            Reason::KeysUnavailable => {
                "no key is trusted; give one with --public-key, or pin one with `bench keys pin`".to_owned()
            }
            _ => plain(error.trim_end_matches([':', ' '])),
        };
        *error = text;
    }
    if let Some(text) = unknown_key::explain(path, &reasons, trusted) {
        verification.errors = vec![text];
        reasons = vec![Reason::UnknownKey];
    }
    let signed_by = verification.signer().map(describe_key);
    let benchmarks = verification.manifest().map(benchmark_facts).unwrap_or_default();
    let run = verification.manifest().map(RunFacts::from_manifest).unwrap_or_default();
    Verdict { file, verification, reasons, signed_by, run, benchmarks }
}

fn describe_key(key: &TrustedKey) -> String {
    let fingerprint = format::short(&key.public_key.fingerprint());
    let role = match key.role {
        KeyRole::Current => "current key of this installation".to_owned(),
        KeyRole::Retired => "earlier key of this installation".to_owned(),
        KeyRole::Pinned => format!("pinned as {}", key.label.as_deref().unwrap_or("-")),
        KeyRole::Given => "given with --public-key".to_owned(),
        KeyRole::Distrusted => "distrusted key of this installation".to_owned(),
    };
    format!("{fingerprint} ({role})")
}

fn describe(verdict: &Verdict) -> String {
    let Verdict { file, verification, reasons, signed_by, run, benchmarks } = verdict;
    let mut lines = Vec::new();
    if verification.valid {
        lines.push(format!("{} {file}", style("valid:").green().bold()));
        let mut field = |name: &str, value: Option<String>| {
            lines.extend(value.map(|value| format!("  {:<12}{value}", format!("{name}:"))));
        };
        field("signed by", signed_by.clone());
        field("run", verification.run_id.clone());
        field("model", verification.model_slug.clone());
        field("provider", run.answered_by());
        field("score", Some(run.score(verification.overall_score)));
        field("benchmarks", verification.benchmark_count.map(|count| count.to_string()));
        field("exported", verification.exported_at.clone());
        lines.extend(contents::describe(benchmarks));
    } else if reasons == &[Reason::NotFound] {
        lines.push(format!("{} {file}", style("not found:").red().bold()));
    } else {
        let is_unknown = reasons == &[Reason::UnknownKey];
        let verdict = if is_unknown { style("unverified:").yellow() } else { style("invalid:").red() };
        lines.push(format!("{} {file}", verdict.bold()));
        for (error, reason) in verification.errors.iter().zip(reasons) {
            let code = serde_json::to_value(reason).ok();
            let code = code.as_ref().and_then(serde_json::Value::as_str).unwrap_or("invalid");
            lines.push(format!("  {code}: {error}"));
        }
        // For an unknown key, the error already names the real fingerprint.
        if let Some(claimed) = verification.public_key_fingerprint.as_ref().filter(|_| !is_unknown) {
            lines.push(format!("  claimed signer: {}", format::short(claimed)));
        }
    }
    lines.join("\n")
}
