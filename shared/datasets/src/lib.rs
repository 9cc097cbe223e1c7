//! Datasets: hub download, local files, the normalised cache.
