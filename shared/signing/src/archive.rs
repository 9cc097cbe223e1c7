//! The ZIP format of signed exports: a streaming writer, and a reader that rejects everything ambiguous.
//!
//! Both follow PKWARE's APPNOTE 6.3. They need only a small part of it (four members, stored or deflated, no ZIP64, no
//! encryption). The reader accepts less than general ones on purpose: an archive that two programs could read
//! differently must not verify.

mod format;
pub(crate) mod layout;
mod member;
mod writer;

pub(crate) use self::member::MemberReader;
pub use self::writer::{ArchiveError, ArchiveWriter, FinishedArchive, ManifestFields, RESULTS_BYTES_MAX};

/// Members of a signed archive, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Member {
    Results,
    Manifest,
    Signature,
    PublicKey,
}

impl Member {
    pub(crate) const ALL: [Self; 4] = [Self::Results, Self::Manifest, Self::Signature, Self::PublicKey];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Results => "results.json",
            Self::Manifest => "manifest.json",
            Self::Signature => "signature.txt",
            Self::PublicKey => "public_key.txt",
        }
    }
}
