//! Gated datasets, tokens and refusals.

use bench_datasets::{DatasetError, NoProgress, ask_hub};
use bench_domain::run::DatasetChoice;

use crate::hub_server::{Fault, Repository, TestHub};
use crate::support::{Bench, Quiz, repository, token};

fn gated_repository() -> Repository {
    Repository { token: Some("hf_other".into()), ..repository() }
}

#[tokio::test]
async fn a_gated_dataset_needs_a_token_before_anything_else() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", gated_repository());
    let library = bench.library(&hub);
    let expected = "`org/quiz` is gated: accept its terms at https://hub.test/org/quiz, then set HF_TOKEN to a token of \
                    that account";
    let error = library.prepare(&Quiz::GATED, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert_eq!(library.check(&Quiz::GATED, &DatasetChoice::Hub).unwrap_err().to_string(), expected);
    assert_eq!(hub.requests(), []);
    // Demo rows aren't gated.
    assert!(library.prepare(&Quiz::GATED, &DatasetChoice::Demo, &NoProgress).await.unwrap().used.is_demo());
}

#[tokio::test]
async fn a_token_whose_account_has_not_accepted_is_not_enough() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", gated_repository());
    let library = bench.library_with(&hub, token);
    let error = library.prepare(&Quiz::GATED, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    assert!(matches!(&error, DatasetError::Gated { token_given: true, .. }), "{error}");
    assert!(error.to_string().contains("https://hub.test/org/quiz"), "{error}");

    let mut open = gated_repository();
    open.token = Some("hf_secret".into());
    hub.publish("org/quiz", open);
    let prepared = library.prepare(&Quiz::GATED, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(prepared.index.items.len(), 220);
}

#[tokio::test]
async fn a_token_without_access_reports_the_gate() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let message = vec![("x-error-message", "Please enable access to public gated repositories")];
    hub.fail("revision", [Fault::Status(403, message)]);
    let library = bench.library_with(&hub, token);
    let error = library.prepare(&Quiz::GATED, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    assert!(matches!(&error, DatasetError::Gated { token_given: true, .. }), "{error}");
}

#[tokio::test]
async fn an_unexpected_gate_is_reported() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", gated_repository());
    let error = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    let expected = format!("accept its terms at {}/datasets/org/quiz, then set HF_TOKEN", hub.url);
    assert!(error.to_string().contains(&expected), "{error}");
}

#[tokio::test]
async fn an_invalid_token_is_reported() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    hub.fail("revision", [Fault::Status(401, vec![("x-error-message", "Invalid credentials")])]);
    let library = bench.library_with(&hub, token);
    let error = library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    assert!(matches!(&error, DatasetError::TokenRefused { .. }), "{error}");
    assert!(!error.to_string().contains("hf_secret"));
}

#[tokio::test]
async fn without_a_token_401_means_not_there() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz-mirror", repository());
    hub.fail("org/quiz/revision", [Fault::Status(401, vec![])]);
    let prepared = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(prepared.used.id, "org/quiz-mirror");
}

#[tokio::test]
async fn a_firewall_is_not_the_hub() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    hub.fail("revision", [Fault::Status(403, vec![])]);
    let prepared = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert!(prepared.used.is_demo());
    assert!(prepared.used.note.unwrap().contains("403"));
}

#[tokio::test]
async fn a_hub_is_asked_once_and_its_refusals_are_distinguished() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    let mut config = bench.config(&hub.url);
    token(&mut config);
    ask_hub(config.clone(), "org/quiz").await.unwrap();
    let asked = hub.requests();
    assert_eq!((asked.len(), asked[0].path.as_str()), (1, "/api/datasets/org/quiz/revision/main"));
    assert_eq!(asked[0].authorization.as_deref(), Some("Bearer hf_secret"));

    hub.fail("revision", [Fault::Status(401, vec![]), Fault::Status(503, vec![])]);
    let error = ask_hub(config.clone(), "org/quiz").await.unwrap_err();
    assert!(matches!(&error, DatasetError::TokenRefused { .. }), "{error}");
    let error = ask_hub(config.clone(), "org/quiz").await.unwrap_err();
    assert!(matches!(&error, DatasetError::Unreachable { .. }), "{error}");
    assert_eq!(hub.requests().len(), 2, "nothing is repeated");
    let error = ask_hub(config, "org/other").await.unwrap_err();
    assert!(matches!(&error, DatasetError::NotFound { .. }), "{error}");
    assert!(bench.downloads().is_empty());
}
