//! Secrets and KMS as deployed, against the embedded services.

use std::collections::BTreeMap;
use std::sync::Arc;

use bench_domain::{ModelRole, RunId, Secret};
use bench_embedded::{Durability, Embedded, EmbeddedOptions, KMS_KEY_ID};
use bench_lambda::{KmsKey, Vars};
use bench_state::StateError;
use bench_state::credentials::{Credentials, DeleteOnlyWrapper, KEY_BYTES, KeyWrapper};

fn open(dir: &std::path::Path, faults: &str) -> Embedded {
    let options = EmbeddedOptions::new(dir)
        .durability(Durability::Normal)
        .faults(faults.parse().unwrap())
        .secret("owners", r#"{"BENCH_OWNER_KEY":"from the secret","SHARED":"first"}"#)
        .secret("operator", r#"{"HF_TOKEN":"hf_x","WORKER_ITEM_ATTEMPTS":7,"SHARED":"second"}"#)
        .secret("empty", "{}")
        .secret("broken", "sk-not-json");
    Embedded::open(options).unwrap()
}

fn vars(pairs: &[(&str, &str)]) -> Vars {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    pairs.collect::<BTreeMap<_, _>>().into()
}

#[tokio::test]
async fn secrets_act_like_variables_and_the_environment_wins() {
    let dir = tempfile::tempdir().unwrap();
    let embedded = open(dir.path(), "");
    let arn = "arn:aws:secretsmanager:us-east-1:000000000000:secret:operator-000000";
    let names = format!(" owners, {arn},empty,");
    let vars = vars(&[("BENCH_SECRETS", &names), ("HF_TOKEN", "mine"), ("WORKER_ITEM_ATTEMPTS", "")]);
    let vars = vars.with_secrets(&embedded.sdk_config()).await.unwrap();
    let get = |name: &str| vars.get(name);
    assert_eq!(get("BENCH_OWNER_KEY").as_deref(), Some("from the secret"));
    assert_eq!(get("HF_TOKEN").as_deref(), Some("mine"));
    assert_eq!(get("WORKER_ITEM_ATTEMPTS").as_deref(), Some("7"), "empty counts as not set");
    assert_eq!(get("SHARED").as_deref(), Some("first"), "the first in the list counts");
    assert!(!format!("{vars:?}").contains("hf_x"));
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let embedded = open(dir.path(), "deny@operator=1.0");
    for (name, expected) in [
        ("missing", "ResourceNotFoundException"),
        ("operator", "not authorized to perform: secretsmanager:GetSecretValue"),
        ("broken", "not a JSON object"),
    ] {
        let list = format!("owners,{name}");
        let error = vars(&[("BENCH_SECRETS", &list)]).with_secrets(&embedded.sdk_config()).await.unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(&format!("`{name}`")) && error.contains(expected), "{error}");
        assert!(!error.contains("sk-not-json"), "{error}");
    }
}

#[tokio::test]
async fn a_data_key_opens_only_for_what_it_was_made_for() {
    let dir = tempfile::tempdir().unwrap();
    let embedded = open(dir.path(), "");
    let key = KmsKey::new(&embedded.sdk_config(), KMS_KEY_ID);
    let data_key = [9; KEY_BYTES];
    let wrapped = key.wrap(&data_key, "run-1").await.unwrap();
    assert!(!wrapped.windows(KEY_BYTES).any(|window| window == data_key));
    assert_eq!(key.unwrap(&wrapped, "run-1").await.unwrap(), data_key);
    let other = key.unwrap(&wrapped, "run-2").await.unwrap_err();
    assert!(matches!(other, StateError::Secret { verb: "opened", .. }), "{other}");
    assert!(!other.is_transient());
    let mut damaged = wrapped.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(!key.unwrap(&damaged, "run-1").await.unwrap_err().is_transient());
    // Another key of another account.
    let foreign = KmsKey::new(&embedded.sdk_config(), "arn:aws:kms:us-east-1:111111111111:key/bench-runner");
    let missing = foreign.wrap(&data_key, "run-1").await.unwrap_err().to_string();
    assert!(missing.contains("kms:Encrypt") && missing.contains("NotFoundException"), "{missing}");
}

#[tokio::test]
async fn the_key_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let embedded = open(dir.path(), "");
    let wrapped =
        KmsKey::new(&embedded.sdk_config(), KMS_KEY_ID).wrap(&[9; KEY_BYTES], "run-1").await.unwrap();
    embedded.close();
    let embedded = open(dir.path(), "");
    let key = KmsKey::new(&embedded.sdk_config(), format!("alias/{KMS_KEY_ID}"));
    assert_eq!(key.unwrap(&wrapped, "run-1").await.unwrap(), [9; KEY_BYTES]);
}

#[tokio::test]
async fn a_missing_kms_permission_is_named_and_retried() {
    let dir = tempfile::tempdir().unwrap();
    let embedded = open(dir.path(), "deny@Decrypt=1.0,throttle@Encrypt=2");
    let key = KmsKey::new(&embedded.sdk_config(), KMS_KEY_ID);
    let wrapped = key.wrap(&[9; KEY_BYTES], "run-1").await.unwrap();
    assert_eq!(embedded.fault_counts().by_name().get("throttle"), Some(&2), "throttles were ridden out");
    let denied = key.unwrap(&wrapped, "run-1").await.unwrap_err();
    assert!(denied.is_transient());
    let denied = denied.to_string();
    assert!(denied.contains("AccessDeniedException") && denied.contains("perform: kms:Decrypt"), "{denied}");
}

/// The finisher removes callers' keys, and has no permission for KMS.
#[tokio::test]
async fn removing_keys_needs_no_kms() {
    let dir = tempfile::tempdir().unwrap();
    let embedded = open(dir.path(), "deny@Encrypt=1.0,deny@Decrypt=1.0");
    let credentials = Credentials::new(&embedded.sdk_config(), "keys", Arc::new(DeleteOnlyWrapper));
    credentials.ensure_table().await.unwrap();
    let run = RunId::random();
    credentials.delete_up_to_generation(run, 1).await.unwrap();
    credentials.delete(run).await.unwrap();
    let sealed =
        credentials.seal(run, ModelRole::Model, 1, &Secret::new("sk-secret").unwrap()).await.unwrap_err();
    assert!(matches!(sealed, StateError::Secret { verb: "sealed", .. }), "{sealed}");
    assert_eq!(embedded.fault_counts().by_name().get("deny"), None, "KMS was not asked");
}
