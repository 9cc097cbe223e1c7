//! Exports of runs that are over: a table (CSV), lines of JSON, a protocol (Markdown), and a signed archive (ZIP), their
//! verification, and the public keys.
//!
//! [`Exports::build`] makes an export once per version of a run and stores it; [`router`] serves it. Only
//! this crate has the signing key.
//!
//! - An export has every planned sample, in the order of the plan. A sample that did not end, or whose stored
//!   answer is lost, has an `error` that says so.
//! - All fields and columns of the compatible system are present, with its types; additional ones have other names.
//! - The bytes depend only on the version of the run, the version of the program and the key.

mod context;
mod error;
mod file;
mod routes;
mod spool;

pub use bench_blobs::exports_prefix;
pub use context::{
    Exports, ExportsConfig, FontSource, INLINE_BYTES_MAX_DEFAULT, PRESIGNED_VALID_DEFAULT,
    UPLOAD_BYTES_MAX_DEFAULT,
};
pub use error::ExportError;
pub use file::build::BuiltExport;
pub use file::format::{ExportFormat, ExportOrder};
pub use routes::uploads::{UploadView, VERIFY_BYTES_MAX};
pub use routes::views::{KeyView, KeysView, PublicKeyView, VerificationView};
pub use routes::{openapi, router};
