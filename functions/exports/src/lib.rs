//! Exports of runs that are over: a table (CSV) and a signed archive (ZIP), their verification, and the public keys.
//!
//! [`Exports::build`] makes an export once per version of a run and stores it; [`router`] serves it. This crate
//! alone holds the signing key.
//!
//! - An export has every planned sample, in the order of the plan. One that did not end, or whose stored answer is
//!   lost, has an `error` that says so.
//! - The fields and columns of the compatible system are all there, with its types; ours have names of their own.
//! - The same bytes come out for one version of the run, one version of the program and one key.

mod build;
mod cells;
mod context;
mod error;
mod facts;
mod format;
mod item;
mod manifest;
mod results;
mod router;
mod samples;
mod serve;
mod spool;
mod table;
mod uploads;
mod verify;
mod views;

pub use bench_blobs::exports_prefix;
pub use build::BuiltExport;
pub use context::{
    Exports, ExportsConfig, INLINE_BYTES_MAX_DEFAULT, PRESIGNED_VALID_DEFAULT, UPLOAD_BYTES_MAX_DEFAULT,
};
pub use error::ExportError;
pub use format::ExportFormat;
pub use router::{openapi, router};
pub use uploads::{UploadView, VERIFY_BYTES_MAX};
pub use views::{KeyView, KeysView, PublicKeyView, VerificationView};
