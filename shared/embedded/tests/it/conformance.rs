//! Conformance checks of the DynamoDB and SQS behavior that the program relies on.
//!
//! Without settings they run against the embedded services. With `AWS_ENDPOINT_URL` they run
//! against the services at that address, to compare the embedded services with other
//! implementations. Every check uses its own names.

mod dynamodb;
mod sqs;

use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_types::SdkConfig;
use aws_types::region::Region;
use bench_embedded::{Durability, Embedded, EmbeddedOptions};

/// The services under test.
struct Stack {
    config: SdkConfig,
    /// Part of every name, so that concurrent runs against a shared endpoint don't collide.
    prefix: String,
    _embedded: Option<(Embedded, tempfile::TempDir)>,
}

impl Stack {
    fn open() -> Self {
        let prefix = format!("conf-{}", uuid::Uuid::new_v4().simple());
        match std::env::var("AWS_ENDPOINT_URL") {
            Ok(endpoint) => Self { config: config_of(&endpoint), prefix, _embedded: None },
            Err(_) => {
                let dir = tempfile::tempdir().unwrap();
                let options = EmbeddedOptions::new(dir.path()).durability(Durability::Normal);
                let embedded = Embedded::open(options).unwrap();
                Self { config: embedded.sdk_config(), prefix, _embedded: Some((embedded, dir)) }
            }
        }
    }

    fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    fn is_embedded(&self) -> bool {
        self._embedded.is_some()
    }

    /// True if numbers out of range are rejected, as AWS and the embedded services do. MiniStack
    /// doesn't.
    fn checks_limits(&self) -> bool {
        self.is_embedded()
    }
}

fn config_of(endpoint: &str) -> SdkConfig {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
        .build_https();
    let keys = aws_credential_types::Credentials::new("test", "test", None, None, "tests");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(bench_embedded::REGION))
        .credentials_provider(SharedCredentialsProvider::new(keys))
        .sleep_impl(TokioSleep::new())
        .http_client(http)
        .endpoint_url(endpoint)
        .build()
}

macro_rules! checks {
    ($($module:ident: $($check:ident),* $(,)?;)*) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                $module::$check(&Stack::open()).await;
            }
        )*)*
    };
}

checks! {
    dynamodb:
        items_are_written_read_and_deleted,
        failed_conditions_carry_the_item,
        updates_compute_on_the_stored_item,
        transactions_are_all_or_nothing,
        a_repeated_transaction_token_is_done_once,
        batches_write_and_read,
        queries_page_filter_and_reverse,
        an_index_is_queried,
        mistakes_are_typed_errors,
        large_items_are_refused;
    sqs:
        queues_are_created_once,
        messages_carry_attributes_and_checksums,
        batches_are_limited,
        sizes_are_limited,
        a_long_poll_wakes_up,
        visibility_is_changed_and_expires,
        delayed_messages_come_later,
        poison_goes_to_the_dead_letter_queue,
        counts_and_purge,
        a_large_group_does_not_starve_a_small_one,
        receives_are_limited;
}
