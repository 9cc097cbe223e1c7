use std::sync::Barrier;

use jiff::Timestamp;

use super::*;

const SEED_BASE64: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const PUBLIC_BASE64: &str = "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=";

fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_323_400 + seconds).unwrap()
}

fn other_key() -> PublicKey {
    SigningKey::parse(&STANDARD.encode([1; 32])).unwrap().public_key()
}

#[test]
fn private_key_errors_have_the_texts_of_the_compatible_api() {
    let text = |error: KeyError| error.to_string();
    for nothing in [None, Some(""), Some(" \n")] {
        let error = SigningKey::from_config(nothing, None).unwrap_err();
        assert_eq!(text(error), "BENCH_SIGNING_PRIVATE_KEY is not configured");
    }
    let short = STANDARD.encode([0; 31]);
    for wrong in [
        "x",
        "not base64 at all",
        short.as_str(),
        "-----BEGIN PRIVATE KEY-----",
        PUBLIC_BASE64.get(1..).unwrap(),
    ] {
        let error = SigningKey::from_config(Some(wrong), None).unwrap_err();
        assert_eq!(text(error), "Invalid BENCH_SIGNING_PRIVATE_KEY");
        let error = SigningKey::from_config(Some(SEED_BASE64), Some(wrong)).unwrap_err();
        assert_eq!(text(error), "Invalid BENCH_SIGNING_PUBLIC_KEY");
    }
}

#[test]
fn hexadecimal_digits_are_a_key_too() {
    let seed: [u8; 32] = STANDARD.decode(SEED_BASE64).unwrap().try_into().unwrap();
    for text in [hex::encode(seed), hex::encode_upper(seed), format!(" {}\n", hex::encode(seed))] {
        assert_eq!(SigningKey::parse(&text).unwrap().public_key_base64(), PUBLIC_BASE64);
    }
    // One digit more, one less, and one that is invalid.
    let digits = hex::encode(seed);
    for wrong in [&digits[1..], &format!("{digits}0"), &digits.replace('a', "g")] {
        assert_eq!(SigningKey::parse(wrong).unwrap_err(), KeyError::InvalidPrivateKey, "{wrong}");
    }
}

#[test]
fn a_public_key_of_another_pair_is_an_error() {
    let own = SigningKey::from_config(Some(SEED_BASE64), Some(PUBLIC_BASE64)).unwrap();
    assert_eq!(own.public_key_base64(), PUBLIC_BASE64);
    let foreign = other_key().to_base64();
    let error = SigningKey::from_config(Some(SEED_BASE64), Some(&foreign)).unwrap_err();
    assert_eq!(error, KeyError::ForeignPublicKey);
    assert!(error.to_string().starts_with("Invalid BENCH_SIGNING_PUBLIC_KEY"));
}

#[test]
fn weak_points_are_not_keys() {
    let mut identity = [0; 32];
    identity[0] = 1;
    assert_eq!(PublicKey::from_bytes(&identity), Err(KeyError::InvalidPublicKey));
    assert_eq!(PublicKey::from_bytes(&[0; 32]), Err(KeyError::InvalidPublicKey));
}

#[test]
fn pem_survives_escaped_line_ends_and_a_round_trip() {
    let key = SigningKey::parse(SEED_BASE64).unwrap();
    let pem = key.to_pem().unwrap().clone();
    assert!(pem.starts_with("-----BEGIN PRIVATE KEY-----\n"));
    for text in [pem.clone(), pem.replace('\n', "\\n"), pem.replace('\n', "\r\n"), format!("\n {pem}\n")] {
        assert_eq!(SigningKey::parse(&text).unwrap().fingerprint(), key.fingerprint(), "{text:?}");
    }
}

#[test]
fn a_private_key_does_not_print_itself() {
    let key = SigningKey::parse(SEED_BASE64).unwrap();
    let shown = format!("{key:?}");
    assert!(shown.contains(PUBLIC_BASE64) && !shown.contains("AAECAwQF"), "{shown}");
}

#[test]
fn generated_keys_differ() {
    assert_ne!(SigningKey::generate().unwrap().fingerprint(), SigningKey::generate().unwrap().fingerprint());
}

#[test]
fn the_ring_is_created_once_and_kept() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("data/keys");
    assert!(KeyRing::read(&directory).unwrap().trusted_keys().is_empty());
    assert!(!directory.exists(), "reading creates nothing");

    let first = KeyRing::open(&directory, timestamp(0)).unwrap();
    let again = KeyRing::open(&directory, timestamp(5)).unwrap();
    assert_eq!(again.signing_key().unwrap().fingerprint(), first.signing_key().unwrap().fingerprint());
    assert_eq!(again.current().unwrap().valid_from, Some(timestamp(0)));
    assert_eq!(again.document(), first.document());

    let read = KeyRing::read(&directory).unwrap();
    assert_eq!(read.trusted_keys(), first.trusted_keys());
    assert_eq!(read.signing_key().unwrap_err(), KeyError::NotConfigured);
}

#[test]
fn processes_that_start_at_once_get_the_same_key() {
    let home = tempfile::tempdir().unwrap();
    let barrier = Barrier::new(8);
    let fingerprints: Vec<String> = std::thread::scope(|scope| {
        let start = || {
            barrier.wait();
            KeyRing::open(home.path(), timestamp(0)).unwrap().signing_key().unwrap().fingerprint()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(fingerprints.iter().all(|fingerprint| *fingerprint == fingerprints[0]), "{fingerprints:?}");
    assert_eq!(KeyRing::read(home.path()).unwrap().trusted_keys().len(), 1);
}

#[test]
fn rotation_keeps_old_keys_with_their_time() {
    let home = tempfile::tempdir().unwrap();
    let mut ring = KeyRing::open(home.path(), timestamp(0)).unwrap();
    let first = ring.current().unwrap().public_key;
    let second = ring.rotate(timestamp(60)).unwrap();
    let third = ring.rotate(timestamp(120)).unwrap();
    assert_eq!(ring.signing_key().unwrap().public_key(), third);

    let reopened = KeyRing::open(home.path(), timestamp(180)).unwrap();
    assert_eq!(reopened.signing_key().unwrap().public_key(), third);
    let document = serde_json::to_value(reopened.document()).unwrap();
    assert_eq!(
        document,
        serde_json::json!({"keys": [
            {"key_id": third.fingerprint(), "algorithm": "ed25519", "public_key": third.to_base64(),
             "valid_from": "2026-01-02T03:12:00Z", "valid_until": null, "status": "current"},
            {"key_id": second.fingerprint(), "algorithm": "ed25519", "public_key": second.to_base64(),
             "valid_from": "2026-01-02T03:11:00Z", "valid_until": "2026-01-02T03:12:00Z", "status": "retired"},
            {"key_id": first.fingerprint(), "algorithm": "ed25519", "public_key": first.to_base64(),
             "valid_from": "2026-01-02T03:10:00Z", "valid_until": "2026-01-02T03:11:00Z", "status": "retired"},
        ]})
    );
    let roles: Vec<_> = reopened.trusted_keys().iter().map(|key| key.role).collect();
    assert_eq!(roles, [KeyRole::Current, KeyRole::Retired, KeyRole::Retired]);
}

#[test]
fn a_rotation_that_was_cut_short_leaves_a_working_ring() {
    let home = tempfile::tempdir().unwrap();
    let mut ring = KeyRing::open(home.path(), timestamp(0)).unwrap();
    let old_file = std::fs::read(home.path().join("signing-key.pem")).unwrap();
    let first = ring.current().unwrap().public_key;
    let lost = ring.rotate(timestamp(60)).unwrap();
    // As if the process had ended before the new private key was in place.
    std::fs::write(home.path().join("signing-key.pem"), old_file).unwrap();

    let healed = KeyRing::open(home.path(), timestamp(90)).unwrap();
    assert_eq!(healed.signing_key().unwrap().public_key(), first);
    assert_eq!(
        healed.current().unwrap(),
        &RingKey { public_key: first, valid_from: Some(timestamp(0)), valid_until: None }
    );
    let retired =
        RingKey { public_key: lost, valid_from: Some(timestamp(60)), valid_until: Some(timestamp(90)) };
    assert_eq!(healed.retired(), [retired]);
}

#[test]
fn a_lost_private_key_is_replaced_and_its_public_half_kept() {
    let home = tempfile::tempdir().unwrap();
    let first = KeyRing::open(home.path(), timestamp(0)).unwrap().current().unwrap().public_key;
    std::fs::remove_file(home.path().join("signing-key.pem")).unwrap();
    let ring = KeyRing::open(home.path(), timestamp(60)).unwrap();
    assert_ne!(ring.current().unwrap().public_key, first);
    assert_eq!(ring.retired()[0].public_key, first);
}

#[test]
fn keys_are_pinned_and_unpinned() {
    let home = tempfile::tempdir().unwrap();
    let mut ring = KeyRing::open(home.path(), timestamp(0)).unwrap();
    // Another process pins a key while this one has an older state.
    KeyRing::open(home.path(), timestamp(0)).unwrap().pin(other_key(), " acme ", timestamp(1)).unwrap();
    let second = SigningKey::generate().unwrap().public_key();
    ring.pin(second, "lab", timestamp(2)).unwrap();
    ring.pin(second, "the lab", timestamp(3)).unwrap();
    let labels = |ring: &KeyRing| ring.pinned().iter().map(|pin| pin.label.clone()).collect::<Vec<_>>();
    assert_eq!(labels(&ring), ["acme", "the lab"]);
    ring.rotate(timestamp(4)).unwrap();
    assert_eq!(labels(&ring), ["acme", "the lab"]);
    assert_eq!(ring.document().keys.len(), 2, "pins are not published");

    assert!(ring.unpin(&other_key().fingerprint()).unwrap());
    assert!(!ring.unpin(&other_key().fingerprint()).unwrap());
    let reopened = KeyRing::open(home.path(), timestamp(5)).unwrap();
    assert_eq!(labels(&reopened), ["the lab"]);
    let last = reopened.trusted_keys().pop().unwrap();
    assert_eq!((last.role, last.label.as_deref()), (KeyRole::Pinned, Some("the lab")));
    for label in ["", " ", "a\nb", &"x".repeat(101)] {
        assert!(
            matches!(ring.pin(second, label, timestamp(6)), Err(KeyRingError::Label { .. })),
            "{label:?}"
        );
    }
}

#[cfg(unix)]
#[test]
fn the_private_key_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("keys");
    let mut ring = KeyRing::open(&directory, timestamp(0)).unwrap();
    let path = directory.join("signing-key.pem");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&directory)), (0o600, 0o700));

    for exposed in [0o640, 0o604, 0o620] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(exposed)).unwrap();
        let error = KeyRing::open(&directory, timestamp(1)).unwrap_err();
        assert!(matches!(error, KeyRingError::Exposed { .. }), "{exposed:o}");
        let path = path.display();
        let text = format!(
            "the private key {path} is readable by other users of this machine: run `chmod 600 {path}`"
        );
        assert_eq!(error.to_string(), text);
        assert!(matches!(ring.rotate(timestamp(2)), Err(KeyRingError::Exposed { .. })));
        assert!(KeyRing::read(&directory).is_ok(), "verification does not need the private key");
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
    KeyRing::open(&directory, timestamp(3)).unwrap();
    ring.rotate(timestamp(4)).unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn damaged_files_are_named() {
    let home = tempfile::tempdir().unwrap();
    KeyRing::open(home.path(), timestamp(0)).unwrap();
    let list = home.path().join("keys.json");
    let good = std::fs::read_to_string(&list).unwrap();
    for (content, is_version) in [
        (String::new(), false),
        ("[]".to_owned(), false),
        (good.replace("\"keys\"", "\"kays\""), false),
        (good.replace("public_key\": \"", "public_key\": \"!"), false),
        (good.replace("\"version\": 1", "\"version\": 2"), true),
    ] {
        std::fs::write(&list, &content).unwrap();
        let error = KeyRing::open(home.path(), timestamp(1)).unwrap_err();
        assert_eq!(
            matches!(error, KeyRingError::Version { version: 2, .. }),
            is_version,
            "{error} {content}"
        );
        assert!(is_version || matches!(error, KeyRingError::Damaged { .. }), "{error} {content}");
        assert!(error.to_string().contains("keys.json"));
    }
    std::fs::write(&list, good).unwrap();
    KeyRing::open(home.path(), timestamp(1)).unwrap();
    // Overwriting an existing file keeps its mode.
    std::fs::write(home.path().join("signing-key.pem"), "junk").unwrap();
    assert!(matches!(KeyRing::open(home.path(), timestamp(1)), Err(KeyRingError::PrivateKey { .. })));
}

#[test]
fn a_ring_from_the_environment() {
    let old =
        [1u8, 2, 3].map(|byte| SigningKey::parse(&STANDARD.encode([byte; 32])).unwrap().public_key_base64());
    let list = format!(
        " {}@2025-01-01T00:00:00Z/2025-02-01T00:00:00Z,{}\n{}@/2025-06-01T00:00:00Z {PUBLIC_BASE64} {}",
        old[0], old[1], old[2], old[1]
    );
    let config =
        RingConfig { private_key: Some(SEED_BASE64), old_public_keys: Some(&list), ..RingConfig::default() };
    let mut ring = KeyRing::from_config(&config).unwrap();
    let order: Vec<_> = ring.retired().iter().map(|key| key.public_key.to_base64()).collect();
    assert_eq!(
        order,
        [&old[2], &old[0], &old[1]].map(Clone::clone),
        "doubles and the current key are left out"
    );
    assert_eq!(ring.current().unwrap().public_key.to_base64(), PUBLIC_BASE64);
    let entry = &ring.document().keys[2];
    assert_eq!(
        (entry.valid_from.as_deref(), entry.valid_until.as_deref()),
        (Some("2025-01-01T00:00:00Z"), Some("2025-02-01T00:00:00Z"))
    );
    assert!(matches!(ring.rotate(timestamp(0)), Err(KeyRingError::NotStored)));
    assert!(matches!(ring.pin(other_key(), "x", timestamp(0)), Err(KeyRingError::NotStored)));

    let public_only = RingConfig { public_key: Some(PUBLIC_BASE64), ..RingConfig::default() };
    let ring = KeyRing::from_config(&public_only).unwrap();
    assert_eq!(ring.signing_key().unwrap_err(), KeyError::NotConfigured);
    assert_eq!(ring.trusted_keys().len(), 1);
    assert_eq!(KeyRing::from_config(&RingConfig::default()).unwrap_err(), KeyError::NotConfigured);

    for wrong in ["junk", &format!("{}@2025", old[0]), &format!("{}@x/", old[0])] {
        let list = format!("{} {wrong}", old[1]);
        let config = RingConfig { old_public_keys: Some(&list), ..config };
        assert_eq!(KeyRing::from_config(&config).unwrap_err(), KeyError::InvalidOldKey { position: 2 });
    }
}

#[test]
fn a_ring_that_another_process_changed_is_reloaded() {
    let directory = tempfile::tempdir().unwrap();
    let mut other = KeyRing::open(directory.path(), timestamp(0)).unwrap();
    let server = KeyRing::open(directory.path(), timestamp(1)).unwrap();
    assert!(server.reload_if_changed(timestamp(2)).unwrap().is_none());
    let signed = server.signing_key().unwrap().sign(b"archive");
    let rotated = other.rotate(timestamp(60)).unwrap();
    assert!(other.reload_if_changed(timestamp(61)).unwrap().is_none(), "who rotates knows");
    let fresh = server.reload_if_changed(timestamp(61)).unwrap().unwrap();
    assert_eq!(fresh.signing_key().unwrap().public_key(), rotated);
    assert!(fresh.trusted_keys().iter().any(|key| key.public_key.verifies(b"archive", &signed)));
    assert!(fresh.reload_if_changed(timestamp(62)).unwrap().is_none());
    let pinned = SigningKey::generate().unwrap().public_key();
    other.pin(pinned, "lab", timestamp(63)).unwrap();
    assert!(other.reload_if_changed(timestamp(64)).unwrap().is_none(), "who pins knows");
    assert_eq!(fresh.reload_if_changed(timestamp(64)).unwrap().unwrap().pinned().len(), 1);
    // A ring that was changed from an older state must still be reloaded.
    let mut late = KeyRing::open(directory.path(), timestamp(65)).unwrap();
    let again = other.rotate(timestamp(66)).unwrap();
    late.pin(pinned, "laboratory", timestamp(67)).unwrap();
    assert_eq!(late.reload_if_changed(timestamp(68)).unwrap().unwrap().current().unwrap().public_key, again);
    std::fs::write(directory.path().join("keys.json"), "{").unwrap();
    assert!(fresh.reload_if_changed(timestamp(69)).is_err());
    let configured =
        KeyRing::from_config(&RingConfig { private_key: Some(SEED_BASE64), ..RingConfig::default() });
    assert!(configured.unwrap().reload_if_changed(timestamp(70)).unwrap().is_none());
}

#[test]
fn a_distrusted_key_is_not_used_again() {
    let home = tempfile::tempdir().unwrap();
    let mut ring = KeyRing::open(home.path(), timestamp(0)).unwrap();
    let server = KeyRing::open(home.path(), timestamp(0)).unwrap();
    let first = ring.current().unwrap().public_key;
    let first_file = std::fs::read(home.path().join("signing-key.pem")).unwrap();
    let second = ring.rotate(timestamp(10)).unwrap();
    // The current key: a new one is created first.
    ring.distrust(second, timestamp(20)).unwrap();
    let third = ring.signing_key().unwrap().public_key();
    assert!(third != second && ring.current().unwrap().public_key == third);
    let roles =
        |ring: &KeyRing| ring.known_keys().iter().map(|key| (key.public_key, key.role)).collect::<Vec<_>>();
    let expected = [(second, KeyRole::Distrusted), (third, KeyRole::Current), (first, KeyRole::Retired)];
    assert_eq!(roles(&ring), expected);
    assert!(ring.trusted_keys().iter().all(|key| key.public_key != second));
    assert!(ring.document().keys.iter().all(|key| key.public_key != second));
    assert_eq!(roles(&KeyRing::read(home.path()).unwrap()), expected);
    assert_eq!(
        roles(&server.reload_if_changed(timestamp(21)).unwrap().unwrap()),
        expected,
        "a running server hears of it"
    );
    // A retired key: the current one stays.
    ring.distrust(first, timestamp(30)).unwrap();
    assert_eq!(ring.signing_key().unwrap().public_key(), third);
    assert_eq!(
        ring.distrusted(),
        [
            DistrustedKey { public_key: second, distrusted_at: timestamp(20) },
            DistrustedKey { public_key: first, distrusted_at: timestamp(30) },
        ]
    );
    for unknown in [first, other_key()] {
        assert!(matches!(ring.distrust(unknown, timestamp(40)), Err(KeyRingError::NotOwn)));
    }
    assert!(matches!(ring.pin(first, "x", timestamp(40)), Err(KeyRingError::PinDistrusted)));
    // Restoring its file doesn't make it sign again.
    std::fs::write(home.path().join("signing-key.pem"), first_file).unwrap();
    let error = KeyRing::open(home.path(), timestamp(50)).unwrap_err();
    assert!(matches!(error, KeyRingError::Distrusted { .. }), "{error}");
    let fourth = ring.rotate(timestamp(60)).unwrap();
    assert_eq!(
        KeyRing::open(home.path(), timestamp(70)).unwrap().signing_key().unwrap().public_key(),
        fourth
    );
    assert_eq!(ring.retired().iter().map(|key| key.public_key).collect::<Vec<_>>(), [third]);
}

#[test]
fn trusted_keys_have_their_validity() {
    let home = tempfile::tempdir().unwrap();
    let mut ring = KeyRing::open(home.path(), timestamp(0)).unwrap();
    ring.rotate(timestamp(60)).unwrap();
    let times =
        |keys: Vec<TrustedKey>| keys.iter().map(|key| (key.valid_from, key.valid_until)).collect::<Vec<_>>();
    assert_eq!(
        times(ring.trusted_keys()),
        [(Some(timestamp(60)), None), (Some(timestamp(0)), Some(timestamp(60)))]
    );
    // A reader of the list doesn't know when its server learned of the new key.
    assert_eq!(
        times(ring.document().trusted_keys()),
        [(Some(timestamp(60)), None), (Some(timestamp(0)), Some(timestamp(3_660)))]
    );
    let old = format!("{}@/2026-01-02T03:10:00Z", other_key().to_base64());
    let config =
        RingConfig { private_key: Some(SEED_BASE64), old_public_keys: Some(&old), ..RingConfig::default() };
    let configured = KeyRing::from_config(&config).unwrap();
    assert_eq!(
        times(configured.trusted_keys()),
        [(Some(timestamp(0)), None), (None, Some(timestamp(3_600)))]
    );
}

#[cfg(unix)]
#[test]
fn an_existing_directory_is_closed_to_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    KeyRing::open(home.path(), timestamp(0)).unwrap();
    assert_eq!(std::fs::metadata(home.path()).unwrap().permissions().mode() & 0o777, 0o700);
}
