//! Renders and stores a report.

use bench_blobs::{Upload, exports_prefix};
use bench_report::{ReportError, render};
use bench_state::RunWithBenchmarks;
use sha2::{Digest, Sha256};

use crate::ExportError;
use crate::context::Exports;
use crate::file::build::software_id;
use crate::file::facts::RunFacts;

/// Digits of the digest of the key and the address in the object key.
const DIGEST_CHARS: usize = 16;

/// Fingerprint of the key that a report names; `None` without a usable key.
pub(crate) struct NamedKey(Option<String>);

impl NamedKey {
    pub(crate) fn new(exports: &Exports) -> Self {
        Self(exports.signing_key().ok().map(|signing| signing.key.fingerprint()))
    }
}

impl Exports {
    /// Returns the object key of a report. A report names the key and the address of the page for verification, so it
    /// depends on them in addition to the versions of run and program.
    pub(crate) fn report_key(&self, found: &RunWithBenchmarks, key: &NamedKey) -> String {
        let named = [key.0.as_deref(), self.config.verify_url.as_deref()].map(Option::unwrap_or_default);
        let mut digest = hex::encode(Sha256::digest(named.join("\n")));
        digest.truncate(DIGEST_CHARS);
        let prefix = exports_prefix(found.run.spec.id);
        format!("{prefix}{}-{}-{digest}.pdf", found.run.generation, software_id(&self.config))
    }

    /// Renders a report and uploads it.
    pub(crate) async fn write_report(
        &self,
        facts: RunFacts,
        key: &NamedKey,
        upload: &mut Upload,
    ) -> Result<(), ExportError> {
        let report = super::report(&facts, &self.config, key.0.as_deref());
        let fonts = self.fonts().map_err(ReportError::from)?;
        // Layout and compression take time, so they are on a thread that may block.
        let pdf = tokio::task::spawn_blocking(move || render(&report, &fonts)).await??;
        Ok(upload.write(&pdf).await?)
    }
}
