//! KMS, SNS and Secrets Manager through the SDK: responses and typed errors.

use std::sync::{Arc, Mutex};

use aws_sdk_kms::primitives::Blob;
use aws_sdk_sns::error::ProvideErrorMetadata as _;
use bench_embedded::{
    Durability, Embedded, EmbeddedOptions, KMS_KEY_ID, PublishedMessage, Recorder, Service,
};

const TOPIC: &str = "arn:aws:sns:us-east-1:000000000000:alarms";

fn options(dir: &tempfile::TempDir) -> EmbeddedOptions {
    EmbeddedOptions::new(dir.path()).durability(Durability::Normal).secret("one", r#"{"A":"b"}"#)
}

#[tokio::test]
async fn kms_encrypts_for_a_context() {
    let dir = tempfile::tempdir().unwrap();
    let embedded = Embedded::open(options(&dir)).unwrap();
    let kms = aws_sdk_kms::Client::new(&embedded.sdk_config());
    let encrypt = |key: &str| kms.encrypt().key_id(key).plaintext(Blob::new("clear"));
    let sealed =
        encrypt(KMS_KEY_ID).encryption_context("a", "1").encryption_context("b", "2").send().await.unwrap();
    let arn = sealed.key_id().unwrap();
    assert_eq!(arn, "arn:aws:kms:us-east-1:000000000000:key/bench-runner");
    let blob = sealed.ciphertext_blob().unwrap().clone();
    let decrypt = || kms.decrypt().ciphertext_blob(blob.clone());
    let opened = decrypt().encryption_context("b", "2").encryption_context("a", "1").send().await.unwrap();
    assert_eq!(opened.plaintext().unwrap().as_ref(), b"clear");
    assert_eq!(opened.key_id(), Some(arn));
    // Two different splits of the same characters are two contexts.
    for wrong in [vec![], vec![("a", "1")], vec![("a", "1b"), ("", "2")], vec![("a", "2"), ("b", "1")]] {
        let decrypt =
            wrong.iter().fold(decrypt(), |call, (name, value)| call.encryption_context(*name, *value));
        let error = decrypt.send().await.unwrap_err().into_service_error();
        assert!(error.is_invalid_ciphertext_exception(), "{wrong:?}: {error:?}");
    }
    for key in [arn, "alias/bench-runner"] {
        assert!(encrypt(key).send().await.is_ok(), "{key}");
    }
    for key in ["other", "arn:aws:kms:us-east-1:000000000000:key/other"] {
        let error = encrypt(key).send().await.unwrap_err().into_service_error();
        assert!(error.is_not_found_exception(), "{key}: {error:?}");
    }
    let empty = kms.encrypt().key_id(KMS_KEY_ID).plaintext(Blob::new("")).send().await.unwrap_err();
    assert_eq!(empty.code(), Some("ValidationException"));
    assert_eq!(kms.list_keys().send().await.unwrap_err().code(), Some("UnknownOperationException"));
}

#[tokio::test]
async fn sns_keeps_what_is_published() {
    let dir = tempfile::tempdir().unwrap();
    let embedded = Embedded::open(options(&dir)).unwrap();
    let sns = aws_sdk_sns::Client::new(&embedded.sdk_config());
    let publish =
        |topic: &str| sns.publish().topic_arn(topic).subject("Run & <score>").message("50 % + ä\nb=c&d");
    let sent = publish(TOPIC).send().await.unwrap();
    assert!(!sent.message_id().unwrap().is_empty());
    let expected = PublishedMessage {
        topic: TOPIC.to_owned(),
        subject: Some("Run & <score>".to_owned()),
        message: "50 % + ä\nb=c&d".to_owned(),
    };
    assert_eq!(embedded.published(), [expected]);
    let elsewhere = publish("arn:aws:sns:us-east-1:111111111111:alarms").send().await.unwrap_err();
    assert!(elsewhere.into_service_error().is_not_found_exception());
    for (subject, message) in [("x", ""), ("ä", "x"), (&*"x".repeat(101), "x")] {
        let error =
            sns.publish().topic_arn(TOPIC).subject(subject).message(message).send().await.unwrap_err();
        assert!(error.into_service_error().is_invalid_parameter_exception(), "{subject} {message}");
    }
    assert_eq!(embedded.published().len(), 1);
}

#[tokio::test]
async fn secrets_are_read_by_name_and_arn() {
    let dir = tempfile::tempdir().unwrap();
    let embedded = Embedded::open(options(&dir)).unwrap();
    let secrets = aws_sdk_secretsmanager::Client::new(&embedded.sdk_config());
    let got = secrets.get_secret_value().secret_id("one").send().await.unwrap();
    assert_eq!(got.secret_string(), Some(r#"{"A":"b"}"#));
    let same = secrets.get_secret_value().secret_id(got.arn().unwrap()).send().await.unwrap();
    assert_eq!(same.name(), Some("one"));
    let missing = secrets.get_secret_value().secret_id("two").send().await.unwrap_err();
    assert!(missing.into_service_error().is_resource_not_found_exception());
}

#[tokio::test]
async fn their_calls_are_observed_and_injected_with_faults() {
    let dir = tempfile::tempdir().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let recorder = Recorder::new(move |call| {
        let resource = call.resource.map(str::to_owned);
        log.lock().unwrap().push((call.service, call.action.to_owned(), resource));
    });
    let faults = "throttle@Publish=1,throttle@Encrypt=1,deny@one=1.0".parse().unwrap();
    let embedded = Embedded::open(options(&dir).recorder(recorder).faults(faults)).unwrap();
    let aws = embedded.sdk_config();
    let publish = aws_sdk_sns::Client::new(&aws).publish().topic_arn(TOPIC).message("x");
    publish.send().await.unwrap();
    let encrypt = aws_sdk_kms::Client::new(&aws).encrypt().key_id(KMS_KEY_ID).plaintext(Blob::new("x"));
    encrypt.send().await.unwrap();
    let secrets = aws_sdk_secretsmanager::Client::new(&aws);
    let denied = secrets.get_secret_value().secret_id("one").send().await.unwrap_err();
    assert!(denied.message().unwrap().contains("perform: secretsmanager:GetSecretValue"), "{denied:?}");
    let of = |service, action: &str, resource: &str| (service, action.to_owned(), Some(resource.to_owned()));
    let twice = |call: (Service, String, Option<String>)| [call.clone(), call];
    let expected: Vec<_> = [
        twice(of(Service::Sns, "Publish", "alarms")).to_vec(),
        twice(of(Service::Kms, "Encrypt", KMS_KEY_ID)).to_vec(),
        vec![of(Service::SecretsManager, "GetSecretValue", "one")],
    ]
    .concat();
    assert_eq!(*seen.lock().unwrap(), expected);
}
