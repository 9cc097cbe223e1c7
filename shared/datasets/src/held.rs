//! Whether a dataset that a run has used is still there.

use bench_domain::run::DatasetUse;

use crate::error::DatasetError;
use crate::library::Library;

impl Library {
    /// Whether the items of a dataset that a run has noted can still be loaded, and the files that jobs need. It may have been removed since.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn holds(&self, used: &DatasetUse) -> Result<bool, DatasetError> {
        let files = used.attachments.values().map(|file| &file.key);
        for key in std::iter::once(&used.data_key).chain(files) {
            if self.blobs.head(key).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
