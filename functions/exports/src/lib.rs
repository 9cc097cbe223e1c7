//! Exports of runs that are over: a table (CSV) and a signed archive (ZIP), their verification, and the public keys.
//!
//! [`Exports::build`] makes an export once per version of a run and stores it; [`router`] serves it. This crate
//! alone holds the signing key.
//!
//! - An export has every planned sample, in the order of the plan. One that did not end, or whose stored answer is
//!   lost, has an `error` that says so.
//! - The fields and columns of the compatible system are all there, with its types; ours have names of their own.
//! - The same bytes come out for one version of the run, one version of the program and one key.

mod context;
mod error;
mod file;
mod routes;
mod spool;

pub use bench_blobs::exports_prefix;
pub use context::{
    Exports, ExportsConfig, INLINE_BYTES_MAX_DEFAULT, PRESIGNED_VALID_DEFAULT, UPLOAD_BYTES_MAX_DEFAULT,
};
pub use error::ExportError;
pub use file::build::BuiltExport;
pub use file::format::ExportFormat;
pub use routes::uploads::{UploadView, VERIFY_BYTES_MAX};
pub use routes::views::{KeyView, KeysView, PublicKeyView, VerificationView};
pub use routes::{openapi, router};
