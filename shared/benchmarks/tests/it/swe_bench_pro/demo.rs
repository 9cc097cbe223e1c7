//! The demo instances.

use bench_benchmarks::InstanceImage;

use super::*;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/swe_bench_pro");

fn items() -> Vec<Item> {
    let rows = benchmark().spec().demo.items.lines();
    rows.map(|row| item(serde_json::from_str(row).unwrap())).collect()
}

fn scripts(id: &str) -> InstanceScripts {
    let files = benchmark().official_files().unwrap().demo.iter().filter(|file| file.id == id);
    InstanceScripts::from_files(&files.map(|file| (file.name.to_owned(), file.text.to_owned())).collect())
        .unwrap()
}

#[test]
fn reference_patches_resolve_the_instances_and_nothing_else_does() {
    let items = items();
    assert_eq!(items.len(), 3);
    for item in &items {
        let scripts = scripts(item.row["instance_id"].as_str().unwrap());
        let patch = benchmark().oracle(item);
        let container = Container::new(&Path::new(DATA).join("make_repo.sh"));
        let (_, report) = container.verify(item, &patch, &scripts);
        assert!(is_resolved(item, &patch, &report), "{report:?}");
        let container = Container::new(&Path::new(DATA).join("make_repo.sh"));
        let (_, report) = container.verify(item, "", &scripts);
        let verdict = protocol().grade(item, "", &report);
        // Exactly the tests to fix fail on the base commit.
        assert_eq!(verdict.detail["fail_to_pass"]["passed"], 0, "{verdict:?}");
        assert_eq!(
            verdict.detail["pass_to_pass"]["passed"], verdict.detail["pass_to_pass"]["of"],
            "{verdict:?}"
        );
    }
}

#[test]
fn the_image_is_built_from_our_files() {
    for item in items() {
        let InstanceImage::Build { files } = protocol().image(&item).unwrap() else { panic!() };
        let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(names, ["Dockerfile", "make_repo.sh"]);
    }
    let mut row = items().remove(0).row;
    row.insert("dockerhub_tag".into(), "some.tag".into());
    assert!(matches!(protocol().image(&item(row)).unwrap(), InstanceImage::Pull { .. }));
}

#[test]
fn later_commits_are_removed_from_the_demo_repository() {
    for item in items() {
        let container = Container::new(&Path::new(DATA).join("make_repo.sh"));
        let prepared = container.prepare(&item);
        assert!(prepared.status.success(), "{prepared:?}");
        let fix = item.row["instance_id"].as_str().unwrap().rsplit_once('-').unwrap().1.to_owned();
        assert!(!container.in_app(&format!("git cat-file -e {fix}")).status.success());
    }
}
