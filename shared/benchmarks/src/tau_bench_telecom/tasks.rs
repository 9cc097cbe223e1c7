//! Tasks of the official repository.

use std::collections::{BTreeMap, HashSet};

use bench_items::{Row, RowError};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{ID_COLUMN, SPLIT, SPLITS_COLUMN};

/// A task, of which only the id is read.
#[derive(Deserialize)]
struct Task {
    id: String,
}

/// Makes rows from the files of splits and tasks: the tasks of the split, in the order of the file of all tasks, as the
/// official program has them.
pub(super) fn rows(files: &[String]) -> Result<Vec<Row>, RowError> {
    let [splits, tasks] = files else {
        return Err(problem(format!("expected two files, found {}", files.len())));
    };
    let splits: BTreeMap<String, Vec<String>> = parse("split_tasks.json", splits)?;
    let tasks: Vec<Task> = parse("tasks.json", tasks)?;
    let split =
        splits.get(SPLIT).ok_or_else(|| problem(format!("split_tasks.json has no split `{SPLIT}`")))?;
    let mut wanted: HashSet<&str> = split.iter().map(String::as_str).collect();
    let rows = tasks.iter().filter(|task| wanted.remove(task.id.as_str())).map(|task| {
        let columns = [(ID_COLUMN, task.id.as_str().into()), (SPLITS_COLUMN, [SPLIT].as_slice().into())];
        columns.into_iter().map(|(column, value)| (column.to_owned(), value)).collect()
    });
    let rows = rows.collect();
    match wanted.iter().min() {
        None => Ok(rows),
        Some(id) => Err(problem(format!("tasks.json has no task `{id}` of the split `{SPLIT}`"))),
    }
}

fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, RowError> {
    serde_json::from_str(text).map_err(|error| problem(format!("{name}: {error}")))
}

fn problem(problem: String) -> RowError {
    RowError { column: None, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(splits: &str, tasks: &str) -> Result<Vec<String>, String> {
        let rows = rows(&[splits.to_owned(), tasks.to_owned()]).map_err(|error| error.problem)?;
        Ok(rows.into_iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect())
    }

    #[test]
    fn tasks_of_the_split_are_in_the_order_of_all_tasks() {
        let tasks = r#"[{"id": "[b]x|y", "other": [1]}, {"id": "c"}, {"id": "a"}]"#;
        let ids = found(r#"{"small": ["c"], "base": ["a", "[b]x|y"]}"#, tasks);
        assert_eq!(ids, Ok(vec!["[b]x|y".to_owned(), "a".to_owned()]));
    }

    #[test]
    fn unusable_files_are_named() {
        for (splits, tasks, part) in [
            ("{}", "[]", "no split `base`"),
            ("[", "[]", "split_tasks.json"),
            (r#"{"base": []}"#, r#"[{"name": 1}]"#, "tasks.json"),
            (r#"{"base": ["a", "b"]}"#, r#"[{"id": "a"}]"#, "no task `b`"),
        ] {
            let problem = found(splits, tasks).unwrap_err();
            assert!(problem.contains(part), "{problem}");
        }
        assert!(rows(&[]).is_err());
    }
}
