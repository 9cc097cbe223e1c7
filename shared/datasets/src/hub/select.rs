//! Selects the files of a repository that belong to a split.
//!
//! The dataset card lists them, or their names follow the rules that the hub documents ("Data files
//! configuration", "File names and splits"): a keyword of the split is part of the file's name or
//! is the name of its folder.

use bench_items::Part;
use serde_json::Value;

use super::glob::Pattern;
use crate::rows::is_readable_name;

/// Returns the indexes of the files of a part, ordered by path; empty if there are none.
pub(super) fn list_files(paths: &[&str], card: &Value, part: Part) -> Vec<usize> {
    let mut chosen = match select_by_card(paths, card, part) {
        Some(chosen) => chosen,
        None => select_by_name(paths, part),
    };
    // The same rows may be present in several formats.
    let ending =
        |index: &usize| paths.get(*index).and_then(|path| path.rsplit('.').next()).map(str::to_lowercase);
    for form in ["parquet", "jsonl", "ndjson", "json", "csv"] {
        if chosen.iter().any(|index| ending(index).as_deref() == Some(form)) {
            chosen.retain(|index| ending(index).as_deref() == Some(form));
            break;
        }
    }
    chosen.sort_by_key(|index| paths.get(*index).copied().unwrap_or_default());
    chosen.dedup();
    chosen
}

/// Returns the requested configuration: the one of that name, or the only one if no name was given.
pub(super) fn config_name<'a>(names: impl Iterator<Item = &'a str> + Clone, wanted: &str) -> Option<&'a str> {
    let mut all = names.clone();
    let only = match (all.next(), all.next()) {
        (Some(only), None) if wanted == "default" => Some(only),
        _ => None,
    };
    let mut names = names;
    names.find(|name| *name == wanted).or(only)
}

/// Selects files by the dataset card; `None` if the card doesn't list any.
fn select_by_card(paths: &[&str], card: &Value, part: Part) -> Option<Vec<usize>> {
    let configs = card.get("configs")?.as_array()?;
    let name = |config: &Value| config.get("config_name").and_then(Value::as_str).map(str::to_owned);
    let names: Vec<String> = configs.iter().filter_map(name).collect();
    let marked = || {
        let default = configs.iter().find(|config| config.get("default") == Some(&Value::Bool(true)))?;
        (part.config == "default").then_some(default)
    };
    let named = config_name(names.iter().map(String::as_str), part.config);
    let config = configs.iter().find(|c| named.is_some() && name(c).as_deref() == named).or_else(marked)?;
    let Some(data_files) = config.get("data_files") else {
        // Only a folder is given; the file names in it determine the splits.
        let folder = config.get("data_dir")?.as_str()?.trim_matches('/').to_owned() + "/";
        let inside: Vec<(usize, &str)> =
            paths.iter().enumerate().filter_map(|(i, path)| Some((i, path.strip_prefix(&folder)?))).collect();
        let names: Vec<&str> = inside.iter().map(|(_, path)| *path).collect();
        let chosen = select_by_name(&names, Part { config: "default", ..part });
        return Some(chosen.into_iter().filter_map(|i| inside.get(i).map(|(index, _)| *index)).collect());
    };
    let patterns: Vec<Pattern> =
        patterns(data_files, part.split).iter().map(|pattern| Pattern::new(pattern)).collect();
    let fits = |path: &str| is_readable_name(path) && patterns.iter().any(|pattern| pattern.matches(path));
    Some(paths.iter().enumerate().filter(|(_, path)| fits(path)).map(|(index, _)| index).collect())
}

/// Returns the file patterns of a split. Files that are listed without a split belong to `train`.
fn patterns(data_files: &Value, split: &str) -> Vec<String> {
    let mut patterns = Vec::new();
    let mut take = |value: &Value| match value {
        Value::String(pattern) => patterns.push(pattern.clone()),
        Value::Array(list) => patterns.extend(list.iter().filter_map(Value::as_str).map(str::to_owned)),
        _ => {}
    };
    match data_files {
        Value::String(_) if split == "train" => take(data_files),
        Value::Array(entries) => {
            for entry in entries {
                match entry {
                    Value::String(_) if split == "train" => take(entry),
                    Value::Object(entry) if entry.get("split").and_then(Value::as_str) == Some(split) => {
                        take(entry.get("path").unwrap_or(&Value::Null));
                    }
                    _ => {}
                }
            }
        }
        Value::Object(by_split) => take(by_split.get(split).unwrap_or(&Value::Null)),
        _ => {}
    }
    patterns
}

/// Selects files by name: those with the best rank.
fn select_by_name(paths: &[&str], part: Part) -> Vec<usize> {
    let ranks: Vec<Option<u8>> = paths.iter().map(|path| rank(path, part)).collect();
    let Some(best) = ranks.iter().flatten().min() else { return Vec::new() };
    ranks.iter().enumerate().filter(|(_, rank)| *rank == &Some(*best)).map(|(index, _)| index).collect()
}

/// Ranks how well a path matches; lower is better, `None` doesn't match.
fn rank(path: &str, part: Part) -> Option<u8> {
    if !is_readable_name(path) {
        return None;
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folders: Vec<&str> = folder.split('/').filter(|f| !f.is_empty()).collect();
    let names_config = folders.contains(&part.config) || name_words(name).any(|word| word == part.config);
    let in_config = part.config == "default" || names_config || name.starts_with(part.config);
    if !in_config {
        return None;
    }
    let keywords = keywords(part.split);
    let starts = keywords.iter().any(|k| {
        let rest = name.strip_prefix(k);
        rest.is_some_and(|rest| rest.starts_with(['-', '.', '_']))
    });
    let plain_place = folders.is_empty() || folders == ["data"] || names_config;
    if starts && plain_place {
        Some(0)
    } else if name_words(name).any(|word| keywords.contains(&word)) && plain_place {
        Some(1)
    } else if folders.last().is_some_and(|folder| keywords.contains(folder)) {
        Some(2)
    } else if name_words(name).any(|word| keywords.contains(&word)) {
        Some(3)
    } else {
        None
    }
}

fn name_words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_alphanumeric())
}

/// Keywords that mark the files of a split.
pub(crate) fn keywords(split: &str) -> Vec<&str> {
    match split {
        "train" => vec!["train", "training"],
        "validation" => vec!["validation", "valid", "val", "dev"],
        "test" => vec!["test", "testing", "eval", "evaluation"],
        other => vec![other],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn choose_files<'a>(
        paths: &[&'a str],
        card: &Value,
        config: &'static str,
        split: &'static str,
    ) -> Vec<&'a str> {
        list_files(paths, card, Part { config, split }).into_iter().map(|index| paths[index]).collect()
    }

    #[test]
    fn splits_are_detected_from_file_names() {
        let paths = [
            "README.md",
            "data/validation-00000-of-00001.parquet",
            "data/test-00001-of-00002.parquet",
            "data/test-00000-of-00002.parquet",
        ];
        let none = Value::Null;
        assert_eq!(choose_files(&paths, &none, "default", "test"), [paths[3], paths[2]]);
        assert_eq!(choose_files(&paths, &none, "default", "validation"), [paths[1]]);
        assert!(choose_files(&paths, &none, "default", "train").is_empty());
        assert!(choose_files(&paths, &none, "other", "test").is_empty());
    }

    #[test]
    fn the_configuration_is_a_folder_or_a_prefix() {
        let paths = ["main/test-0.parquet", "socratic/test-0.parquet", "gpqa_test.jsonl"];
        assert_eq!(choose_files(&paths, &Value::Null, "main", "test"), [paths[0]]);
        assert_eq!(choose_files(&paths, &Value::Null, "gpqa", "test"), [paths[2]]);
    }

    #[test]
    fn one_file_format_is_enough() {
        let paths = ["test.jsonl", "test.parquet", "test.csv"];
        assert_eq!(choose_files(&paths, &Value::Null, "default", "test"), ["test.parquet"]);
        assert_eq!(choose_files(&paths[2..], &Value::Null, "default", "test"), ["test.csv"]);
        assert!(choose_files(&["test.txt"], &Value::Null, "default", "test").is_empty());
        assert!(choose_files(&["contest.jsonl"], &Value::Null, "default", "test").is_empty());
        assert_eq!(choose_files(&["test/0.jsonl"], &Value::Null, "default", "test"), ["test/0.jsonl"]);
        assert_eq!(choose_files(&["dev.jsonl"], &Value::Null, "default", "validation"), ["dev.jsonl"]);
    }

    #[test]
    fn the_card_comes_before_names() {
        let card = json!({"configs": [
            {"config_name": "AIME2025-I", "data_files": [{"split": "test", "path": "aime2025-I.jsonl"}]},
            {"config_name": "AIME2025-II", "data_files": [{"split": "test", "path": ["aime2025-II.jsonl"]}]},
        ]});
        let paths = ["aime2025-I.jsonl", "aime2025-II.jsonl", "test.jsonl"];
        assert_eq!(choose_files(&paths, &card, "AIME2025-I", "test"), [paths[0]]);
        assert_eq!(choose_files(&paths, &card, "AIME2025-II", "test"), [paths[1]]);
        assert!(choose_files(&paths, &card, "AIME2025-I", "train").is_empty());
        // The card doesn't have this configuration, so names decide.
        assert_eq!(choose_files(&paths, &card, "default", "test"), ["test.jsonl"]);
    }

    #[test]
    fn cards_list_files_in_many_forms() {
        let paths = ["a/x.jsonl", "a/test.jsonl", "b.json"];
        let card = |config: Value| json!({"configs": [config]});
        let only = card(json!({"config_name": "x", "data_files": "a/*"}));
        assert_eq!(choose_files(&paths, &only, "default", "train"), ["a/test.jsonl", "a/x.jsonl"]);
        let folder = card(json!({"config_name": "default", "data_dir": "a"}));
        assert_eq!(choose_files(&paths, &folder, "default", "test"), ["a/test.jsonl"]);
        let map = card(json!({"config_name": "default", "data_files": {"test": "b.json"}}));
        assert_eq!(choose_files(&paths, &map, "default", "test"), ["b.json"]);
        for broken in [json!(7), json!({"configs": 7}), json!({"configs": [7, {"config_name": 7}]})] {
            assert_eq!(choose_files(&paths, &broken, "default", "test"), ["a/test.jsonl"], "{broken}");
        }
    }
}
