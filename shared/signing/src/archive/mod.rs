//! The ZIP around a signed export: a writer that streams, and a reader that refuses everything ambiguous.
//!
//! Both are written against PKWARE's APPNOTE 6.3. The part of it that is needed is small (four members, stored or
//! deflated, no ZIP64, no encryption), and a reader that accepts less than general ones is the point: an
//! archive that two programs could read differently must not verify.

mod format;
pub(crate) mod layout;
mod member;
mod writer;

pub(crate) use self::member::MemberReader;
pub use self::writer::{ArchiveError, ArchiveWriter, FinishedArchive, ManifestFields, RESULTS_BYTES_MAX};

/// The members of a signed archive, in their order.
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
