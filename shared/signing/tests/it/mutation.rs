//! Thousands of damaged archives: the verifier never panics, and accepts only signed content.

use std::io::{Cursor, Read as _};
use std::sync::LazyLock;

use crate::support::{RESULTS, RawEntry, build, good_entries, now, trusted_keys, write_archive};
use bench_signing::{Limits, TrustedKey, Verification, verify_bytes};
use proptest::prelude::*;

const ARCHIVE: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/chutes-signed-export.zip"));

// Created once, since signing is slow without optimization.
static TRUSTED: LazyLock<Vec<TrustedKey>> = LazyLock::new(trusted_keys);
static OURS: LazyLock<Vec<u8>> = LazyLock::new(|| write_archive(RESULTS.as_bytes()).output);
static ENTRIES: LazyLock<Vec<RawEntry>> = LazyLock::new(good_entries);

fn check(archive: &[u8]) -> Verification {
    verify_bytes(archive, &TRUSTED, &Limits::default(), now())
}

/// Reads the members with another ZIP implementation.
fn members(archive: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let mut zip = zip::ZipArchive::new(Cursor::new(archive)).ok()?;
    (0..zip.len())
        .map(|index| {
            let mut member = zip.by_index(index).ok()?;
            let mut content = Vec::new();
            member.read_to_end(&mut content).ok()?;
            Some((member.name().ok()?.into_owned(), content))
        })
        .collect()
}

#[derive(Debug, Clone)]
enum Change {
    Flip { at: prop::sample::Index, mask: u8 },
    Truncate { at: prop::sample::Index },
    Extend { bytes: Vec<u8> },
    Insert { at: prop::sample::Index, bytes: Vec<u8> },
    Remove { at: prop::sample::Index, count: usize },
    Copy { from: prop::sample::Index, to: prop::sample::Index, count: usize },
    Number { at: prop::sample::Index, value: u32 },
}

impl Change {
    fn apply(&self, archive: &mut Vec<u8>) {
        if archive.is_empty() {
            return;
        }
        let length = archive.len();
        match self {
            Self::Flip { at, mask } => archive[at.index(length)] ^= mask,
            Self::Truncate { at } => archive.truncate(at.index(length)),
            Self::Extend { bytes } => archive.extend_from_slice(bytes),
            Self::Insert { at, bytes } => {
                let at = at.index(length);
                archive.splice(at..at, bytes.iter().copied());
            }
            Self::Remove { at, count } => {
                let at = at.index(length);
                archive.drain(at..(at + count).min(length));
            }
            Self::Copy { from, to, count } => {
                let (from, to) = (from.index(length), to.index(length));
                let piece = archive[from..(from + count).min(length)].to_vec();
                let end = (to + piece.len()).min(length);
                archive.splice(to..end, piece);
            }
            Self::Number { at, value } => {
                let at = at.index(length);
                let end = (at + 4).min(length);
                archive.splice(at..end, value.to_le_bytes());
            }
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<prop::sample::Index>;
    let bytes = || prop::collection::vec(any::<u8>(), 1..40);
    prop_oneof![
        4 => (index(), 1u8..).prop_map(|(at, mask)| Change::Flip { at, mask }),
        1 => index().prop_map(|at| Change::Truncate { at }),
        1 => bytes().prop_map(|bytes| Change::Extend { bytes }),
        1 => (index(), bytes()).prop_map(|(at, bytes)| Change::Insert { at, bytes }),
        1 => (index(), 1usize..60).prop_map(|(at, count)| Change::Remove { at, count }),
        1 => (index(), index(), 1usize..60).prop_map(|(from, to, count)| Change::Copy { from, to, count }),
        2 => (index(), prop_oneof![Just(0), Just(u32::MAX), Just(u32::MAX - 1), any::<u32>()])
            .prop_map(|(at, value)| Change::Number { at, value }),
    ]
}

fn assert_honest(original: &[u8], archive: &[u8]) -> Result<(), TestCaseError> {
    let verification = check(archive);
    prop_assert_eq!(verification.valid, verification.errors.is_empty());
    prop_assert_eq!(verification.errors.len(), verification.reasons().len());
    let summary_is_shown = verification.benchmark_count.is_some();
    prop_assert!(!summary_is_shown || (verification.signature_valid && verification.hash_match));
    if verification.valid {
        prop_assert_eq!(members(archive), members(original));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_archives(ours: bool, changes in prop::collection::vec(change(), 1..4)) {
        let original = if ours { OURS.as_slice() } else { ARCHIVE };
        let mut archive = original.to_vec();
        for change in &changes {
            change.apply(&mut archive);
        }
        assert_honest(original, &archive)?;
    }
}

proptest! {
    // Nearly all of these reach the signature check, which is slow without optimization.
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Well-formed archives with changed members, which the checksums of the format don't detect.
    #[test]
    fn changed_members(index in 0usize..4, stored: bool, changes in prop::collection::vec(change(), 1..3)) {
        let original = build(&ENTRIES);
        let good = members(&original).unwrap();
        let mut contents = good.clone();
        for change in &changes {
            change.apply(&mut contents[index].1);
        }
        let make = if stored { RawEntry::stored } else { RawEntry::new };
        let entries: Vec<_> = contents.iter().map(|(name, content)| make(name, content)).collect();
        let archive = build(&entries);
        let verification = check(&archive);
        if verification.valid && contents != good {
            // Several base64 texts decode to the same bytes; only those are accepted.
            prop_assert!(index >= 2);
            let changed = &contents[index].1;
            let meaning = |text: &[u8]| text.iter().filter(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte)).copied().collect::<Vec<_>>();
            let (mut good, mut changed) = (meaning(&good[index].1), meaning(changed));
            // The last character before the padding has unused bits; text after the padding is
            // ignored.
            good.pop();
            changed.truncate(good.len());
            prop_assert_eq!(good, changed);
        } else {
            assert_honest(&original, &archive)?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(!check(&bytes).valid);
    }

    #[test]
    fn arbitrary_entries(
        name in "[a-z./]{0,14}",
        data in prop::collection::vec(any::<u8>(), 0..60),
        method in 0u16..12,
        flags: u16,
        numbers: [u32; 3],
    ) {
        let mut entries = ENTRIES.clone();
        let mut odd = RawEntry::stored(&name, &data);
        odd.change_both(|header| (header.method, header.flags) = (method, flags & 0x0fff));
        (odd.local.crc, odd.local.bytes, odd.local.compressed_bytes) = numbers.into();
        entries.push(odd);
        prop_assert!(!check(&build(&entries)).valid);
    }
}

/// Every prefix of a complete archive, and a flipped bit in every byte.
#[test]
fn every_change_is_detected() {
    for original in [OURS.clone(), ARCHIVE.to_vec()] {
        for length in 0..original.len() {
            assert!(!check(&original[..length]).valid, "{length}");
        }
        for at in 0..original.len() {
            let mut archive = original.clone();
            archive[at] ^= 1 << (at % 8);
            assert_honest(&original, &archive).unwrap();
        }
    }
}
