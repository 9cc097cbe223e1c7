//! Operations per second and CPU time per operation through the SDK.
//!
//! `cargo run --release -p bench-embedded --example speed [normal|full]`

use std::error::Error;
use std::future::Future;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
    TransactWriteItem, Update,
};
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, SendMessageBatchRequestEntry};
use bench_embedded::{Durability, Embedded, EmbeddedOptions};

type Failed = Box<dyn Error + Send + Sync>;

const SECONDS_EACH: u64 = 2;
const CLOCK_TICKS_PER_SECOND: f64 = 100.0;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failed> {
    let durability = match std::env::args().nth(1).as_deref() {
        Some("full") => Durability::Full,
        _ => Durability::Normal,
    };
    let dir = std::env::temp_dir().join(format!("embedded-speed-{}", std::process::id()));
    let embedded = Embedded::open(EmbeddedOptions::new(&dir).durability(durability))?;
    println!("{durability:?}; operation, callers: operations/s, CPU us/operation");
    dynamodb(&embedded).await?;
    sqs(&embedded).await?;
    embedded.close();
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

async fn dynamodb(embedded: &Embedded) -> Result<(), Failed> {
    let client = aws_sdk_dynamodb::Client::new(&embedded.sdk_config());
    let id =
        AttributeDefinition::builder().attribute_name("id").attribute_type(ScalarAttributeType::S).build()?;
    let hash = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build()?;
    let create = client.create_table().table_name("table").billing_mode(BillingMode::PayPerRequest);
    create.attribute_definitions(id).key_schema(hash).send().await?;
    let text = |n: u64| AttributeValue::S(n.to_string());
    let one = || AttributeValue::N("1".to_owned());
    for callers in [1, 64] {
        measure("PutItem", callers, |n| {
            let put = client.put_item().table_name("table").item("id", text(n));
            let put = put.item("value", AttributeValue::S("x".repeat(200)));
            let put = put.condition_expression("attribute_not_exists(closed_by)");
            async move { Ok(put.send().await.map(drop)?) }
        })
        .await?;
        measure("UpdateItem", callers, |n| {
            let update = client.update_item().table_name("table").key("id", text(n % 1000));
            let update = update.update_expression("ADD done :one").expression_attribute_values(":one", one());
            async move { Ok(update.send().await.map(drop)?) }
        })
        .await?;
        measure("TransactWriteItems(2 updates)", callers, |n| {
            let update = |id: String| {
                let update = Update::builder().table_name("table").key("id", AttributeValue::S(id));
                let update =
                    update.update_expression("ADD done :one").expression_attribute_values(":one", one());
                update.build().map(|update| TransactWriteItem::builder().update(update).build())
            };
            let items = [update((n % 1000).to_string()), update(format!("shard{}", n % 16))];
            let client = client.clone();
            async move {
                let items = items.into_iter().collect::<Result<Vec<_>, _>>()?;
                Ok(client.transact_write_items().set_transact_items(Some(items)).send().await.map(drop)?)
            }
        })
        .await?;
        measure("GetItem", callers, |n| {
            let get = client.get_item().table_name("table").key("id", text(n % 1000));
            async move { Ok(get.send().await.map(drop)?) }
        })
        .await?;
    }
    Ok(())
}

async fn sqs(embedded: &Embedded) -> Result<(), Failed> {
    let client = aws_sdk_sqs::Client::new(&embedded.sdk_config());
    let url = client.create_queue().queue_name("queue").send().await?.queue_url.ok_or("no URL")?;
    for callers in [1, 8] {
        measure("SendMessageBatch(10)", callers, |n| {
            let (client, url) = (client.clone(), url.clone());
            async move {
                let entries = (0..10).map(|i| {
                    let entry = SendMessageBatchRequestEntry::builder().id(i.to_string());
                    entry.message_group_id(format!("run-{}", n % 3)).message_body("x".repeat(150)).build()
                });
                let entries = entries.collect::<Result<Vec<_>, _>>()?;
                client.send_message_batch().queue_url(url).set_entries(Some(entries)).send().await?;
                Ok(())
            }
        })
        .await?;
        measure("ReceiveMessage(10) + DeleteMessageBatch(10)", callers, |_| {
            let (client, url) = (client.clone(), url.clone());
            async move {
                let receive = client.receive_message().queue_url(&url).max_number_of_messages(10);
                let messages = receive.send().await?.messages.unwrap_or_default();
                let entries = messages.iter().enumerate().map(|(i, message)| {
                    let entry = DeleteMessageBatchRequestEntry::builder().id(i.to_string());
                    entry.set_receipt_handle(message.receipt_handle.clone()).build()
                });
                let entries = entries.collect::<Result<Vec<_>, _>>()?;
                if !entries.is_empty() {
                    client.delete_message_batch().queue_url(url).set_entries(Some(entries)).send().await?;
                }
                Ok(())
            }
        })
        .await?;
    }
    Ok(())
}

async fn measure<F>(name: &str, callers: u64, operation: impl Fn(u64) -> F) -> Result<(), Failed>
where
    F: Future<Output = Result<(), Failed>> + Send + 'static,
{
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let mut tasks = tokio::task::JoinSet::new();
    let mut done = 0_u64;
    let mut started = 0;
    loop {
        let more = start.elapsed() < Duration::from_secs(SECONDS_EACH);
        while more && started - done < callers {
            tasks.spawn(operation(started));
            started += 1;
        }
        let Some(finished) = tasks.join_next().await else { break };
        finished??;
        done += 1;
    }
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    println!("{name}, {callers}: {:.0}/s, {:.0} us", done as f64 / seconds, cpu * 1e6 / done as f64);
    Ok(())
}

/// User and system time of this process, where the system tells it.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = after_name.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / CLOCK_TICKS_PER_SECOND
}
