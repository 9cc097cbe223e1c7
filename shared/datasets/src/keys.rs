//! Object keys of datasets in the blob store.

use bench_items::Layout;
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

/// Prefix of the keys of all datasets.
pub(crate) const ROOT: &str = "datasets/";
/// Prefix of the keys of all official texts.
const TEMPLATES: &str = "templates/";
/// Prefix of the keys of all documents. No benchmark has this name.
pub(crate) const DOCUMENTS: &str = "datasets/documents/";
/// Prefix of the keys of all files that jobs need. No benchmark has this name.
pub(crate) const FILES: &str = "datasets/files/";
/// Suffix of the key of an index.
pub(crate) const INDEX: &str = "/index.json.zst";
const DATA: &str = "/data.zst";
/// Number of characters of a name that stay readable in a key.
const READABLE_CHARS_MAX: usize = 48;

/// Returns the folder of one source of a benchmark's dataset.
pub(crate) fn source(layout: &dyn Layout, id: &str) -> String {
    let variant = match layout.variant() {
        "" => String::new(),
        variant => format!("-{}", slug(variant)),
    };
    format!("{ROOT}{}/v{}{variant}/{}", layout.name(), layout.version(), slug(id))
}

/// Returns the folder of one revision.
pub(crate) fn revision(layout: &dyn Layout, id: &str, revision: &str) -> String {
    format!("{}/{}", source(layout, id), slug(revision))
}

/// Returns the key of the object that records a branch's last revision.
pub(crate) fn reference(layout: &dyn Layout, id: &str, reference: &str) -> String {
    format!("{}/refs/{}.json.zst", source(layout, id), unique_slug(reference))
}

pub(crate) fn index(folder: &str) -> String {
    format!("{folder}{INDEX}")
}

/// Returns the key of the checkpoint of an unfinished dataset.
pub(crate) fn checkpoint(folder: &str) -> String {
    format!("{folder}/progress.json.zst")
}

pub(crate) fn data(folder: &str) -> String {
    format!("{folder}{DATA}")
}

/// Returns the key of a support value, from the key of the data object.
pub(crate) fn support(data_key: &str, name: &str) -> String {
    let folder = data_key.strip_suffix(DATA).unwrap_or(data_key);
    format!("{folder}/support/{}.json.zst", unique_slug(name))
}

/// Returns the key of an item's file, from the key of the data object.
pub(crate) fn item_file(data_key: &str, sha256: &str) -> String {
    let folder = data_key.strip_suffix(DATA).unwrap_or(data_key);
    format!("{folder}/files/{}", slug(sha256))
}

/// Returns the key of an item's official files, from the key of the data object.
pub(crate) fn official_files(data_key: &str, item_id: &str) -> String {
    let folder = data_key.strip_suffix(DATA).unwrap_or(data_key);
    format!("{folder}/official/{}.json.zst", unique_slug(item_id))
}

/// Returns the folder of an archive's documents.
pub(crate) fn documents(archive_sha256: &str) -> String {
    format!("{DOCUMENTS}{}", slug(archive_sha256))
}

/// Returns the key of an archive's document list, which is written last.
pub(crate) fn document_list(archive_sha256: &str) -> String {
    format!("{}/list.json.zst", documents(archive_sha256))
}

/// Returns the key of one document. Names are normalized to NFC, since archives often encode accents differently from
/// the rows that name their members.
pub(crate) fn document(archive_sha256: &str, name: &str) -> String {
    let name: String = name.nfc().collect();
    format!("{}/{}.json.zst", documents(archive_sha256), unique_slug(&name))
}

/// Returns the key of a file that jobs need.
pub(crate) fn file(sha256: &str) -> String {
    format!("{FILES}{}", slug(sha256))
}

/// Returns the key of an official text.
pub(crate) fn template(sha256: &str) -> String {
    format!("{TEMPLATES}{}", slug(sha256))
}

/// Returns the key that stores the digest of an official text whose origin alone is pinned.
pub(crate) fn template_origin(origin: &str) -> String {
    format!("{TEMPLATES}origins/{}", unique_slug(origin))
}

/// Converts a text to one component of a key: `TIGER-Lab/MMLU-Pro` becomes `TIGER-Lab--MMLU-Pro`.
fn slug(text: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    text.replace('/', "--").chars().map(kept).collect()
}

/// Returns a slug that differs for different texts.
fn unique_slug(text: &str) -> String {
    let short: String = slug(text).chars().take(READABLE_CHARS_MAX).collect();
    let digest = hex::encode(Sha256::digest(text));
    format!("{short}-{}", digest.get(..12).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_parts_of_keys() {
        assert_eq!(slug("TIGER-Lab/MMLU-Pro"), "TIGER-Lab--MMLU-Pro");
        assert_eq!(slug("a b/../ü"), "a_b--..--_");
        assert_ne!(unique_slug("computer science"), unique_slug("computer_science"));
        assert!(unique_slug(&"x".repeat(500)).len() < 80);
    }

    #[test]
    fn documents_are_found_however_their_accents_are_written() {
        assert_eq!(document("ab", "c/Ba\u{15f}ak.txt"), document("ab", "c/Bas\u{327}ak.txt"));
        assert_ne!(document("ab", "c/Basak.txt"), document("ab", "c/Ba\u{15f}ak.txt"));
    }

    #[test]
    fn support_is_beside_the_data() {
        let key = support("datasets/b/v1/demo/abc/data.zst", "law");
        assert!(key.starts_with("datasets/b/v1/demo/abc/support/law-"), "{key}");
    }
}
