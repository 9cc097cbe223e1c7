use ::parquet::basic::{Compression, GzipLevel, ZstdLevel};
use serde_json::{Value, json};

use super::shorten_message;
use crate::rows::testing::rows_of;

#[path = "../../../tests/it/parquet_files.rs"]
mod parquet_files;
use parquet_files::{Column, parquet};

fn texts(list: &[&str]) -> Option<Vec<String>> {
    Some(list.iter().map(|text| (*text).to_owned()).collect())
}

fn columns() -> Vec<Column> {
    vec![
        Column::Int("question_id", vec![Some(70), None, Some(-1), Some(i64::MAX)]),
        Column::Text("question", vec![Some("Why?".into()), Some("ü".repeat(300)), None, Some(String::new())]),
        Column::Texts("options", vec![texts(&["a", "b"]), None, texts(&[]), texts(&["c"])]),
        Column::Double("share", vec![Some(0.5), Some(f64::NAN), None, Some(1e-7)]),
        Column::Bool("hard", vec![Some(true), Some(false), None, None]),
        Column::Decimal("price", vec![Some(-12_345), None, None, Some(5)]),
        Column::Time("at", vec![Some(1_000_000), None, None, None]),
        Column::Bytes("raw", vec![Some(vec![0xff]), None, None, Some(vec![])]),
        Column::Struct("meta", vec![Some("x".into()), None, None, None]),
    ]
}

fn expected() -> Vec<Value> {
    vec![
        json!({"question_id": 70, "question": "Why?", "options": ["a", "b"], "share": 0.5, "hard": true,
               "price": "-123.45", "at": "1970-01-01T00:00:01Z", "raw": "/w==", "meta": {"inner": "x"}}),
        json!({"question_id": null, "question": "ü".repeat(300), "options": null, "share": null, "hard": false,
               "price": null, "at": null, "raw": null, "meta": null}),
        json!({"question_id": -1, "question": null, "options": [], "share": null, "hard": null,
               "price": null, "at": null, "raw": null, "meta": null}),
        json!({"question_id": i64::MAX, "question": "", "options": ["c"], "share": 1e-7, "hard": null,
               "price": "0.05", "at": null, "raw": "", "meta": null}),
    ]
}

fn zstd() -> Compression {
    Compression::ZSTD(ZstdLevel::default())
}

#[test]
fn every_kind_of_column_is_read() {
    let gzip = Compression::GZIP(GzipLevel::default());
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, zstd(), gzip] {
        for rows_per_group in [1, 3, 100] {
            let rows = rows_of(&parquet(&columns(), rows_per_group, compression)).unwrap();
            assert_eq!(rows.iter().map(|r| r.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
            let rows: Vec<Value> = rows.into_iter().map(|r| Value::Object(r.row)).collect();
            assert_eq!(rows, expected(), "{compression:?} {rows_per_group}");
        }
    }
}

#[test]
fn invalid_text_is_reported_with_row_and_column() {
    // The second value of `question` is not UTF-8.
    let mut file = parquet(
        &[
            Column::Int("id", vec![Some(1), Some(2)]),
            Column::Text("question", vec![Some("first".into()), Some("SECOND".into())]),
        ],
        1,
        Compression::UNCOMPRESSED,
    );
    // The value is written in the dictionary page; statistics repeat it.
    let places: Vec<_> = (0..file.len() - 6).filter(|at| &file[*at..at + 6] == b"SECOND").collect();
    file[places[0] + 1] = 0xff;
    let error = rows_of(&file).unwrap_err().to_string();
    assert!(error.starts_with("f, row 2, column `question`: "), "{error}");
    assert!(error.len() < 400, "{error}");
}

#[test]
fn truncated_files_are_errors() {
    let file = parquet(&columns(), 2, zstd());
    for length in 4..file.len() {
        assert!(rows_of(&file[..length]).is_err(), "{length}");
    }
}

/// Changes random bytes: reading must end in rows or an error, never in a panic, and quickly.
#[test]
fn mutated_files_never_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % 0x7fff_ffff).unwrap()
    };
    let (mut read, mut refused) = (0, 0);
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, zstd()] {
        let file = parquet(&columns(), 2, compression);
        for _ in 0..1_500 {
            let mut bad = file.clone();
            for _ in 0..=random() % 4 {
                // Keep the first four bytes, which identify the file as Parquet.
                let at = 4 + random() % (bad.len() - 4);
                bad[at] = u8::try_from(random() % 256).unwrap();
            }
            match rows_of(&bad) {
                Ok(rows) => {
                    assert!(rows.len() < 1_000);
                    read += 1;
                }
                Err(error) => {
                    assert!(error.to_string().starts_with('f'), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}

#[test]
fn other_bytes_are_errors() {
    for bytes in [&b"PAR1"[..], b"PAR1PAR1", b"PAR1\0\0\0\0PAR1", b"PAR1\xff\xff\xff\x7fPAR1"] {
        assert!(rows_of(bytes).is_err(), "{bytes:?}");
    }
}

#[test]
fn messages_stay_short() {
    assert_eq!(shorten_message("Parquet error: no\nmore"), "no");
    assert_eq!(shorten_message(&"x".repeat(1_000)).chars().count(), 201);
}
