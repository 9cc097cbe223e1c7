//! Identity of an item across revisions of its dataset.

use serde_json::Value;

use crate::item::Item;
use crate::layout::Layout;

/// Returns the value that identifies an item: its question, or all columns if it has none.
pub fn identity(layout: &dyn Layout, item: &Item) -> Value {
    let question = layout.question_columns().iter().find_map(|column| item.row.get(*column));
    question.cloned().unwrap_or_else(|| Value::Object(item.row.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dataset::DatasetSpec;
    use crate::item::{Row, RowError};

    struct Columns(&'static [&'static str]);

    impl Layout for Columns {
        fn name(&self) -> &'static str {
            "columns"
        }

        fn spec(&self) -> &DatasetSpec {
            &DatasetSpec::DEFAULT
        }

        fn question_columns(&self) -> &'static [&'static str] {
            self.0
        }

        fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
            Ok(Some(Item::new(index.to_string(), None, row)))
        }
    }

    #[test]
    fn the_first_column_that_is_there_counts() {
        let row = json!({ "problem": "Find n.", "answer": 70 });
        let item = Item::new("0", None, row.as_object().cloned().unwrap());
        assert_eq!(identity(&Columns(&["question", "problem"]), &item), json!("Find n."));
        assert_eq!(identity(&Columns(&["answer", "problem"]), &item), json!(70));
        assert_eq!(identity(&Columns(&["prompt"]), &item), row);
        assert_eq!(identity(&Columns(&[]), &item), row);
    }
}
