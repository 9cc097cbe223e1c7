//! Parquet files for tests, written with the low-level writer.

use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// A column and its values, all of which are optional.
pub(crate) enum Column {
    Int(&'static str, Vec<Option<i64>>),
    Time(&'static str, Vec<Option<i64>>),
    Double(&'static str, Vec<Option<f64>>),
    Bool(&'static str, Vec<Option<bool>>),
    Decimal(&'static str, Vec<Option<i32>>),
    Text(&'static str, Vec<Option<String>>),
    Bytes(&'static str, Vec<Option<Vec<u8>>>),
    /// A list of texts.
    Texts(&'static str, Vec<Option<Vec<String>>>),
    /// A struct of one text, `inner`.
    Struct(&'static str, Vec<Option<String>>),
}

impl Column {
    fn schema(&self) -> String {
        match self {
            Self::Int(name, _) => format!("OPTIONAL INT64 {name};"),
            Self::Time(name, _) => format!("OPTIONAL INT64 {name} (TIMESTAMP_MICROS);"),
            Self::Double(name, _) => format!("OPTIONAL DOUBLE {name};"),
            Self::Bool(name, _) => format!("OPTIONAL BOOLEAN {name};"),
            Self::Decimal(name, _) => format!("OPTIONAL INT32 {name} (DECIMAL(9,2));"),
            Self::Text(name, _) => format!("OPTIONAL BINARY {name} (UTF8);"),
            Self::Bytes(name, _) => format!("OPTIONAL BINARY {name};"),
            Self::Texts(name, _) => format!(
                "OPTIONAL group {name} (LIST) {{ REPEATED group list {{ OPTIONAL BINARY element (UTF8); }} }}"
            ),
            Self::Struct(name, _) => {
                format!("OPTIONAL group {name} {{ OPTIONAL BINARY inner (UTF8); }}")
            }
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Int(_, v) | Self::Time(_, v) => v.len(),
            Self::Double(_, v) => v.len(),
            Self::Bool(_, v) => v.len(),
            Self::Decimal(_, v) => v.len(),
            Self::Text(_, v) | Self::Struct(_, v) => v.len(),
            Self::Bytes(_, v) => v.len(),
            Self::Texts(_, v) => v.len(),
        }
    }
}

macro_rules! flat {
    ($group:expr, $kind:ty, $values:expr, $present:expr) => {{
        let levels: Vec<i16> = $values.iter().map(|v| if v.is_some() { $present } else { 0 }).collect();
        let values: Vec<_> = $values.iter().flatten().cloned().map(Into::into).collect();
        let mut column = $group.next_column().unwrap().unwrap();
        column.typed::<$kind>().write_batch(&values, Some(&levels), None).unwrap();
        column.close().unwrap();
    }};
}

/// A file of these columns, `rows_per_group` rows in each row group.
pub(crate) fn parquet(columns: &[Column], rows_per_group: usize, compression: Compression) -> Vec<u8> {
    let schema: String = columns.iter().map(Column::schema).collect();
    let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
    let rows = columns.first().map_or(0, Column::rows);
    let mut from = 0;
    while from < rows {
        let to = rows.min(from + rows_per_group);
        let mut group = writer.next_row_group().unwrap();
        for column in columns {
            write(&mut group, column, from, to);
        }
        group.close().unwrap();
        from = to;
    }
    writer.close().unwrap();
    bytes
}

fn text(text: &str) -> ByteArray {
    ByteArray::from(text.as_bytes().to_vec())
}

fn write(group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>, column: &Column, from: usize, to: usize) {
    match column {
        Column::Int(_, values) | Column::Time(_, values) => flat!(group, Int64Type, values[from..to], 1),
        Column::Double(_, values) => flat!(group, DoubleType, values[from..to], 1),
        Column::Bool(_, values) => flat!(group, BoolType, values[from..to], 1),
        Column::Decimal(_, values) => flat!(group, Int32Type, values[from..to], 1),
        Column::Text(_, values) => {
            let values: Vec<Option<ByteArray>> =
                values[from..to].iter().map(|v| v.as_deref().map(text)).collect();
            flat!(group, ByteArrayType, values, 1);
        }
        Column::Struct(_, values) => {
            let values: Vec<Option<ByteArray>> =
                values[from..to].iter().map(|v| v.as_deref().map(text)).collect();
            flat!(group, ByteArrayType, values, 2);
        }
        Column::Bytes(_, values) => flat!(group, ByteArrayType, values[from..to], 1),
        Column::Texts(_, values) => {
            let (mut elements, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
            for list in &values[from..to] {
                match list.as_deref() {
                    None => definitions.push(0),
                    Some([]) => definitions.push(1),
                    Some(list) => {
                        definitions.extend(list.iter().map(|_| 3));
                        elements.extend(list.iter().map(|t| text(t)));
                    }
                }
                let length = list.as_ref().map_or(1, |list| list.len().max(1));
                repetitions.extend((0..length).map(|index| i16::from(index > 0)));
            }
            let mut column = group.next_column().unwrap().unwrap();
            let typed = column.typed::<ByteArrayType>();
            typed.write_batch(&elements, Some(&definitions), Some(&repetitions)).unwrap();
            column.close().unwrap();
        }
    }
}
