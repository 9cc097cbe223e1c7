//! MD5 and checksums of a body, computed in one pass.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Md5, Sha1, Sha256};

use super::attrs::{Algorithm, Checksums};
use super::error::StoreError;

/// Length of an MD5 digest in bytes.
pub(super) const MD5_BYTES: usize = 16;

/// Computes the ETag and the requested checksums.
pub(super) struct Digests {
    md5: Md5,
    sums: ChecksumHasher,
}

impl Digests {
    pub(super) fn new(requested: impl Fn(Algorithm) -> bool) -> Self {
        Self {
            md5: Md5::new(),
            sums: ChecksumHasher {
                crc32: requested(Algorithm::Crc32).then(Crc32::new),
                crc32c: requested(Algorithm::Crc32c).then(Crc32c::new),
                crc64nvme: requested(Algorithm::Crc64Nvme).then(Crc64Nvme::new),
                sha1: requested(Algorithm::Sha1).then(Sha1::new),
                sha256: requested(Algorithm::Sha256).then(Sha256::new),
            },
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.md5.update(bytes);
        self.sums.update(bytes);
    }

    pub(super) fn finish(self) -> ([u8; MD5_BYTES], Checksums) {
        let sums = self.sums.finalize();
        let checksums = Checksums {
            crc32: sums.checksum_crc32,
            crc32c: sums.checksum_crc32c,
            crc64nvme: sums.checksum_crc64nvme,
            sha1: sums.checksum_sha1,
            sha256: sums.checksum_sha256,
        };
        let mut md5 = [0; MD5_BYTES];
        md5.copy_from_slice(self.md5.finalize().as_ref());
        (md5, checksums)
    }
}

/// Returns the digest of the parts' digests, `BASE64-N`; `None` if a part lacks it.
pub(super) fn composite(algorithm: Algorithm, parts: &[Checksums]) -> Option<String> {
    let mut all = Vec::with_capacity(parts.len() * 32);
    for part in parts {
        all.extend(BASE64_STANDARD.decode(part.get(algorithm)?).ok()?);
    }
    let mut digests = Digests::new(|candidate| candidate == algorithm);
    digests.update(&all);
    let (_, checksums) = digests.finish();
    checksums.get(algorithm).map(|sum| format!("{sum}-{}", parts.len()))
}

/// Compares the received checksums with the computed ones.
pub(super) fn verify(expected: &Checksums, computed: &Checksums) -> Result<(), StoreError> {
    for algorithm in Algorithm::ALL {
        if let Some(sent) = expected.get(algorithm)
            && computed.get(algorithm) != Some(sent)
        {
            return Err(StoreError::BadDigest { algorithm: algorithm.name() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // "123456789" is the check string of the CRC catalog; MD5 and SHA digests are from RFC 1321 and FIPS 180.
    #[test]
    fn known_digests() {
        let mut digests = Digests::new(|_| true);
        digests.update(b"1234");
        digests.update(b"56789");
        let (md5, sums) = digests.finish();
        assert_eq!(hex::encode(md5), "25f9e794323b453885f5181f1b624d0b");
        assert_eq!(
            sums.crc32.as_deref(),
            Some(BASE64_STANDARD.encode(0xcbf4_3926_u32.to_be_bytes()).as_str())
        );
        assert_eq!(
            sums.crc32c.as_deref(),
            Some(BASE64_STANDARD.encode(0xe306_9283_u32.to_be_bytes()).as_str())
        );
        assert_eq!(
            sums.crc64nvme.as_deref(),
            Some(BASE64_STANDARD.encode(0xae8b_1486_0a79_9888_u64.to_be_bytes()).as_str())
        );
        assert_eq!(
            sums.sha256.map(|sum| hex::encode(BASE64_STANDARD.decode(sum).unwrap())).as_deref(),
            Some("15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225")
        );
    }

    #[test]
    fn composite_needs_every_part() {
        let part = Checksums { crc32: Some(BASE64_STANDARD.encode([0, 1, 2, 3])), ..Checksums::default() };
        assert!(composite(Algorithm::Crc32, &[part.clone(), part.clone()]).unwrap().ends_with("-2"));
        assert_eq!(composite(Algorithm::Crc32, &[part.clone(), Checksums::default()]), None);
        assert_eq!(composite(Algorithm::Sha256, &[part]), None);
    }
}
