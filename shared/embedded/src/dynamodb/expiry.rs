//! Deletion of items whose time to live has passed, found by an index instead of a scan of the table.
//!
//! The database keeps items as JSON. An index over the attribute has entries for the items that contain its name, so a
//! write of another item costs one search for the name, and a sweep reads only what has expired.

use std::time::{SystemTime, UNIX_EPOCH};

use dynoxide::DynoxideError;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::operations::{Engine, Request};

/// Maximum number of items that one sweep deletes, so that calls don't wait longer for it.
pub(super) const SWEPT_MAX: usize = 500;

/// A table with a time to live, as SQL.
struct ExpiringTable {
    name: String,
    /// Names of the key attributes.
    key: Vec<String>,
    /// Statement that creates the index, unless there is one.
    create_index: String,
    /// Query of the expired items at a time in seconds, at most a number of them.
    select_expired: String,
}

/// Part of a key schema.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KeyPart {
    attribute_name: String,
}

impl ExpiringTable {
    fn new(name: String, attribute: &str, key_schema: &str) -> Result<Self, DynoxideError> {
        let key: Vec<KeyPart> = serde_json::from_str(key_schema).map_err(internal)?;
        // As it is in the JSON of an item.
        let named = Value::from(attribute).to_string();
        let has_name = format!("instr(item_json, {}) > 0", literal(&named));
        let path = literal(&format!("$.{named}.N"));
        let expiry = format!("CAST(json_extract(item_json, {path}) AS INTEGER)");
        let index = identifier(&format!("{name}::expiry::{attribute}"));
        let table = identifier(&name);
        Ok(Self {
            create_index: format!(
                "CREATE INDEX IF NOT EXISTS {index} ON {table} ({expiry}) WHERE {has_name}"
            ),
            select_expired: format!(
                "SELECT item_json FROM {table} INDEXED BY {index} \
                 WHERE {has_name} AND {expiry} >= 0 AND {expiry} < ?1 LIMIT ?2"
            ),
            name,
            key: key.into_iter().map(|part| part.attribute_name).collect(),
        })
    }
}

/// Deletes at most [`SWEPT_MAX`] items whose time to live has passed. Returns their number: if it's the maximum, there may be
/// more.
pub(super) async fn sweep(engine: &Engine) -> Result<usize, DynoxideError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(internal)?.as_secs();
    let mut deleted = 0;
    for table in expiring_tables(engine)? {
        for key in expired_keys(engine, &table, now, SWEPT_MAX - deleted)? {
            let input = json!({ "TableName": table.name, "Key": key });
            Request::parse("DeleteItem", input.to_string().as_bytes())?.run(engine).await?;
            deleted += 1;
        }
    }
    Ok(deleted)
}

fn expiring_tables(engine: &Engine) -> Result<Vec<ExpiringTable>, DynoxideError> {
    let tables = engine.storage.list_ttl_enabled_tables()?.into_iter();
    tables
        .filter_map(|table| {
            Some(ExpiringTable::new(table.table_name, &table.ttl_attribute?, &table.key_schema))
        })
        .collect()
}

fn expired_keys(
    engine: &Engine,
    table: &ExpiringTable,
    now: u64,
    limit: usize,
) -> Result<Vec<Map<String, Value>>, DynoxideError> {
    let connection = engine.storage.conn();
    connection.execute_batch(&table.create_index).map_err(internal)?;
    let mut select = connection.prepare_cached(&table.select_expired).map_err(internal)?;
    let (now, limit) = (i64::try_from(now).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
    let items = select.query_map([now, limit], |row| row.get::<_, String>(0)).map_err(internal)?;
    let mut keys = Vec::new();
    for item in items {
        let mut item: Map<String, Value> =
            serde_json::from_str(&item.map_err(internal)?).map_err(internal)?;
        keys.push(table.key.iter().filter_map(|name| item.remove_entry(name)).collect());
    }
    Ok(keys)
}

fn internal(error: impl std::fmt::Display) -> DynoxideError {
    DynoxideError::InternalServerError(error.to_string())
}

/// Quotes a text as a literal of SQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Quotes a name as an identifier of SQL.
fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use dynoxide::storage::Storage;
    use futures_util::FutureExt;
    use rusqlite::StatementStatus;

    use super::*;

    fn call(engine: &Engine, action: &str, input: &Value) {
        let request = Request::parse(action, input.to_string().as_bytes()).unwrap();
        request.run(engine).now_or_never().unwrap().unwrap();
    }

    /// Creates a table whose items expire by the attribute.
    fn engine(attribute: &str) -> Engine {
        let engine = Engine::new(Storage::memory().unwrap());
        call(
            &engine,
            "CreateTable",
            &json!({
                "TableName": "items", "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [
                    { "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "N" },
                ],
                "KeySchema": [
                    { "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" },
                ],
            }),
        );
        let specification = json!({ "AttributeName": attribute, "Enabled": true });
        let input = json!({ "TableName": "items", "TimeToLiveSpecification": specification });
        call(&engine, "UpdateTimeToLive", &input);
        engine
    }

    fn put(engine: &Engine, number: usize, attribute: &str, value: &Value) {
        let (pk, sk) = (json!({ "S": format!("p{number}") }), json!({ "N": number.to_string() }));
        let item = json!({ "pk": pk, "sk": sk, attribute: value });
        call(engine, "PutItem", &json!({ "TableName": "items", "Item": item }));
    }

    fn swept(engine: &Engine) -> usize {
        sweep(engine).now_or_never().unwrap().unwrap()
    }

    fn count(engine: &Engine) -> i64 {
        engine.storage.count_items("items").unwrap()
    }

    #[test]
    fn only_items_past_their_time_are_deleted() {
        for attribute in ["expires_at", "it's \"odd\" é"] {
            let engine = engine(attribute);
            let values = [
                json!({ "N": "1" }),
                json!({ "N": "99999999999" }),
                json!({ "N": "-5" }),
                json!({ "S": "1" }),
                json!({ "S": attribute }),
                json!({ "M": { attribute: { "N": "1" } } }),
            ];
            for (number, value) in values.iter().enumerate() {
                put(&engine, number, attribute, value);
            }
            put(&engine, 100, "other", &json!({ "N": "1" }));
            assert_eq!((swept(&engine), count(&engine)), (1, 6), "{attribute}");
            // Items that are written after the index was created are in it.
            put(&engine, 1, attribute, &json!({ "N": "2" }));
            assert_eq!((swept(&engine), swept(&engine), count(&engine)), (1, 0, 5), "{attribute}");
        }
    }

    #[test]
    fn a_sweep_is_bounded() {
        let engine = engine("expires_at");
        for number in 0..SWEPT_MAX + 20 {
            put(&engine, number, "expires_at", &json!({ "N": "1" }));
        }
        assert_eq!([swept(&engine), swept(&engine), swept(&engine)], [SWEPT_MAX, 20, 0]);
        assert_eq!(count(&engine), 0);
    }

    #[test]
    fn a_sweep_reads_expired_items_alone() {
        let engine = engine("expires_at");
        for number in 0..2_000 {
            let time = if number % 1_000 == 0 { "1" } else { "99999999999" };
            put(&engine, number, "expires_at", &json!({ "N": time }));
        }
        let table = expiring_tables(&engine).unwrap().remove(0);
        let connection = engine.storage.conn();
        connection.execute_batch(&table.create_index).unwrap();
        let mut select = connection.prepare(&table.select_expired).unwrap();
        let found = select.query_map([1_000, 10], |row| row.get::<_, String>(0)).unwrap().count();
        assert_eq!(found, 2);
        assert_eq!(select.get_status(StatementStatus::FullscanStep), 0);
        let steps = select.get_status(StatementStatus::VmStep);
        assert!(steps < 200, "{steps} steps for 2 of 2,000 items");
    }
}
