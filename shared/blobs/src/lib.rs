//! Bodies, datasets, uploads and exports in S3.
