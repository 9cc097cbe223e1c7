//! Official texts: from their origin into the blob store. All texts here are invented.

use std::time::Duration;

use bench_blobs::Blobs;
use bench_datasets::{Library, NoProgress, OfficialTexts, TemplateLookup, load_template, load_templates};
use bench_items::{TemplateOrigin, TemplatePart, TemplateRole, TemplateSpec, WheelSpec};

use crate::custom_layout::{CustomLayout, constant, leak, sha256, templates};
use crate::hub_server::{Fault, Repository, TestHub};
use crate::support::{Bench, COMMIT, token};

const CODE: &str = "\
import re
ASK = \"\"\"
Answer {question} in one word.
\"\"\".strip()
JUDGE = (
    'Is {answer} the same as '  # no judge is named
    \"{gold}?\\n\"
)
NUMBER = 7
";
const ASK: &str = "Answer {question} in one word.";
const JUDGE: &str = "Is {answer} the same as {gold}?\n";
const CARD: &str = "# Quiz\n\n## Prompt\n\n```text\nOne\nTwo\n```\n";
const CARD_PROMPT: &str = "One\nTwo";

const BLOCK: TemplateSpec = TemplateSpec {
    name: "block",
    role: TemplateRole::Wording,
    origin: TemplateOrigin::Hub { id: "org/quiz", commit: COMMIT, path: "README.md" },
    part: TemplatePart::FenceAfter("## Prompt"),
    sha256: None,
};

/// Servers of the authors' code and of the hub with the card.
async fn origins() -> TestHub {
    let hub = TestHub::start().await;
    let files = |path: &str, text: &str| vec![(path.to_owned(), text.as_bytes().to_vec(), false)];
    let repository_with = |files| Repository { commit: COMMIT.into(), files, ..Repository::default() };
    hub.publish("github:authors/evals", repository_with(files("src/ask.py", CODE)));
    hub.publish(
        "org/quiz",
        Repository { token: Some("hf_secret".into()), ..repository_with(files("README.md", CARD)) },
    );
    hub
}

fn library(bench: &Bench, hub: &TestHub, github: &TestHub) -> Library {
    bench.library_with(hub, |config| {
        token(config);
        config.github_raw_url = github.url.clone();
    })
}

async fn load(library: &Library, specs: &[TemplateSpec], lookup: TemplateLookup) -> OfficialTexts {
    let layout = CustomLayout { templates: templates(specs), ..CustomLayout::PLAIN };
    library.templates(&layout, lookup, &NoProgress).await.unwrap()
}

async fn text(blobs: &Blobs, text: &str) -> Option<String> {
    load_template(blobs, &sha256(text)).await.unwrap()
}

#[tokio::test]
async fn texts_are_downloaded_once() {
    let (bench, hub, github) = (Bench::new().await, origins().await, origins().await);
    let ask = constant("ASK", "src/ask.py", Some(leak(sha256(ASK))));
    let judge = constant("JUDGE", "src/ask.py", None);
    let specs = [ask, judge, BLOCK];
    let library = library(&bench, &hub, &github);
    let first = load(&library, &specs, TemplateLookup::StoreThenOrigin).await;
    assert_eq!(first.notes, Vec::<String>::new());
    let expected = [("ASK", ASK), ("JUDGE", JUDGE), ("block", CARD_PROMPT)];
    for (name, official) in expected {
        assert_eq!(
            (first.texts[name].text.as_str(), &first.texts[name].sha256),
            (official, &sha256(official))
        );
        assert_eq!(text(&bench.blobs, official).await.as_deref(), Some(official));
    }
    // The digests in a plan identify the texts of its prompts.
    let mut digests = first.digests();
    let texts = load_templates(&bench.blobs, &digests).await.unwrap();
    assert_eq!(texts, first.clone().into_texts());
    digests.insert("gone".into(), sha256("gone"));
    let error = load_templates(&bench.blobs, &digests).await.unwrap_err();
    assert!(error.to_string().starts_with("the official text `gone` with SHA-256"), "{error}");

    // One request per file, and the token for the hub only.
    let paths = |requests: &TestHub| {
        requests.requests().into_iter().map(|a| (a.path, a.authorization)).collect::<Vec<_>>()
    };
    assert_eq!(paths(&github), [(format!("/authors/evals/{COMMIT}/src/ask.py"), None)]);
    let authorization = Some("Bearer hf_secret".to_owned());
    assert_eq!(paths(&hub), [(format!("/datasets/org/quiz/resolve/{COMMIT}/README.md"), authorization)]);

    // Stored texts need no request, whether their digest is pinned or was recorded.
    assert_eq!(load(&library, &specs, TemplateLookup::StoreThenOrigin).await, first);
    assert_eq!(load(&bench.library_without_hub().await, &specs, TemplateLookup::StoreOnly).await, first);
    assert_eq!((github.requests(), hub.requests()), (vec![], vec![]));
    assert_eq!(first.into_texts()["ASK"], ASK);
}

#[tokio::test]
async fn a_text_with_another_digest_is_never_used() {
    let (bench, hub) = (Bench::new().await, origins().await);
    let library = library(&bench, &hub, &hub);
    let wrong = constant("ASK", "src/ask.py", Some(leak(sha256("something else"))));
    let good = constant("JUDGE", "src/ask.py", Some(leak(sha256(JUDGE))));
    let found = load(&library, &[wrong, good], TemplateLookup::StoreThenOrigin).await;
    assert_eq!(found.texts.keys().collect::<Vec<_>>(), ["JUDGE"]);
    let note = &found.notes[0];
    assert!(
        note.starts_with("own wording instead of the official text `ASK`: github authors/evals@"),
        "{note}"
    );
    assert!(note.contains(&format!("its SHA-256 is {} instead of", sha256(ASK))), "{note}");
    // The text isn't stored under its actual digest either.
    assert_eq!(text(&bench.blobs, ASK).await, None);
}

#[tokio::test]
async fn unavailable_texts_are_left_out() {
    let (bench, hub) = (Bench::new().await, origins().await);
    let library = library(&bench, &hub, &hub);
    let no_file = constant("ASK", "src/gone.py", None);
    let no_constant = constant("TELL", "src/ask.py", None);
    let no_text = constant("NUMBER", "src/ask.py", None);
    let found = load(&library, &[no_file, no_constant, no_text], TemplateLookup::StoreThenOrigin).await;
    assert!(found.texts.is_empty());
    for (note, problem) in found.notes.iter().zip([
        "src/gone.py was not found in authors/evals",
        "src/ask.py, constant TELL: it has no constant `TELL`",
        "src/ask.py, constant NUMBER: its value is not a string",
    ]) {
        assert!(note.contains(problem), "{note}");
    }
    assert_eq!(found.notes.len(), 3);
    assert_eq!(bench.keys().await, Vec::<String>::new());
}

#[tokio::test]
async fn an_unreachable_origin_is_reported_once_per_file() {
    let bench = Bench::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let unreachable_url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let specs = [constant("ASK", "src/ask.py", None), constant("JUDGE", "src/ask.py", None), BLOCK];
    let config = |offline| bench_datasets::LibraryConfig {
        github_raw_url: unreachable_url.clone(),
        offline,
        ..bench.config(&unreachable_url)
    };
    for (offline, problem) in
        [(false, "could not be reached (no connection"), (true, "HF_HUB_OFFLINE is set")]
    {
        let library = Library::new(bench.blobs.clone(), config(offline));
        let found = load(&library, &specs, TemplateLookup::StoreThenOrigin).await;
        assert!(found.texts.is_empty());
        // One host, one reason.
        assert_eq!(found.notes.len(), 1);
        assert!(found.notes.iter().all(|note| note.contains(problem)), "{:?}", found.notes);
        // No request is sent, so no failure is reported.
        assert_eq!(load(&library, &specs, TemplateLookup::StoreOnly).await, OfficialTexts::default());
    }
}

#[tokio::test]
async fn missing_texts_are_reported_once_per_reason() {
    let bench = Bench::new().await;
    let template = |name, role| TemplateSpec { role, ..constant(name, "src/ask.py", None) };
    let specs = [
        template("13.6", TemplateRole::GivenStep),
        template("parse.py", TemplateRole::Program),
        template("ASK", TemplateRole::Wording),
        template("76.3", TemplateRole::GivenStep),
        template("cmp.py", TemplateRole::Program),
    ];
    let config = bench_datasets::LibraryConfig { offline: true, ..bench.config("http://127.0.0.1:9") };
    let found =
        load(&Library::new(bench.blobs.clone(), config), &specs, TemplateLookup::StoreThenOrigin).await;
    let [note] = found.notes.as_slice() else { panic!("{:?}", found.notes) };
    let expected_note = "own wording instead of the official text `ASK`, own grader instead of the official programs \
                `parse.py`, `cmp.py`, items with the given steps `13.6`, `76.3` cannot be asked: ";
    assert!(note.starts_with(expected_note) && note.matches("HF_HUB_OFFLINE").count() == 1, "{note}");
}

#[tokio::test]
async fn an_interrupted_file_is_requested_again() {
    let (bench, hub) = (Bench::new().await, origins().await);
    let library = library(&bench, &hub, &hub);
    hub.fail("src/ask.py", [Fault::Cut(20), Fault::Status(503, vec![]), Fault::Cut(0)]);
    let found = load(
        &library,
        &[constant("ASK", "src/ask.py", Some(leak(sha256(ASK))))],
        TemplateLookup::StoreThenOrigin,
    )
    .await;
    assert_eq!(found.texts["ASK"].text, ASK);
    assert_eq!(hub.requests().len(), 4);
    // A gated card without a token.
    let stranger = bench.library_with(&hub, |_| {});
    let found = load(&stranger, &[BLOCK], TemplateLookup::StoreThenOrigin).await;
    assert!(found.notes[0].contains("accept its terms"), "{:?}", found.notes);
}

#[tokio::test]
async fn a_huge_file_is_refused() {
    let (bench, hub) = (Bench::new().await, origins().await);
    let huge = vec![b'#'; 4 * 1024 * 1024 + 1];
    let long = format!("ASK = '{}'", "x".repeat(1024 * 1024 + 1)).into_bytes();
    let files = vec![("huge.py".to_owned(), huge, false), ("long.py".to_owned(), long, false)];
    hub.publish("github:authors/evals", Repository { commit: COMMIT.into(), files, ..Repository::default() });
    let library = library(&bench, &hub, &hub);
    let specs = [constant("ASK", "huge.py", None), constant("ASK", "long.py", None)];
    let found = load(&library, &specs, TemplateLookup::StoreThenOrigin).await;
    assert!(found.texts.is_empty());
    assert!(found.notes[0].contains("is larger than 4194304 bytes"), "{:?}", found.notes);
    assert!(found.notes[1].contains("it has more than 1048576 bytes"), "{:?}", found.notes);
    assert_eq!(hub.requests().len(), 2);
}

#[tokio::test]
async fn a_changed_stored_text_is_downloaded_again() {
    let (bench, hub) = (Bench::new().await, origins().await);
    let library = library(&bench, &hub, &hub);
    let specs = [constant("ASK", "src/ask.py", Some(leak(sha256(ASK))))];
    let first = load(&library, &specs, TemplateLookup::StoreThenOrigin).await;
    let key = format!("templates/{}", sha256(ASK));
    bench.blobs.put_json(&key, &"forged").await.unwrap();
    let error = load_template(&bench.blobs, &sha256(ASK)).await.unwrap_err();
    assert!(error.to_string().contains("is damaged"), "{error}");
    assert_eq!(load(&library, &specs, TemplateLookup::StoreOnly).await, OfficialTexts::default());
    assert_eq!(load(&library, &specs, TemplateLookup::StoreThenOrigin).await, first);
    bench.blobs.put(&key, "no zstd".into(), "text/plain").await.unwrap();
    assert_eq!(load(&library, &specs, TemplateLookup::StoreThenOrigin).await, first);
    assert_eq!(load_template(&bench.blobs, &sha256("never seen")).await.unwrap(), None);
}

#[tokio::test]
async fn a_silent_origin_does_not_hold_up_the_run() {
    let bench = Bench::new().await;
    // Accepts connections and sends nothing.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let silent = bench_datasets::LibraryConfig {
        github_raw_url: url.clone(),
        read_timeout: Duration::from_millis(20),
        ..bench.config(&url)
    };
    let library = Library::new(bench.blobs.clone(), silent);
    let found = load(&library, &[constant("ASK", "src/ask.py", None)], TemplateLookup::StoreThenOrigin).await;
    assert!(found.notes[0].contains("no response in time"), "{:?}", found.notes);
    drop(listener);
}

/// Serves a package index at a free port: a page with a relative link, and the wheel.
async fn package_index(wheel: Vec<u8>) -> String {
    let page = "<a href=\"../../files/quiz-1.0-py3-none-any.whl#sha256=0\">quiz</a>";
    let app = axum::Router::new()
        .route("/simple/quiz/", axum::routing::get(move || async move { page }))
        .route("/files/quiz-1.0-py3-none-any.whl", axum::routing::get(move || async move { wheel }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}")
}

#[tokio::test]
async fn texts_come_from_a_pinned_wheel() {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("quiz/ask.txt", zip::write::SimpleFileOptions::default()).unwrap();
    std::io::Write::write_all(&mut zip, ASK.as_bytes()).unwrap();
    let archive = zip.finish().unwrap().into_inner();
    let digest = leak(hex::encode(sha2::Digest::finalize(sha2::Digest::chain_update(
        <sha2::Sha256 as sha2::Digest>::new(),
        &archive,
    ))));
    let (bench, hub, index) = (Bench::new().await, TestHub::start().await, package_index(archive).await);
    let library = bench.library_with(&hub, |config| config.pypi_url = index);
    let wheel =
        |sha256| WheelSpec { package: "quiz", version: "1.0", file: "quiz-1.0-py3-none-any.whl", sha256 };
    let spec = |wheel| TemplateSpec {
        name: "ask",
        role: TemplateRole::Wording,
        origin: TemplateOrigin::Wheel { wheel, path: "quiz/ask.txt" },
        part: TemplatePart::Whole,
        sha256: Some(leak(sha256(ASK))),
    };
    let wrong = load(&library, &[spec(wheel("0"))], TemplateLookup::StoreThenOrigin).await;
    assert!(wrong.texts.is_empty() && wrong.notes[0].contains("instead of 0"), "{:?}", wrong.notes);
    let found = load(&library, &[spec(wheel(digest))], TemplateLookup::StoreThenOrigin).await;
    assert_eq!((found.texts["ask"].text.as_str(), found.notes.len()), (ASK, 0));
    assert_eq!(text(&bench.blobs, ASK).await.as_deref(), Some(ASK));
}
