//! Verification of signed archives.
//!
//! The steps, their order and the error texts follow the compatible system, whose clients show them. This
//! implementation is stricter in these points:
//! - An archive that two programs could read differently is rejected (see `archive::layout`).
//! - `valid` also requires results that are JSON of the expected structure, a known `schema_version` and
//!   `signature_algorithm`, and the same run id in both documents.
//! - A `public_key.txt` with another key is an error.
//! - The dates of manifest and results must be within the validity of the key, as far as it is known, and not in the
//!   future.
//! - The summary is filled only if signature and hash are valid.

mod base64_lenient;
mod condense;
mod dates;
mod guard;
mod manifest;
mod results;

use std::io::{self, Cursor, Read, Seek};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::manifest::Manifest;
use self::results::Summary;
use crate::archive::layout::{self, Layout};
use crate::archive::{Member, MemberReader};
use crate::keys::{KeyError, KeyRole, PublicKey, TrustedKey};
use crate::limits::{Limits, MANIFEST_BYTES_MAX, TEXT_BYTES_MAX};
use crate::reason::{Reason, Refusal};
use crate::time::whole_seconds;

/// Error of an archive whose manifest names an unknown key. A server's answer has no codes, and its protocol fixes this
/// text: clients compare it.
pub const FINGERPRINT_MISMATCH: &str = "Public key fingerprint mismatch";

/// The result of a verification. As JSON it always has these 13 fields and no others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// True if signature and hash are valid and `errors` is empty.
    pub valid: bool,
    /// True if a trusted key signed the manifest and the manifest names that key.
    pub signature_valid: bool,
    /// True if the manifest contains the hash of the results.
    pub hash_match: bool,
    /// Problems, one sentence each; empty if and only if `valid`.
    pub errors: Vec<String>,
    /// From the results; null unless signature and hash are valid.
    pub run_id: Option<String>,
    /// From the results; null unless signature and hash are valid.
    pub model_slug: Option<String>,
    /// From the results; null unless signature and hash are valid.
    pub subset_pct: Option<i64>,
    /// From the results; null unless signature and hash are valid.
    pub subset_count: Option<i64>,
    /// From the results; null unless signature and hash are valid.
    pub subset_seed: Option<String>,
    /// From the results; null unless signature and hash are valid.
    pub overall_score: Option<f64>,
    /// From the results; null unless signature and hash are valid.
    pub exported_at: Option<String>,
    /// Number of benchmarks in the results; null unless signature and hash are valid.
    pub benchmark_count: Option<u64>,
    /// Fingerprint that the manifest claims. It proves nothing unless `signature_valid`.
    pub public_key_fingerprint: Option<String>,
    #[serde(skip)]
    reasons: Vec<Reason>,
    #[serde(skip)]
    signer: Option<TrustedKey>,
    #[serde(skip)]
    manifest: Option<Map<String, Value>>,
}

impl Verification {
    /// Returns one code for each entry of [`Self::errors`], in the same order. Not part of the JSON.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// Returns the trusted key that signed, if `signature_valid`. Not part of the JSON.
    #[must_use]
    pub fn signer(&self) -> Option<&TrustedKey> {
        self.signer.as_ref()
    }

    /// Returns all fields of the signed manifest, if the archive is `valid`. Not part of the JSON.
    #[must_use]
    pub fn manifest(&self) -> Option<&Map<String, Value>> {
        self.manifest.as_ref()
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.reasons.push(refusal.reason);
        self.errors.push(refusal.text);
    }
}

/// Verifies an archive against keys that are already trusted. Reads `archive` from its start, regardless of its
/// position. Memory use doesn't grow with the archive, since results are hashed and parsed as a stream. `now` is the
/// time of the verification: an archive with a later date isn't valid.
///
/// Every outcome is part of the returned value, including a failure to read the archive ([`Reason::ReadFailed`]).
pub fn verify<R: Read + Seek>(
    archive: R,
    trusted: &[TrustedKey],
    limits: &Limits,
    now: Timestamp,
) -> Verification {
    verify_configured(archive, Ok(trusted), limits, now)
}

/// Verifies an archive in memory; see [`verify`].
#[must_use]
pub fn verify_bytes(archive: &[u8], trusted: &[TrustedKey], limits: &Limits, now: Timestamp) -> Verification {
    verify(Cursor::new(archive), trusted, limits, now)
}

/// Returns the key in an archive if that key signed the archive and nothing else is wrong. This doesn't prove whose key
/// it is.
pub fn embedded_signer<R: Read + Seek>(mut archive: R, limits: &Limits, now: Timestamp) -> Option<PublicKey> {
    let layout = layout::read(&mut archive, limits).ok()?;
    let hint = read_small(&mut archive, &layout, Member::PublicKey).ok()??;
    let key = PublicKey::parse(std::str::from_utf8(&hint).ok()?).ok()?;
    verify(archive, &[TrustedKey::given(key)], limits, now).valid.then_some(key)
}

/// Returns the manifest of an archive without checking its signature, for archives that were verified elsewhere. `None`
/// if it can't be read. Reads `archive` from its start, regardless of its position.
pub fn unverified_manifest<R: Read + Seek>(mut archive: R, limits: &Limits) -> Option<Map<String, Value>> {
    let layout = layout::read(&mut archive, limits).ok()?;
    let bytes = read_small(&mut archive, &layout, Member::Manifest).ok()??;
    Manifest::parse(&bytes).ok().map(Manifest::into_fields)
}

/// Like [`verify`], for a server whose keys may be misconfigured: the archive is read first, and a problem with the
/// keys is reported only if the archive is readable.
pub fn verify_configured<R: Read + Seek>(
    mut archive: R,
    trusted: Result<&[TrustedKey], &KeyError>,
    limits: &Limits,
    now: Timestamp,
) -> Verification {
    try_verify(&mut archive, trusted, limits, now).unwrap_or_else(|refusal| {
        let mut verification = Verification::default();
        verification.refuse(refusal);
        verification
    })
}

fn try_verify<R: Read + Seek>(
    archive: &mut R,
    trusted: Result<&[TrustedKey], &KeyError>,
    limits: &Limits,
    now: Timestamp,
) -> Result<Verification, Refusal> {
    let layout = layout::read(archive, limits)?;
    let manifest_bytes = read_small(archive, &layout, Member::Manifest)?.unwrap_or_default();
    let signature_text = read_small(archive, &layout, Member::Signature)?.unwrap_or_default();
    let key_hint = read_small(archive, &layout, Member::PublicKey)?;
    let trusted = match trusted {
        Ok([]) => return Err(Refusal::keys(&KeyError::NotConfigured)),
        Ok(keys) => keys,
        Err(error) => return Err(Refusal::keys(error)),
    };

    let mut verification = Verification::default();
    let manifest = check_signature(&mut verification, &manifest_bytes, &signature_text, trusted, now);
    if verification.signature_valid {
        check_key_hint(&mut verification, key_hint.as_deref());
    } else {
        verification.signer = None;
    }
    check_results(&mut verification, archive, &layout, manifest.as_ref(), now)?;
    verification.valid =
        verification.signature_valid && verification.hash_match && verification.errors.is_empty();
    verification.manifest = manifest.filter(|_| verification.valid).map(Manifest::into_fields);
    Ok(verification)
}

/// Checks the signature of the manifest, and its fields.
fn check_signature(
    verification: &mut Verification,
    manifest_bytes: &[u8],
    signature_text: &[u8],
    known: &[TrustedKey],
    now: Timestamp,
) -> Option<Manifest> {
    let signature = base64_lenient::decode(signature_text).unwrap_or_else(|| {
        verification.refuse(Refusal::new(Reason::SignatureEncoding, "Signature is not valid base64"));
        Vec::new()
    });
    let manifest = Manifest::parse(manifest_bytes);
    let claimed = manifest.as_ref().ok().and_then(Manifest::fingerprint).map(str::to_owned);
    let named = known.iter().find(|key| Some(key.public_key.fingerprint()) == claimed);
    // The manifest names the key to try. If it names none of ours, any of them may still have signed.
    let candidates = named.map_or(known, std::slice::from_ref);
    let signer = candidates.iter().find(|key| key.public_key.verifies(manifest_bytes, &signature));
    let distrusted = signer.filter(|key| key.role == KeyRole::Distrusted);
    let signer = signer.filter(|key| key.role != KeyRole::Distrusted);
    verification.signature_valid = signer.is_some();
    verification.signer = signer.cloned();
    verification.public_key_fingerprint = claimed;
    if let Some(key) = distrusted {
        let since = key.valid_until.map(whole_seconds).unwrap_or_default();
        let text = format!("The archive is signed by a key that is not trusted any more since {since}");
        verification.refuse(Refusal::new(Reason::KeyDistrusted, text));
    } else if signer.is_none() {
        verification.refuse(Refusal::new(Reason::SignatureInvalid, "Signature verification failed: "));
    }
    match manifest {
        Err(refusal) => {
            verification.refuse(refusal);
            None
        }
        Ok(manifest) => {
            if named.is_none() && !manifest.is_empty() {
                verification.signature_valid = false;
                verification.refuse(Refusal::new(Reason::FingerprintMismatch, FINGERPRINT_MISMATCH));
            }
            // The fields of a manifest by an unknown signer don't matter.
            if verification.signature_valid {
                manifest.check_fields().into_iter().for_each(|refusal| verification.refuse(refusal));
                let date = manifest.generated_at().zip(signer);
                let wrong = date.and_then(|(date, signer)| dates::check_manifest_date(date, signer, now));
                wrong.into_iter().for_each(|refusal| verification.refuse(refusal));
            }
            Some(manifest)
        }
    }
}

fn check_key_hint(verification: &mut Verification, hint: Option<&[u8]>) {
    let Some(hint) = hint else { return };
    let hinted = std::str::from_utf8(hint).ok().and_then(|text| PublicKey::parse(text).ok());
    if hinted != verification.signer.as_ref().map(|key| key.public_key) {
        let text = "The key in public_key.txt is not the trusted key that signed the archive";
        verification.refuse(Refusal::new(Reason::KeyHintDiffers, text));
    }
}

fn check_results<R: Read + Seek>(
    verification: &mut Verification,
    archive: &mut R,
    layout: &Layout,
    manifest: Option<&Manifest>,
    now: Timestamp,
) -> Result<(), Refusal> {
    let entry = layout.find(Member::Results).ok_or_else(Refusal::not_zip)?;
    let damaged = |error| Refusal::member(Member::Results.name(), &error);
    let reader = MemberReader::open(archive, entry).map_err(damaged)?;
    // An archive without a trusted signature is hashed but not parsed.
    let (sha256, summary) = if verification.signature_valid {
        let (sha256, summary) = results::hash_and_parse(reader).map_err(damaged)?;
        (sha256, Some(summary))
    } else {
        (results::hash(reader).map_err(damaged)?, None)
    };

    verification.hash_match = manifest.and_then(Manifest::results_sha256) == Some(sha256.as_str());
    if !verification.hash_match {
        let text = "Results hash does not match manifest";
        verification.refuse(Refusal::new(Reason::ResultsHashMismatch, text));
    }
    match summary {
        None => {}
        Some(Err(refusal)) => verification.refuse(refusal),
        Some(Ok(summary)) if verification.hash_match => {
            if let Some(refusal) = summary.check_against(manifest.and_then(Manifest::run_id)) {
                verification.refuse(refusal);
            }
            // A date that equals the manifest's has been checked already.
            let date = summary.exported_at.as_deref();
            let date = date.filter(|date| manifest.and_then(Manifest::generated_at) != Some(*date));
            let date = date.zip(verification.signer.as_ref());
            let wrong = date.and_then(|(date, signer)| dates::check_results_date(date, signer, now));
            wrong.into_iter().for_each(|refusal| verification.refuse(refusal));
            fill_summary(verification, summary);
        }
        // The results aren't the signed ones, so they aren't reported.
        Some(Ok(_)) => {}
    }
    Ok(())
}

fn fill_summary(verification: &mut Verification, summary: Summary) {
    verification.run_id = summary.run.id;
    verification.model_slug = summary.run.model_slug;
    verification.subset_pct = summary.run.subset_pct;
    verification.subset_count = summary.run.subset_count;
    verification.subset_seed = summary.run.subset_seed;
    verification.overall_score = summary.run.overall_score;
    verification.exported_at = summary.exported_at;
    verification.benchmark_count = Some(summary.benchmark_count);
}

/// Reads a member with a small fixed limit. `None` if the archive doesn't have it.
fn read_small<R: Read + Seek>(
    archive: &mut R,
    layout: &Layout,
    member: Member,
) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(entry) = layout.find(member) else { return Ok(None) };
    let bytes_max = match member {
        Member::Results | Member::Manifest => MANIFEST_BYTES_MAX,
        Member::Signature | Member::PublicKey => TEXT_BYTES_MAX,
    };
    if entry.bytes > bytes_max {
        let text = format!("{} is larger than {bytes_max} bytes", member.name());
        return Err(Refusal::new(Reason::TooLarge, text));
    }
    let mut content = Vec::new();
    MemberReader::open(archive, entry)
        .and_then(|mut reader| reader.read_to_end(&mut content))
        .map_err(|error: io::Error| Refusal::member(member.name(), &error))?;
    Ok(Some(content))
}
