//! Published test vectors of the compatible system.

use bench_signing::{
    CanonicalError, Limits, PublicKey, Reason, SigningKey, TrustedKey, Verification, canonical, verify_bytes,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

const VECTORS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/signed-export.json"));
const ARCHIVE: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/chutes-signed-export.zip"));

#[derive(Deserialize)]
struct Vectors {
    private_key_base64: String,
    private_key_pem_pkcs8: String,
    public_key_base64: String,
    public_key_pem_spki: String,
    public_key_fingerprint: String,
    results_json: String,
    manifest_json: String,
    signature_hex: String,
    verify_response: Value,
    canonical_json: Vec<CanonicalVector>,
    negative: Vec<NegativeVector>,
}

#[derive(Deserialize)]
struct CanonicalVector {
    // As text, since one of the integers fits no machine type.
    value: Box<RawValue>,
    text: String,
}

#[derive(Deserialize)]
struct NegativeVector {
    name: String,
    zip_base64: String,
    expect: Value,
}

fn vectors() -> Vectors {
    serde_json::from_str(VECTORS).unwrap()
}

fn trusted_keys() -> Vec<TrustedKey> {
    vec![TrustedKey::given(PublicKey::parse(&vectors().public_key_base64).unwrap())]
}

/// Time of the verification: some weeks after the archives were made.
fn now() -> jiff::Timestamp {
    "2026-02-01T00:00:00Z".parse().unwrap()
}

fn json(verification: &Verification) -> Value {
    serde_json::to_value(verification).unwrap()
}

#[test]
fn canonical_json_from_text() {
    let vectors = vectors().canonical_json;
    assert_eq!(vectors.len(), 41);
    for vector in vectors {
        assert_eq!(canonical::canonicalize(vector.value.get()).unwrap(), vector.text);
        assert_eq!(
            canonical::canonicalize(&vector.text).unwrap(),
            vector.text,
            "canonical text stays as it is"
        );
        assert_eq!(canonical::to_string(&vector.value).unwrap(), vector.text, "raw text inside a value");
    }
}

#[test]
fn canonical_json_from_values() {
    let mut compared = 0;
    for vector in vectors().canonical_json {
        let value: Value = serde_json::from_str(vector.value.get()).unwrap();
        // A value can't hold integers beyond 64 bits, unlike text.
        if vector.text != "18446744073709551616" {
            assert_eq!(canonical::to_string(&value).unwrap(), vector.text);
            compared += 1;
        }
    }
    assert_eq!(compared, 40);
}

#[test]
fn the_results_of_the_archive_are_canonical() {
    let vectors = vectors();
    for text in [&vectors.results_json, &vectors.manifest_json] {
        assert_eq!(&canonical::canonicalize(text).unwrap(), text);
    }
}

#[test]
fn text_that_is_not_json_is_refused() {
    let deep = "[".repeat(1_000_000);
    let long = "1".repeat(4301);
    for text in [
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\"}",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "NaN",
        "Infinity",
        "-Infinity",
        "tru",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "\"\n\"",
        "[1 2]",
        "1 1",
        "[]]",
        "\u{feff}1",
        "'a'",
        &deep,
        &long,
    ] {
        assert!(canonical::canonicalize(text).is_err(), "{}", text.get(..20).unwrap_or(text));
    }
    let twice = canonical::canonicalize(r#"{"a":{"b":1,"\u0062":2}}"#);
    assert!(matches!(twice, Err(CanonicalError::DuplicateKey(key)) if key == "b"));
    assert!(matches!(canonical::canonicalize("[1e999]"), Err(CanonicalError::NonFinite)));
    assert_eq!(canonical::canonicalize(" [ -0 , 1E2 , -0e0, 12e-7 ] ").unwrap(), "[0,100.0,-0.0,1.2e-06]");
}

#[test]
fn keys_in_every_form() {
    let vectors = vectors();
    for private_key in [&vectors.private_key_base64, &vectors.private_key_pem_pkcs8] {
        for public_key in [None, Some(&vectors.public_key_base64), Some(&vectors.public_key_pem_spki)] {
            let key = SigningKey::from_config(Some(private_key), public_key.map(String::as_str)).unwrap();
            assert_eq!(key.public_key_base64(), vectors.public_key_base64);
            assert_eq!(key.fingerprint(), vectors.public_key_fingerprint);
            let signature = key.sign(vectors.manifest_json.as_bytes());
            assert_eq!(hex::encode(signature), vectors.signature_hex);
            assert!(key.public_key().verifies(vectors.manifest_json.as_bytes(), &signature));
        }
    }
}

#[test]
fn the_archive_verifies() {
    let verification = verify_bytes(ARCHIVE, &trusted_keys(), &Limits::default(), now());
    assert_eq!(json(&verification), vectors().verify_response);
    assert_eq!(verification.signer(), trusted_keys().first());
    let names: Vec<_> = json(&verification).as_object().unwrap().keys().cloned().collect();
    let mut expected: Vec<_> = vectors().verify_response.as_object().unwrap().keys().cloned().collect();
    expected.sort();
    assert_eq!(names, expected, "exactly the 13 fields");
    assert_eq!(names.len(), 13);
}

#[test]
fn the_archive_needs_its_key() {
    let other = SigningKey::generate().unwrap().public_key();
    let verification = verify_bytes(ARCHIVE, &[TrustedKey::given(other)], &Limits::default(), now());
    assert!(!verification.valid && !verification.signature_valid && verification.hash_match);
    assert_eq!(verification.reasons(), [Reason::SignatureInvalid, Reason::FingerprintMismatch]);
    assert_eq!(verification.signer(), None);

    let among_others = [TrustedKey::given(other), trusted_keys().remove(0)];
    assert!(verify_bytes(ARCHIVE, &among_others, &Limits::default(), now()).valid);
}

#[test]
fn negative_archives() {
    let summary_fields = [
        "run_id",
        "model_slug",
        "subset_pct",
        "subset_count",
        "subset_seed",
        "overall_score",
        "exported_at",
        "benchmark_count",
    ];
    let vectors = vectors().negative;
    assert_eq!(vectors.len(), 15);
    for NegativeVector { name, zip_base64, mut expect } in vectors {
        // Cases where our verifier is stricter on purpose.
        match name.as_str() {
            "extra_member" => {
                expect = serde_json::to_value(Verification::default()).unwrap();
                expect["errors"] =
                    serde_json::json!(["The archive has an entry that does not belong there: \"note.txt\""]);
            }
            "results_not_json" => expect["valid"] = false.into(),
            "results_tampered" | "manifest_not_json" => {
                for field in summary_fields {
                    expect[field] = Value::Null;
                }
            }
            _ => {}
        }
        let archive = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, zip_base64).unwrap();
        let verification = verify_bytes(&archive, &trusted_keys(), &Limits::default(), now());
        assert_eq!(json(&verification), expect, "{name}");
        assert_eq!(verification.reasons().len(), verification.errors.len(), "{name}");
    }
}

#[test]
fn an_empty_file_is_not_an_archive() {
    let verification = verify_bytes(&[], &trusted_keys(), &Limits::default(), now());
    assert_eq!(verification.errors, ["Invalid zip archive"]);
}
