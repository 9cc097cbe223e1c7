//! Archives made to mislead the verifier or exhaust its resources: each is rejected with the right
//! reason.

use std::io::{Cursor, Read, Seek, SeekFrom};

use crate::support::{
    self, RESULTS, RUN_ID, RawEntry, build, good_entries, key, now, signed_entries, trusted_keys,
    write_archive,
};
use bench_signing::{
    KeyError, KeyRole, Limits, Reason, SigningKey, TrustedKey, Verification, canonical, embedded_signer,
    verify, verify_bytes, verify_configured,
};
use serde_json::{Value, json};

fn check(archive: &[u8]) -> Verification {
    let verification = verify_bytes(archive, &trusted_keys(), &Limits::default(), now());
    assert_eq!(verification.valid, verification.errors.is_empty());
    assert_eq!(verification.reasons().len(), verification.errors.len());
    verification
}

/// Asserts that the archive is rejected for this one reason, and that none of its content is
/// reported.
fn assert_refused(archive: &[u8], reason: Reason) -> String {
    let mut verification = check(archive);
    assert_eq!(verification.reasons(), [reason], "{:?}", verification.errors);
    let text = verification.errors.remove(0);
    verification.errors.clear();
    assert_eq!(serde_json::to_value(verification).unwrap(), json!(Verification::default()), "{text}");
    text
}

fn archive_with(change: impl FnOnce(&mut Vec<RawEntry>)) -> Vec<u8> {
    let mut entries = good_entries();
    change(&mut entries);
    build(&entries)
}

#[test]
fn the_unchanged_archive_is_good_in_every_harmless_form() {
    let mut plain = good_entries();
    assert!(check(&build(&plain)).valid);
    plain.pop();
    assert!(check(&build(&plain)).valid, "without public_key.txt");
    plain.reverse();
    assert!(check(&build(&plain)).valid, "in another order");
    let stored = archive_with(|entries| entries[1] = RawEntry::stored("manifest.json", &manifest()));
    assert!(check(&stored).valid, "stored");
    for signature in [true, false] {
        let described =
            good_entries().into_iter().map(|entry| entry.with_descriptor(signature)).collect::<Vec<_>>();
        assert!(check(&build(&described)).valid, "with descriptors");
    }
    let extra =
        archive_with(|entries| entries[0].change_both(|header| header.extra = b"UT\x05\0\x03abcd".to_vec()));
    assert!(check(&extra).valid, "with times in extra fields");
}

fn manifest() -> Vec<u8> {
    write_archive(RESULTS.as_bytes()).manifest_json.into_bytes()
}

#[test]
fn entries_that_should_not_be_there() {
    let text =
        assert_refused(&archive_with(|e| e.push(RawEntry::new("notes.txt", b"x"))), Reason::ExtraEntry);
    assert_eq!(text, "The archive has an entry that does not belong there: \"notes.txt\"");
    assert_refused(&archive_with(|e| e.push(RawEntry::new("Results.json", b"{}"))), Reason::ExtraEntry);
    assert_refused(&archive_with(|e| e.push(RawEntry::new("", b"x"))), Reason::ExtraEntry);
    assert_refused(&archive_with(|e| e.push(RawEntry::new(&"é".repeat(9000), b"x"))), Reason::ExtraEntry);
    for index in 0..4 {
        let twice = archive_with(|entries| entries.push(entries[index].clone()));
        assert_refused(&twice, Reason::DuplicateEntry);
        let twice = archive_with(|entries| entries.insert(0, RawEntry::new("results.json", b"{}")));
        assert_refused(&twice, Reason::DuplicateEntry);
    }
    for path in
        ["../results.json", "/results.json", "a/", "C:\\x", "x\0", "..", "./results.json", "results.json/"]
    {
        assert_refused(&archive_with(|e| e.push(RawEntry::new(path, b"x"))), Reason::UnsafeName);
    }
    let many = archive_with(|entries| entries.extend((0..5).map(|n| RawEntry::new(&n.to_string(), b""))));
    assert_refused(&many, Reason::TooManyEntries);
}

#[test]
fn missing_entries() {
    for (index, name) in [(0, "results.json"), (1, "manifest.json"), (2, "signature.txt")] {
        let text = assert_refused(&archive_with(|entries| drop(entries.remove(index))), Reason::MissingFile);
        assert_eq!(
            text,
            format!("Missing required file: \"There is no item named '{name}' in the archive\"")
        );
    }
    assert_refused(&build(&[]), Reason::MissingFile);
}

#[test]
fn bytes_outside_of_the_entries() {
    let good = build(&good_entries());
    let joined = |parts: &[&[u8]]| parts.concat();
    assert_refused(&joined(&[b"x", &good]), Reason::DataBeforeArchive);
    assert_refused(&joined(&[&good, &good]), Reason::DataBeforeArchive);
    assert_refused(&joined(&[&good, b"x"]), Reason::DataAfterArchive);
    assert_refused(&joined(&[&good, &[0; 22]]), Reason::DataAfterArchive);
    assert_refused(&joined(&[&good, &[b'x'; 70_000]]), Reason::NotZip);

    let (records, end) = good.split_at(good.len() - 22);
    assert_refused(&joined(&[records, b"junk", end]), Reason::DataBetweenEntries);
    let mut commented = good.clone();
    let length = commented.len();
    commented[length - 2] = 5;
    assert_refused(&joined(&[&commented, b"hello"]), Reason::ArchiveComment);
    assert_refused(&commented, Reason::NotZip);

    // Entries that are in the file but not in the directory, with adjusted offsets.
    let gap = archive_with(|entries| entries[1].descriptor = b"junk".to_vec());
    assert_refused(&gap, Reason::DataBetweenEntries);
    let gap = archive_with(|entries| entries[3].descriptor = build(&good_entries()));
    assert_refused(&gap, Reason::DataBetweenEntries);
    let hidden_first = archive_with(|entries| entries.insert(0, RawEntry::new("results.json", b"{}")));
    assert_refused(&without_first_directory_entry(hidden_first), Reason::DataBeforeArchive);
    let gap = archive_with(|entries| {
        entries[1] = entries[1].clone().with_descriptor(true);
        entries[1].descriptor.extend_from_slice(b"more");
    });
    assert_refused(&gap, Reason::DataBetweenEntries);
    let comment = archive_with(|entries| entries[2].central.comment = b"hello".to_vec());
    assert_refused(&comment, Reason::ArchiveComment);
}

fn without_first_directory_entry(mut archive: Vec<u8>) -> Vec<u8> {
    let end = archive.len() - 22;
    let start = u32::from_le_bytes(archive[end + 16..end + 20].try_into().unwrap()) as usize;
    let entry_bytes = 46 + usize::from(archive[start + 28]);
    archive.drain(start..start + entry_bytes);
    let end = archive.len() - 22;
    archive[end + 8] -= 1;
    archive[end + 10] -= 1;
    let directory_bytes =
        u32::from_le_bytes(archive[end + 12..end + 16].try_into().unwrap()) - entry_bytes as u32;
    archive[end + 12..end + 16].copy_from_slice(&directory_bytes.to_le_bytes());
    archive
}

#[test]
fn headers_that_disagree() {
    for index in 0..4 {
        let changes: [fn(&mut RawEntry); 7] = [
            |entry| entry.local.name[0] ^= 1,
            |entry| entry.local.method = 0,
            |entry| entry.local.crc ^= 1,
            |entry| entry.local.bytes += 1,
            |entry| entry.local.compressed_bytes += 1,
            |entry| entry.local.flags = 1 << 11,
            |entry| (entry.local.crc, entry.local.bytes, entry.local.compressed_bytes) = (0, 0, 0),
        ];
        for change in changes {
            assert_refused(&archive_with(|entries| change(&mut entries[index])), Reason::HeadersDisagree);
        }
        let wrong_descriptor = archive_with(|entries| {
            entries[index] = entries[index].clone().with_descriptor(true);
            entries[index].descriptor[5] ^= 1;
        });
        assert_refused(&wrong_descriptor, Reason::HeadersDisagree);
        let other_name = [b"up\x06\0\x01abcde".as_slice(), b"up\x0b\0\x01\0\0\0\0secret"];
        for extra in other_name {
            let renamed = archive_with(|entries| entries[index].central.extra = extra.to_vec());
            assert_refused(&renamed, Reason::HeadersDisagree);
        }
    }
}

#[test]
fn parts_of_the_format_that_are_not_needed() {
    let both = |change: fn(&mut support::RawHeader)| archive_with(|entries| entries[1].change_both(change));
    assert_refused(&both(|header| header.flags |= 1), Reason::Encrypted);
    assert_refused(&both(|header| header.flags |= 1 << 6), Reason::Encrypted);
    assert_refused(&both(|header| header.flags |= 1 << 13), Reason::Encrypted);
    assert_refused(
        &both(|header| header.extra = b"\x01\x99\x07\0\x02\0AE\x03\x08\0".to_vec()),
        Reason::Encrypted,
    );
    assert_refused(&both(|header| header.flags |= 1 << 5), Reason::UnsupportedFeature);
    for method in [1, 9, 12, 14, 93, 95, 99] {
        let archive = archive_with(|entries| entries[1].change_both(|header| header.method = method));
        let text = assert_refused(&archive, Reason::UnsupportedCompression);
        assert!(text.contains(&method.to_string()), "{text}");
    }
    assert_refused(
        &both(|header| header.extra = b"\x01\0\x08\0abcdefgh".to_vec()),
        Reason::UnsupportedFeature,
    );
    assert_refused(&both(|header| header.bytes = u32::MAX), Reason::UnsupportedFeature);
    assert_refused(
        &archive_with(|entries| entries[1].local.extra = b"\x01\0\0\0".to_vec()),
        Reason::UnsupportedFeature,
    );
    let stored = archive_with(|entries| {
        entries[1] = RawEntry::stored("manifest.json", &manifest()).with_descriptor(true);
    });
    assert_refused(&stored, Reason::UnsupportedFeature);

    let good = build(&good_entries());
    let end = good.len() - 22;
    for (offset, value) in [(4, 1), (6, 1), (8, 3), (10, 3)] {
        let mut archive = good.clone();
        archive[end + offset] = value;
        assert_refused(&archive, Reason::UnsupportedFeature);
    }
    let mut locator = good[..end].to_vec();
    locator.extend_from_slice(b"PK\x06\x07");
    locator.extend_from_slice(&[0; 16]);
    locator.extend_from_slice(&good[end..]);
    assert_refused(&locator, Reason::UnsupportedFeature);
}

#[test]
fn damage() {
    let flip = |index: usize| archive_with(|entries| entries[index].data[3] ^= 0x55);
    for index in 0..4 {
        let text = assert_refused(&flip(index), Reason::Damaged);
        assert!(
            text.contains(["results.json", "manifest.json", "signature.txt", "public_key.txt"][index]),
            "{text}"
        );
        let changes: [fn(&mut RawEntry); 6] = [
            |entry| entry.change_both(|header| header.crc ^= 1),
            |entry| entry.change_both(|header| header.bytes += 1),
            |entry| entry.change_both(|header| header.bytes -= 1),
            // The data ends before the member does, or continues after it.
            |entry| {
                entry.data.pop();
                entry.change_both(|header| header.compressed_bytes -= 1);
            },
            |entry| {
                entry.data.push(0);
                entry.change_both(|header| header.compressed_bytes += 1);
            },
            |entry| {
                entry.data.clear();
                entry.change_both(|header| header.compressed_bytes = 0);
            },
        ];
        for change in changes {
            assert_refused(&archive_with(|entries| change(&mut entries[index])), Reason::Damaged);
        }
    }
    // All bytes are present but the stream has no end: another reader might continue into the next
    // entry.
    let endless = archive_with(|entries| {
        let mut data = vec![0, manifest().len() as u8, (manifest().len() >> 8) as u8];
        data.extend([!data[1], !data[2]]);
        data.extend(manifest());
        entries[1].change_both(|header| header.compressed_bytes = data.len() as u32);
        entries[1].data = data;
    });
    assert_refused(&endless, Reason::Damaged);
    assert_refused(&archive_with(|e| e[0].central.extra = b"UT\xff\0".to_vec()), Reason::Damaged);
}

#[test]
fn bombs_are_refused_by_their_declared_sizes() {
    let zeros = vec![b' '; 8 << 20];
    assert_refused(
        &archive_with(|entries| entries[0] = RawEntry::new("results.json", &zeros)),
        Reason::RatioTooHigh,
    );
    assert_refused(
        &archive_with(|entries| entries[1] = RawEntry::new("manifest.json", &zeros)),
        Reason::RatioTooHigh,
    );
    let huge = archive_with(|entries| entries[0].change_both(|header| header.bytes = u32::MAX - 1));
    assert_refused(&huge, Reason::RatioTooHigh);

    // A header with a smaller size than the data: reading stops at the declared size.
    let liar = archive_with(|entries| {
        entries[0] = RawEntry::new("results.json", &zeros);
        entries[0].change_both(|header| header.bytes = 1000);
    });
    assert_refused(&liar, Reason::Damaged);

    let large = RawEntry::stored("manifest.json", &vec![b' '; (1 << 20) + 1]);
    let text = assert_refused(&archive_with(|entries| entries[1] = large), Reason::TooLarge);
    assert_eq!(text, "manifest.json is larger than 1048576 bytes");
    for index in [2, 3] {
        let name = ["signature.txt", "public_key.txt"][index - 2];
        let large = RawEntry::new(name, &[b'A'; 4097]);
        assert_refused(&archive_with(|entries| entries[index] = large), Reason::TooLarge);
    }

    let good = build(&good_entries());
    let total = RESULTS.len() + manifest().len() + 88 + 44;
    let limits = |total_bytes_max| Limits { total_bytes_max, ..Limits::default() };
    assert!(verify_bytes(&good, &trusted_keys(), &limits(total as u64), now()).valid);
    let refused = verify_bytes(&good, &trusted_keys(), &limits(total as u64 - 1), now());
    assert_eq!(refused.reasons(), [Reason::TooLarge]);
}

/// Returns an archive with correctly signed members, whatever their content.
fn signed_archive(results: &str, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let sha256 = hex::encode(ring::digest::digest(&ring::digest::SHA256, results.as_bytes()));
    let mut manifest: Value = serde_json::from_slice(&manifest()).unwrap();
    manifest["results_sha256"] = sha256.into();
    change(&mut manifest);
    build(&signed_entries(results.as_bytes(), &canonical::to_string(&manifest).unwrap()))
}

#[test]
fn manifests_of_wrong_form() {
    let with = |field: &'static str, value: Value| {
        let verification = check(&signed_archive(RESULTS, |manifest| manifest[field] = value));
        assert!(!verification.valid, "{field}");
        (verification.reasons().to_vec(), verification)
    };
    for wrong in [json!(1), json!(null), json!(["x"])] {
        assert_eq!(with("run_id", wrong.clone()).0, [Reason::ManifestWrongTypes]);
        assert_eq!(with("generated_at", wrong.clone()).0, [Reason::ManifestWrongTypes]);
        assert_eq!(with("schema_version", wrong.clone()).0, [Reason::UnsupportedSchema]);
        assert_eq!(with("signature_algorithm", wrong.clone()).0, [Reason::UnsupportedAlgorithm]);
        let (reasons, verification) = with("results_sha256", wrong.clone());
        assert_eq!(reasons, [Reason::ResultsHashMismatch]);
        assert!(verification.signature_valid && verification.run_id.is_none());
        let (reasons, verification) = with("public_key_fingerprint", wrong);
        assert_eq!(reasons, [Reason::FingerprintMismatch]);
        assert!(!verification.signature_valid && verification.public_key_fingerprint.is_none());
    }
    let (reasons, verification) = with("schema_version", json!("2.0"));
    assert_eq!(reasons, [Reason::UnsupportedSchema]);
    assert_eq!(verification.errors, ["Manifest schema_version must be \"1.0\" but is \"\\\"2.0\\\"\""]);
    assert!(verification.signature_valid && verification.hash_match);
    assert_eq!(with("run_id", json!("another")).0, [Reason::RunMismatch]);
    let (_, verification) = with("schema_version", json!("x".repeat(100_000)));
    assert!(verification.errors[0].len() < 300, "errors do not repeat what the archive says at length");

    let text = |manifest: &str| check(&build(&signed_entries(RESULTS.as_bytes(), manifest)));
    for not_an_object in ["[]", "\"text\"", "1", "null", "[{}]"] {
        let verification = text(not_an_object);
        assert_eq!(verification.reasons(), [Reason::ManifestWrongTypes, Reason::ResultsHashMismatch]);
        assert!(verification.signature_valid && !verification.hash_match);
    }
    for not_json in ["", "{", "{\"a\":NaN}", "\u{feff}{}", "{\"a\":\"\\ud800\"}"] {
        assert_eq!(
            text(not_json).reasons(),
            [Reason::ManifestNotJson, Reason::ResultsHashMismatch],
            "{not_json}"
        );
    }
    let good = String::from_utf8(manifest()).unwrap();
    let twice = text(&good.replace('}', ",\"run_id\":\"other\"}"));
    assert_eq!(twice.reasons(), [Reason::ManifestWrongTypes, Reason::ResultsHashMismatch]);
    assert_eq!(twice.errors[0], "Manifest JSON repeats the key \"run_id\"");
    let empty = text("{}");
    assert!(empty.signature_valid && !empty.hash_match && !empty.valid);
    let deep = "[".repeat(500_000);
    assert_eq!(text(&deep).reasons()[0], Reason::ManifestNotJson);
}

/// Returns digits that don't compress well.
fn digits(count: usize) -> String {
    let mut state = 1u64;
    let digit = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'1' + (state >> 33) as u8 % 9)
    };
    (0..count).map(digit).collect()
}

#[test]
fn results_of_wrong_form() {
    let check = |results: &str| check(&signed_archive(results, |_| {}));
    let without = |field: &str, value: &str| RESULTS.replace(field, value);
    let long = digits((1 << 20) + 10);
    let wrong_types = [
        "[]".to_owned(),
        "\"text\"".to_owned(),
        "1".to_owned(),
        "null".to_owned(),
        "{}".to_owned(),
        format!("[{RESULTS}]"),
        without("\"run\":{", "\"run\":[], \"ran\":{"),
        without("\"run\":{", "\"run\":null, \"ran\":{"),
        without("\"run\":{", "\"ran\":{"),
        without("\"benchmarks\":[", "\"benchmarks\":{}, \"b\":["),
        without("\"benchmarks\":[", "\"b\":["),
        without("\"id\":\"", "\"id\":1, \"i\":\""),
        without("\"id\":\"", "\"i\":\""),
        without("\"id\":\"", "\"id\":\"twice\", \"id\":\""),
        without("0.5", "\"0.5\""),
        without("\"subset_pct\":100", "\"subset_pct\":33.5"),
        without("\"subset_count\":3", "\"subset_count\":[3]"),
        without("\"subset_count\":3", "\"subset_count\":18446744073709551616"),
        without("\"2026-01-02T03:10:00Z\"", "5"),
        without("\"s\"", "{}"),
        without("\"1.0\"", "1.0"),
        // Too large to be parsed.
        without("\"run\":{", &format!("\"run\":{{\"model_slug\":\"{long}\",")),
        without("\"run\":{", &format!("\"run\":{{\"overall_score\":{long}.5,")),
        without("\"run\":{", &format!("\"{long}\":1,\"run\":{{")),
        without("\"prompt\":", &format!("\"a\":{}{},\"prompt\":", "[".repeat(200), "]".repeat(200))),
    ];
    for results in wrong_types {
        let verification = check(&results);
        let start = results.get(..120).unwrap_or(&results);
        assert_eq!(verification.reasons(), [Reason::ResultsWrongTypes], "{start} {:?}", verification.errors);
        assert!(verification.signature_valid && verification.hash_match);
        assert!(verification.errors[0].len() < 300);
        assert!(!verification.errors[0].contains(" line "), "{:?}", verification.errors);
    }
    let cut_off = RESULTS.get(..RESULTS.len() - 1).unwrap();
    for not_json in ["", " ", "nope", "NaN", &format!("{RESULTS}x"), cut_off, &without("0.5", "NaN")] {
        let verification = check(not_json);
        assert_eq!(verification.reasons(), [Reason::ResultsNotJson], "{not_json}");
        assert_eq!(verification.errors, ["Results JSON is invalid"]);
        assert!(verification.run_id.is_none());
    }
    for version in ["\"1.1\"", "\"\"", "null"] {
        let verification = check(&without("\"1.0\"", version));
        assert_eq!(verification.reasons(), [Reason::UnsupportedSchema]);
    }
    assert!(check(&format!(" \n{RESULTS}\r\n")).valid, "white space is JSON");
    assert!(check(&without("0.5", "1")).overall_score == Some(1.0), "a whole number is a score");
    assert!(check(&without("\"subset_pct\":100", "\"subset_pct\":null")).valid);
    assert!(check(&without("\"prompt\":", "\"huge\":18446744073709551616,\"prompt\":")).valid);
}

#[test]
fn results_that_are_not_utf8() {
    let mut results = RESULTS.as_bytes().to_vec();
    let at = RESULTS.find("prompt").unwrap();
    results[at] = 0xff;
    let sha256 = hex::encode(ring::digest::digest(&ring::digest::SHA256, &results));
    let mut manifest: Value = serde_json::from_slice(&manifest()).unwrap();
    manifest["results_sha256"] = sha256.into();
    let archive = build(&signed_entries(&results, &canonical::to_string(&manifest).unwrap()));
    assert!(!check(&archive).valid);
}

#[test]
fn the_key_in_the_archive_is_only_a_hint() {
    let other = SigningKey::generate().unwrap();
    for hint in [other.public_key_base64(), String::new(), "junk".to_owned()] {
        let archive = archive_with(|entries| entries[3] = RawEntry::new("public_key.txt", hint.as_bytes()));
        let verification = check(&archive);
        assert_eq!(verification.reasons(), [Reason::KeyHintDiffers], "{hint}");
        assert!(verification.signature_valid && verification.hash_match && verification.run_id.is_some());
    }
    // A consistent archive by someone else doesn't become trusted by containing its own key.
    let stranger = [TrustedKey::given(other.public_key())];
    let verification = verify_bytes(&build(&good_entries()), &stranger, &Limits::default(), now());
    assert_eq!(verification.reasons(), [Reason::SignatureInvalid, Reason::FingerprintMismatch]);
    assert!(verification.run_id.is_none());
}

#[test]
fn the_key_that_the_manifest_names_must_have_signed() {
    let other = SigningKey::generate().unwrap();
    let both = [TrustedKey::given(other.public_key()), TrustedKey::given(key().public_key())];
    assert!(verify_bytes(&build(&good_entries()), &both, &Limits::default(), now()).valid);
    let claims_other =
        signed_archive(RESULTS, |manifest| manifest["public_key_fingerprint"] = other.fingerprint().into());
    let verification = verify_bytes(&claims_other, &both, &Limits::default(), now());
    assert_eq!(verification.reasons(), [Reason::SignatureInvalid]);
    assert!(!verification.signature_valid);
}

#[test]
fn keys_are_checked_after_the_archive() {
    let good = build(&good_entries());
    let verification = verify_bytes(&good, &[], &Limits::default(), now());
    assert_eq!(verification.errors, ["BENCH_SIGNING_PRIVATE_KEY is not configured"]);
    assert_eq!(verification.reasons(), [Reason::KeysUnavailable]);
    let invalid = |archive| {
        let error = Err(&KeyError::InvalidPublicKey);
        verify_configured(Cursor::new(archive), error, &Limits::default(), now())
    };
    assert_eq!(invalid(good).errors, ["Invalid BENCH_SIGNING_PUBLIC_KEY"]);
    assert_eq!(invalid(b"hello".to_vec()).errors, ["Invalid zip archive"]);
}

#[test]
fn a_disk_that_fails_is_not_the_archive_s_fault() {
    struct FailingReader<R>(R, u64);
    impl<R: Read> Read for FailingReader<R> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.1 = self.1.checked_sub(1).ok_or_else(|| std::io::Error::other("disk on fire"))?;
            self.0.read(buffer)
        }
    }
    impl<R: Seek> Seek for FailingReader<R> {
        fn seek(&mut self, position: SeekFrom) -> std::io::Result<u64> {
            self.0.seek(position)
        }
    }
    let good = build(&good_entries());
    let mut failures = 0;
    for reads in 0.. {
        let verification =
            verify(FailingReader(Cursor::new(&good), reads), &trusted_keys(), &Limits::default(), now());
        if verification.valid {
            break;
        }
        assert_eq!(verification.reasons(), [Reason::ReadFailed], "{reads}");
        assert_eq!(verification.errors, ["The archive could not be read: disk on fire"]);
        failures += 1;
    }
    assert!(failures > 10);
    assert!(
        good.windows(RUN_ID.len()).all(|window| window != RUN_ID.as_bytes()),
        "the members are compressed"
    );
}

#[test]
fn entries_that_are_not_regular_files() {
    for (attributes, is_refused) in [
        (0o100_644_u32 << 16, false),
        (0o100_600 << 16 | 0x20, false),
        // Python writes permissions without a file type.
        (0o600 << 16, false),
        (0, false),
        (0o120_777 << 16, true),
        (0o040_755 << 16, true),
        (0o020_644 << 16, true),
        (0o010_644 << 16, true),
        (0o140_644 << 16, true),
        (0x10, true),
        (0x08, true),
    ] {
        for member in 0..4 {
            let archive = archive_with(|entries| entries[member].central.attributes = attributes);
            if is_refused {
                let text = assert_refused(&archive, Reason::NotARegularFile);
                assert!(text.contains("symbolic link"), "{text}");
            } else {
                assert!(check(&archive).valid, "{attributes:o} {member}");
            }
        }
    }
    // The same in the Unix extra fields.
    let pkware = [&[0x0d, 0, 18, 0][..], &[0; 12], b"target"].concat();
    let asi = [&[0x6e, 0x75, 14, 0][..], &[0; 4], &0o120_777_u16.to_le_bytes(), &[0; 8]].concat();
    for extra in [pkware, asi] {
        let archive = archive_with(|entries| entries[0].change_both(|header| header.extra = extra.clone()));
        assert_refused(&archive, Reason::NotARegularFile);
    }
    let times = [&[0x0d, 0, 12, 0][..], &[0; 12]].concat();
    assert!(
        check(&archive_with(|entries| entries[0].change_both(|header| header.extra = times.clone()))).valid
    );
}

/// Returns an archive whose manifest and results have these dates.
fn dated_archive(generated_at: &str, exported_at: &str) -> Vec<u8> {
    let results = RESULTS.replace("2026-01-02T03:10:00Z", exported_at);
    signed_archive(&results, |manifest| manifest["generated_at"] = generated_at.into())
}

#[test]
fn an_archive_is_dated_within_its_key_s_validity_and_not_in_the_future() {
    use Reason::{DateInFuture, DateOutsideValidity, ManifestWrongTypes, ResultsWrongTypes};
    let at = |text: &str| Some(text.parse().unwrap());
    let within = |from: Option<&str>, until: Option<&str>| TrustedKey {
        valid_from: from.and_then(at),
        valid_until: until.and_then(at),
        ..TrustedKey::given(key().public_key())
    };
    let january = within(Some("2026-01-02T03:00:00.9Z"), Some("2026-01-02T04:00:00.1Z"));
    let (since, unknown) = (within(Some("2026-01-02T03:00:00Z"), None), within(None, None));
    for (key, generated, exported, expected) in [
        (&january, "2026-01-02T03:00:00Z", "2026-01-02T03:00:00Z", &[][..]),
        (&january, "2026-01-02T04:00:00Z", "2026-01-02T04:00:00Z", &[]),
        // The run was completed before the key was created; the archive's date is within the key's
        // validity.
        (&january, "2026-01-02T03:00:00Z", "2025-12-24T00:00:00Z", &[]),
        (&january, "2026-01-02T02:59:59Z", "2026-01-02T02:59:59Z", &[DateOutsideValidity]),
        (&january, "2026-01-02T04:00:01Z", "2026-01-02T04:00:01Z", &[DateOutsideValidity]),
        (&january, "2026-01-02T03:30:00Z", "2026-01-02T04:00:01Z", &[DateOutsideValidity]),
        (&january, "2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z", &[DateOutsideValidity]),
        (&january, "2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z", &[DateOutsideValidity; 2]),
        (&since, "2026-02-01T00:05:00Z", "2026-02-01T00:05:00Z", &[]),
        (&since, "2026-02-01T00:05:01Z", "2026-02-01T00:05:01Z", &[DateInFuture]),
        (&unknown, "2030-01-01T00:00:00Z", "2026-01-02T03:10:00Z", &[DateInFuture]),
        (&unknown, "2026-01-02T03:10:00Z", "2030-01-01T00:00:00Z", &[DateInFuture]),
        (&unknown, "1999-01-01T00:00:00Z", "1999-01-01T00:00:00Z", &[]),
        (&unknown, "2030-01-01T00:00:00+99:00", "2026-01-02T03:10:00Z", &[ManifestWrongTypes]),
        (&unknown, "some day", "2026-01-02T03:10:00Z", &[ManifestWrongTypes]),
        (&unknown, "2026-01-02T03:10:00Z", "some day", &[ResultsWrongTypes]),
    ] {
        let verification = verify_bytes(
            &dated_archive(generated, exported),
            std::slice::from_ref(key),
            &Limits::default(),
            now(),
        );
        assert_eq!(verification.reasons(), expected, "{generated} {exported} {:?}", verification.errors);
        assert_eq!(verification.valid, expected.is_empty());
        assert!(verification.signature_valid && verification.hash_match);
    }
}

#[test]
fn a_distrusted_key_is_refused_by_name() {
    let distrusted = TrustedKey {
        role: KeyRole::Distrusted,
        valid_until: Some(now()),
        ..TrustedKey::given(key().public_key())
    };
    let other = TrustedKey::given(SigningKey::generate().unwrap().public_key());
    let verification =
        verify_bytes(&build(&good_entries()), &[other, distrusted.clone()], &Limits::default(), now());
    assert_eq!(verification.reasons(), [Reason::KeyDistrusted]);
    assert_eq!(
        verification.errors,
        ["The archive is signed by a key that is not trusted any more since 2026-02-01T00:00:00Z"]
    );
    assert!(
        !verification.signature_valid && verification.signer().is_none() && verification.run_id.is_none()
    );
    // An archive that it didn't sign isn't attributed to it.
    let spoiled = archive_with(|entries| entries[2] = RawEntry::new("signature.txt", b"AAAA"));
    let verification = verify_bytes(&spoiled, &[distrusted], &Limits::default(), now());
    assert_eq!(verification.reasons(), [Reason::SignatureInvalid]);
}

#[test]
fn the_embedded_signer_of_a_valid_archive_is_found() {
    let within = |archive: &[u8]| embedded_signer(Cursor::new(archive), &Limits::default(), now());
    assert_eq!(within(&build(&good_entries())), Some(key().public_key()));
    let other = SigningKey::generate().unwrap().public_key_base64();
    for unsound in [
        archive_with(|entries| drop(entries.pop())),
        archive_with(|entries| entries[3] = RawEntry::new("public_key.txt", other.as_bytes())),
        archive_with(|entries| entries[0] = RawEntry::new("results.json", b"{}")),
        archive_with(|entries| entries[0].central.attributes = 0o120_777 << 16),
        dated_archive("2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z"),
        b"PK".to_vec(),
    ] {
        assert_eq!(within(&unsound), None);
    }
}
