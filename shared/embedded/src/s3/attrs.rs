//! Stored headers and checksums of an object.

use std::collections::BTreeMap;

use s3s::dto::{Timestamp, TimestampFormat};
use serde::{Deserialize, Serialize};

/// Headers that are returned with an object, stored as JSON in its row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Attrs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_disposition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_encoding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_language: Option<String>,
    /// As an HTTP date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires: Option<String>,
    /// Names in lower case, without the prefix `x-amz-meta-`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) metadata: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Checksums::is_empty")]
    pub(super) checksums: Checksums,
    /// True if the checksums cover the parts' checksums instead of the content.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) composite: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Attrs {
    pub(super) fn metadata_map(&self) -> Option<std::collections::HashMap<String, String>> {
        (!self.metadata.is_empty()).then(|| self.metadata.clone().into_iter().collect())
    }

    pub(super) fn expires_timestamp(&self) -> Option<Timestamp> {
        self.expires.as_deref().and_then(|date| Timestamp::parse(TimestampFormat::HttpDate, date).ok())
    }

    /// Removes `aws-chunked`, which describes the transfer and isn't a property of the object.
    pub(super) fn object_encoding(header: Option<String>) -> Option<String> {
        let header = header?;
        if !header.contains("aws-chunked") {
            return Some(header);
        }
        let rest: Vec<&str> =
            header.split(',').map(str::trim).filter(|token| *token != "aws-chunked").collect();
        (!rest.is_empty()).then(|| rest.join(","))
    }
}

/// Formats a timestamp as an HTTP date; `None` for years outside of that format.
pub(super) fn http_date(timestamp: &Timestamp) -> Option<String> {
    let mut text = Vec::with_capacity(32);
    timestamp.format(TimestampFormat::HttpDate, &mut text).ok()?;
    String::from_utf8(text).ok()
}

/// Digests in base64 by algorithm, as in S3's headers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Checksums {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) crc32: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) crc32c: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) crc64nvme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sha1: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<String>,
}

impl Checksums {
    pub(super) fn is_empty(&self) -> bool {
        Algorithm::ALL.iter().all(|algorithm| self.get(*algorithm).is_none())
    }

    pub(super) fn get(&self, algorithm: Algorithm) -> Option<&str> {
        match algorithm {
            Algorithm::Crc32 => self.crc32.as_deref(),
            Algorithm::Crc32c => self.crc32c.as_deref(),
            Algorithm::Crc64Nvme => self.crc64nvme.as_deref(),
            Algorithm::Sha1 => self.sha1.as_deref(),
            Algorithm::Sha256 => self.sha256.as_deref(),
        }
    }

    pub(super) fn set(&mut self, algorithm: Algorithm, value: String) {
        let slot = match algorithm {
            Algorithm::Crc32 => &mut self.crc32,
            Algorithm::Crc32c => &mut self.crc32c,
            Algorithm::Crc64Nvme => &mut self.crc64nvme,
            Algorithm::Sha1 => &mut self.sha1,
            Algorithm::Sha256 => &mut self.sha256,
        };
        *slot = Some(value);
    }
}

/// A checksum algorithm of S3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

impl Algorithm {
    pub(super) const ALL: [Self; 5] = [Self::Crc32, Self::Crc32c, Self::Crc64Nvme, Self::Sha1, Self::Sha256];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "CRC32",
            Self::Crc32c => "CRC32C",
            Self::Crc64Nvme => "CRC64NVME",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
        }
    }

    pub(super) fn header(self) -> &'static str {
        match self {
            Self::Crc32 => "x-amz-checksum-crc32",
            Self::Crc32c => "x-amz-checksum-crc32c",
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Self::Sha1 => "x-amz-checksum-sha1",
            Self::Sha256 => "x-amz-checksum-sha256",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}
