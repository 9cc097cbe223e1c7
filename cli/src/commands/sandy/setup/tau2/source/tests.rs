use std::io::Cursor;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

const OTHER: &str = "[project]\nname = \"tau2\"\nversion = \"0.2.0\"\n";
const OURS: &str = "[project]\nname = \"tau2\"\nversion = \"1.0.1\"\n";

fn archive(files: &[(&str, &str)]) -> Cursor<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, text) in files {
        zip.start_file(*path, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap()
}

fn refused(files: &[(&str, &str)]) -> String {
    Source::unpack("`x.zip`", archive(files)).err().unwrap().to_string()
}

#[test]
fn the_list_has_the_files_that_steps_need() {
    let all: Vec<_> = files().collect();
    assert_eq!(all.len(), FILES.lines().count());
    for (path, digest) in &all {
        assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{path}");
        assert!(!path.starts_with('/') && !path.contains(".."), "{path}");
    }
    let has = |path: &str| all.iter().any(|(listed, _)| *listed == path);
    assert!(has(PROJECT) && has("data/tau2/domains/telecom/tasks.json"));
    assert!(has("src/tau2/evaluator/evaluator.py") && has("src/tau2/domains/telecom/tools.py"));
}

#[test]
fn other_versions_and_changed_files_are_refused_by_name() {
    assert_eq!(
        refused(&[("tau2-bench-0.2.0/pyproject.toml", OTHER)]),
        "`x.zip` is tau2 0.2.0, and 1.0.1 is needed"
    );
    assert_eq!(refused(&[("pyproject.toml", OTHER)]), "`x.zip` is tau2 0.2.0, and 1.0.1 is needed");
    let changed =
        refused(&[("a/pyproject.toml", OURS), ("a/LICENSE", "mine"), ("a/b/pyproject.toml", OTHER)]);
    assert!(
        changed.starts_with("`x.zip` differs from tau2 1.0.1: LICENSE was changed, data/tau2/"),
        "{changed}"
    );
    assert!(changed.contains("is missing") && changed.ends_with(" more"), "{changed}");
    let not_one = "`x.zip` is not a source tree or ZIP archive of tau2: it has no pyproject.toml";
    assert_eq!(refused(&[("README.md", "")]), not_one);
    assert_eq!(refused(&[("pyproject.toml", "[project]\nname = \"other\"\n")]), format!("{not_one} of tau2"));
    let text = Source::unpack("`x`", Cursor::new(b"no archive".to_vec())).err().unwrap().to_string();
    assert!(text.starts_with("`x` is not a source tree or ZIP archive of tau2: "), "{text}");
}

#[tokio::test]
async fn folders_are_checked_like_archives() {
    let folder = tempfile::tempdir().unwrap();
    let read = || Source::read(Some(folder.path()));
    assert!(read().await.err().unwrap().to_string().ends_with("it has no pyproject.toml of tau2"));
    fs::write(folder.path().join(PROJECT), OTHER).unwrap();
    assert!(read().await.err().unwrap().to_string().ends_with("is tau2 0.2.0, and 1.0.1 is needed"));
    fs::write(folder.path().join(PROJECT), OURS).unwrap();
    assert!(read().await.err().unwrap().to_string().contains("LICENSE is missing"));
    let missing = Source::read(Some(&folder.path().join("none.zip"))).await.err().unwrap().to_string();
    assert!(missing.starts_with("--source: `"), "{missing}");
}
