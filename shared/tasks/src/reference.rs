//! Names by which orders refer to tasks.

use bench_state::TaskRecord;

/// Number of digits of a content hash in the id of an item.
const HASH_DIGITS: usize = 12;
const FULL_HASH_DIGITS: usize = 64;

/// Reference to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskReference {
    /// Id of an upload.
    Id(u64),
    /// Content hash.
    Hash(String),
    /// Id of the item in datasets, `NAME@HASH12`.
    Item(String),
}

impl TaskReference {
    /// Parses an id, a content hash or `NAME@HASH12`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() == FULL_HASH_DIGITS && is_hex(text) {
            return Some(Self::Hash(text.to_owned()));
        }
        if let Some((name, hash)) = text.rsplit_once('@') {
            let is_item = !name.is_empty() && hash.len() == HASH_DIGITS && is_hex(hash);
            return is_item.then(|| Self::Item(text.to_owned()));
        }
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| text.parse().ok().map(Self::Id)).flatten()
    }
}

/// Returns the id of a task's item in datasets: `NAME@` and the first 12 digits of the content hash.
pub fn item_id(task: &TaskRecord) -> String {
    item_id_of(&task.facts.task_name, &task.facts.content_hash)
}

/// Returns the id of the item with this name in datasets and this content.
pub fn item_id_of(task_name: &str, hash: &str) -> String {
    format!("{task_name}@{}", hash.get(..HASH_DIGITS).unwrap_or(hash))
}

/// Finds a task among those that the caller may use. Of several uploads of the same content, the first one counts.
pub fn find_task<'a>(tasks: &'a [TaskRecord], reference: &TaskReference) -> Option<&'a TaskRecord> {
    tasks.iter().find(|task| match reference {
        TaskReference::Id(id) => task.id == *id,
        TaskReference::Hash(hash) => task.facts.content_hash == *hash,
        TaskReference::Item(item) => item_id(task) == *item,
    })
}

#[cfg(test)]
mod tests {
    use super::TaskReference;

    #[test]
    fn references_are_ids_hashes_and_item_ids() {
        let hash = "0123456789abcdef".repeat(4);
        assert_eq!(TaskReference::parse(" 7 "), Some(TaskReference::Id(7)));
        assert_eq!(TaskReference::parse(&hash), Some(TaskReference::Hash(hash.clone())));
        let item = "org/name@0123456789ab";
        assert_eq!(TaskReference::parse(item), Some(TaskReference::Item(item.to_owned())));
        for bad in ["", "-1", "+1", "1.0", "name", "name@1", "@0123456789ab", "99999999999999999999999"] {
            assert_eq!(TaskReference::parse(bad), None, "{bad}");
        }
    }
}
