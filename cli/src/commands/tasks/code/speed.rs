//! Speed of this machine's sandboxes, which proofs record.

use std::collections::BTreeSet;

use anyhow::Context;
use bench_code_tasks::Language;
use bench_stack::sandboxes::SandboxSettings;
use bench_stack::sandboxes::speed::{HostSpeed, read, record};

use crate::commands::sandy::setup::speed::measure;

/// Returns the speed of these languages. Measures those for which it isn't known.
pub(super) async fn measure_missing(
    settings: &SandboxSettings,
    languages: impl Iterator<Item = Language>,
) -> anyhow::Result<HostSpeed> {
    let known = read(&settings.data_dir);
    let unknown: BTreeSet<Language> =
        languages.filter(|language| !known.contains_key(language.as_str())).collect();
    if unknown.is_empty() {
        return Ok(known);
    }
    let tried = settings.clone();
    let isolation = tokio::task::spawn_blocking(move || tried.isolation()).await??;
    let measured = measure(&isolation, &settings.config(None).limits, unknown).await?;
    record(&settings.data_dir, measured).context("could not record the speed of sandboxes")?;
    Ok(read(&settings.data_dir))
}
