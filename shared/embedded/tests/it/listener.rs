//! The services behind a socket, and the reports to observers of completed calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, Put, ScalarAttributeType,
    TransactWriteItem,
};
use bench_embedded::http::{Connections, serve};
use bench_embedded::{Durability, Embedded, EmbeddedOptions, Recorder, Service};
use tokio::net::TcpListener;

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

async fn create_table(client: &aws_sdk_dynamodb::Client) {
    let key = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build().unwrap();
    let id = AttributeDefinition::builder().attribute_name("id").attribute_type(ScalarAttributeType::S);
    let create = client.create_table().table_name("table").key_schema(key);
    let create = create.attribute_definitions(id.build().unwrap()).billing_mode(BillingMode::PayPerRequest);
    create.send().await.unwrap();
}

#[tokio::test]
async fn a_program_elsewhere_works_on_the_same_services() {
    let temp = tempfile::tempdir().unwrap();
    let embedded = Embedded::open(EmbeddedOptions::new(temp.path()).durability(Durability::Normal)).unwrap();
    create_table(&aws_sdk_dynamodb::Client::new(&embedded.sdk_config())).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let connections = Connections::default();
    let (serving, counted) = (embedded.clone(), connections.clone());
    let server = tokio::spawn(async move { serve(&serving, listener, counted).await });
    // The SDK with an HTTP client that opens sockets, as in a function.
    let http = aws_smithy_http_client::Builder::new().build_http();
    let config = embedded.sdk_config().into_builder().endpoint_url(&url).http_client(http).build();
    let client = aws_sdk_dynamodb::Client::new(&config);
    for number in 0..3 {
        client.put_item().table_name("table").item("id", s(&number.to_string())).send().await.unwrap();
    }
    assert_eq!(connections.count(), 1, "one connection for calls that follow each other");
    let inside = aws_sdk_dynamodb::Client::new(&embedded.sdk_config());
    assert!(inside.get_item().table_name("table").key("id", s("2")).send().await.unwrap().item.is_some());
    // Errors come from the services themselves, and S3 checks the signature.
    let absent = client.get_item().table_name("absent").key("id", s("a")).send().await.unwrap_err();
    assert!(absent.into_service_error().is_resource_not_found_exception());
    let s3 = aws_sdk_s3::config::Builder::from(&config).force_path_style(true).build();
    let s3 = aws_sdk_s3::Client::from_conf(s3);
    s3.create_bucket().bucket("bucket").send().await.unwrap();
    let body = vec![7; 3_000_000];
    s3.put_object().bucket("bucket").key("a/b").body(body.clone().into()).send().await.unwrap();
    let got = s3.get_object().bucket("bucket").key("a/b").send().await.unwrap();
    assert_eq!(got.body.collect().await.unwrap().into_bytes(), body);
    let other = aws_sdk_s3::config::Builder::from(&config).force_path_style(true).credentials_provider(
        aws_credential_types::Credentials::new("nobody", "guessed", None, None, "test"),
    );
    let refused = aws_sdk_s3::Client::from_conf(other.build());
    assert!(refused.get_object().bucket("bucket").key("a/b").send().await.is_err());
    let sqs = aws_sdk_sqs::Client::new(&config);
    let queue = sqs.create_queue().queue_name("queue").send().await.unwrap().queue_url.unwrap();
    sqs.send_message().queue_url(&queue).message_body("x").send().await.unwrap();
    server.abort();
}

/// Units computed by hand from AWS's rules: 1 KB per write unit, twice in a transaction; 4 KB per read unit, half
/// without strong consistency; failed conditions are charged.
#[tokio::test]
async fn completed_calls_report_what_aws_would_charge() {
    let temp = tempfile::tempdir().unwrap();
    let seen: Arc<Mutex<Vec<(String, f64, f64)>>> = Arc::default();
    let bytes: Arc<Mutex<BTreeMap<String, (u64, u64)>>> = Arc::default();
    let (log, sizes) = (Arc::clone(&seen), Arc::clone(&bytes));
    let recorder = Recorder::for_completed_calls(move |answered| {
        let action = answered.call.action.to_owned();
        if answered.call.service == Service::DynamoDb {
            log.lock().unwrap().push((action, answered.read_units, answered.write_units));
        } else {
            sizes.lock().unwrap().insert(action, (answered.request_bytes, answered.response_bytes));
        }
    });
    let options = EmbeddedOptions::new(temp.path()).durability(Durability::Normal).recorder(recorder);
    let embedded = Embedded::open(options).unwrap();
    let client = aws_sdk_dynamodb::Client::new(&embedded.sdk_config());
    create_table(&client).await;
    seen.lock().unwrap().clear();
    let put = |id: &str, bytes: usize| {
        client.put_item().table_name("table").item("id", s(id)).item("text", s(&"x".repeat(bytes)))
    };
    put("small", 100).send().await.unwrap();
    put("large", 5_000).send().await.unwrap();
    put("small", 100).condition_expression("attribute_not_exists(id)").send().await.unwrap_err();
    let get = |id: &str, strong: bool| {
        client.get_item().table_name("table").key("id", s(id)).consistent_read(strong).send()
    };
    get("large", true).await.unwrap();
    get("small", false).await.unwrap();
    let transaction = ["one", "two"].map(|id| {
        let put = Put::builder().table_name("table").item("id", s(id)).build().unwrap();
        TransactWriteItem::builder().put(put).build()
    });
    client.transact_write_items().set_transact_items(Some(transaction.to_vec())).send().await.unwrap();
    let of = |action: &str, read: f64, write: f64| (action.to_owned(), read, write);
    assert_eq!(
        *seen.lock().unwrap(),
        [
            of("PutItem", 0.0, 1.0),
            of("PutItem", 0.0, 5.0),
            of("PutItem", 0.0, 1.0),
            of("GetItem", 2.0, 0.0),
            of("GetItem", 0.5, 0.0),
            of("TransactWriteItems", 0.0, 4.0),
        ]
    );
    let s3 = aws_sdk_s3::config::Builder::from(&embedded.sdk_config()).force_path_style(true).build();
    let s3 = aws_sdk_s3::Client::from_conf(s3);
    s3.create_bucket().bucket("bucket").send().await.unwrap();
    s3.put_object().bucket("bucket").key("k").body(vec![1; 1_234].into()).send().await.unwrap();
    s3.get_object().bucket("bucket").key("k").send().await.unwrap();
    let bytes = bytes.lock().unwrap();
    assert_eq!((bytes["PutObject"].0, bytes["GetObject"].1), (1_234, 1_234));
}
