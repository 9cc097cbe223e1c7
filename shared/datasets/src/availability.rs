//! Check that the dataset of a run is still stored.

use bench_domain::run::DatasetUse;

use crate::error::DatasetError;
use crate::library::Library;

impl Library {
    /// Returns true if the items of a dataset that a run recorded, and the files that its jobs need, are still stored.
    /// The dataset may have been removed since.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn is_available(&self, used: &DatasetUse) -> Result<bool, DatasetError> {
        let files = used.attachments.values().map(|file| &file.key);
        for key in std::iter::once(&used.data_key).chain(files) {
            if self.blobs.head(key).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
