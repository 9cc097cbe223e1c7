//! Archives of the writer, read by programs that share no code with it.

use std::io::{Cursor, Read as _, Write};

use crate::support::{self, RESULTS, key, manifest_fields, now, trusted_keys, write_archive};
use bench_signing::{
    ArchiveError, ArchiveWriter, CanonicalStream, Limits, SigningKey, TrustedKey, verify_bytes,
};
use serde_json::Value;

#[test]
fn an_independent_check_by_hand() {
    let archive = write_archive(RESULTS.as_bytes());
    // Structure and members by another ZIP implementation, hash and signature by another crypto
    // library.
    let mut zip = zip::ZipArchive::new(Cursor::new(&archive.output)).unwrap();
    let mut members = Vec::new();
    for index in 0..zip.len() {
        let mut member = zip.by_index(index).unwrap();
        assert_eq!(member.compression(), zip::CompressionMethod::Deflated);
        let mut content = Vec::new();
        member.read_to_end(&mut content).unwrap();
        members.push((member.name().unwrap().into_owned(), content));
    }
    let names: Vec<_> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["results.json", "manifest.json", "signature.txt", "public_key.txt"]);
    let [results, manifest, signature, public_key] =
        <[_; 4]>::try_from(members.into_iter().map(|(_, content)| content).collect::<Vec<_>>()).unwrap();

    let sha256 = |bytes: &[u8]| hex::encode(ring::digest::digest(&ring::digest::SHA256, bytes));
    let base64 =
        |text: &[u8]| base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).unwrap();
    let raw_key = base64(&public_key);
    let expected = format!(
        concat!(
            r#"{{"generated_at":"2026-01-02T03:10:00Z","public_key_fingerprint":"{}","results_sha256":"{}","#,
            r#""run_id":"{}","schema_version":"1.0","signature_algorithm":"ed25519","software_version":"0.1.0"}}"#
        ),
        sha256(&raw_key),
        sha256(&results),
        support::RUN_ID
    );
    assert_eq!(results, RESULTS.as_bytes());
    assert_eq!(String::from_utf8(manifest.clone()).unwrap(), expected);
    ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, &raw_key)
        .verify(&manifest, &base64(&signature))
        .unwrap();
    assert_eq!(signature.len(), 88, "no line end");
    assert_eq!(public_key.len(), 44, "no line end");

    assert_eq!(archive.results_sha256, sha256(&results));
    assert_eq!(archive.results_bytes, results.len() as u64);
    assert_eq!(archive.archive_bytes, archive.output.len() as u64);
    assert_eq!(archive.manifest_json, expected);
}

#[test]
fn our_verifier_agrees() {
    let verification =
        verify_bytes(&write_archive(RESULTS.as_bytes()).output, &trusted_keys(), &Limits::default(), now());
    assert!(verification.valid, "{:?}", verification.errors);
    assert_eq!(verification.run_id.as_deref(), Some(support::RUN_ID));
    assert_eq!(verification.overall_score, Some(0.5));
    assert_eq!(verification.benchmark_count, Some(1));
    assert_eq!(verification.public_key_fingerprint, Some(key().fingerprint()));
}

/// The compatible system reads archives with Python's `zipfile`.
#[test]
fn python_reads_the_archive() {
    let script = "import sys,zipfile\n\
        z=zipfile.ZipFile(sys.argv[1])\n\
        assert z.testzip() is None\n\
        print([i.filename for i in z.infolist()], len(z.read('results.json')))";
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("archive.zip");
    let results = large_results(300_000);
    std::fs::write(&path, write_archive(&results).output).unwrap();
    let Ok(output) = std::process::Command::new("python3").args(["-c", script]).arg(&path).output() else {
        eprintln!("python3 is not here: nothing was compared");
        return;
    };
    let expected =
        format!("['results.json', 'manifest.json', 'signature.txt', 'public_key.txt'] {}\n", results.len());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        expected,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Results in canonical form with text that doesn't compress well.
fn large_results(bytes: usize) -> Vec<u8> {
    let mut stream = CanonicalStream::new(Vec::new());
    stream.begin_object().unwrap();
    stream.key("benchmarks").unwrap();
    stream.begin_array().unwrap();
    let (mut number, mut written) = (1u64, 0);
    while written < bytes {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let item = serde_json::json!({"item_id": number.to_string(), "score": number as f64 / 3.0});
        written += item.to_string().len();
        stream.value(&item).unwrap();
    }
    stream.end_array().unwrap();
    stream.field("exported_at", "2026-01-02T03:10:00Z").unwrap();
    stream.field("run", &serde_json::json!({"id": support::RUN_ID})).unwrap();
    stream.field("schema_version", "1.0").unwrap();
    stream.end_object().unwrap();
    stream.finish().unwrap()
}

#[test]
fn the_same_input_gives_the_same_bytes_in_any_pieces() {
    let results = large_results(400_000);
    let whole = write_archive(&results).output;
    for piece in [1_000, 65_536, 65_537] {
        let mut writer = ArchiveWriter::new(Vec::new(), manifest_fields()).unwrap();
        for piece in results.chunks(piece) {
            writer.write_all(piece).unwrap();
            writer.flush().unwrap();
        }
        assert!(writer.finish(&key()).unwrap().output == whole, "{piece}");
    }
    assert!(verify_bytes(&whole, &trusted_keys(), &Limits::default(), now()).valid);
}

#[test]
fn output_is_written_continuously() {
    struct Counter(std::rc::Rc<std::cell::Cell<usize>>);
    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.set(self.0.get() + bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let count = std::rc::Rc::new(std::cell::Cell::new(0));
    let mut writer = ArchiveWriter::new(Counter(count.clone()), manifest_fields()).unwrap();
    let results = large_results(2_000_000);
    writer.write_all(&results).unwrap();
    let before = count.get();
    let finished = writer.finish(&key()).unwrap();
    assert_eq!(count.get() as u64, finished.archive_bytes);
    assert!(
        count.get() - before < 300_000,
        "{} of {} bytes came at the end",
        count.get() - before,
        count.get()
    );
}

#[test]
fn an_unfinished_archive_is_not_readable() {
    let mut output = Vec::new();
    let mut writer = ArchiveWriter::new(&mut output, manifest_fields()).unwrap();
    writer.write_all(&large_results(500_000)).unwrap();
    drop(writer);
    assert!(output.len() > 1000);
    assert!(zip::ZipArchive::new(Cursor::new(&output)).is_err());
    assert_eq!(
        verify_bytes(&output, &trusted_keys(), &Limits::default(), now()).errors,
        ["Invalid zip archive"]
    );
}

#[test]
fn fields_of_the_archive_itself_cannot_be_set() {
    for name in [
        "generated_at",
        "public_key_fingerprint",
        "results_sha256",
        "run_id",
        "schema_version",
        "signature_algorithm",
    ] {
        let mut fields = manifest_fields();
        fields.additional.insert(name.to_owned(), Value::Null);
        let error = ArchiveWriter::new(Vec::new(), fields).unwrap_err();
        assert!(matches!(error, ArchiveError::ReservedField(field) if field == name));
    }
    let mut fields = manifest_fields();
    fields.additional.insert("notes".to_owned(), "x".repeat(1 << 20).into());
    let error = ArchiveWriter::new(Vec::new(), fields).unwrap().finish(&key()).unwrap_err();
    assert!(matches!(error, ArchiveError::ManifestTooLarge { .. }));
}

#[test]
fn a_failing_writer_is_an_error() {
    struct FullWriter(usize);
    impl Write for FullWriter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let count = bytes.len().min(self.0);
            self.0 -= count;
            if count == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(count) }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let size = write_archive(RESULTS.as_bytes()).output.len();
    for room in 0..size {
        let result = ArchiveWriter::new(FullWriter(room), manifest_fields()).and_then(|mut writer| {
            writer.write_all(RESULTS.as_bytes())?;
            writer.finish(&key())
        });
        assert!(matches!(result, Err(ArchiveError::Write(_))), "{room}");
    }
}

#[test]
fn archives_of_retired_keys_stay_valid() {
    let home = tempfile::tempdir().unwrap();
    let created_at = "2026-01-02T03:10:00Z".parse().unwrap();
    let mut ring = bench_signing::KeyRing::open(home.path(), created_at).unwrap();
    let write = |key: &SigningKey| {
        let mut writer = ArchiveWriter::new(Vec::new(), manifest_fields()).unwrap();
        writer.write_all(RESULTS.as_bytes()).unwrap();
        writer.finish(key).unwrap().output
    };
    let old = write(ring.signing_key().unwrap());
    ring.rotate(created_at).unwrap();
    let new = write(ring.signing_key().unwrap());
    let foreign = write(&key());
    ring.pin(key().public_key(), "acme", created_at).unwrap();
    for (archive, role) in [(new, "current"), (old, "retired"), (foreign, "pinned")] {
        let verification = verify_bytes(&archive, &ring.trusted_keys(), &Limits::default(), now());
        assert!(verification.valid, "{role} {:?}", verification.errors);
        let signer: &TrustedKey = verification.signer().unwrap();
        assert_eq!(serde_json::to_value(signer.role).unwrap(), role);
    }
}
