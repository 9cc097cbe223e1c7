//! Files into containers and out of them.

use std::time::Duration;

use bench_environments::{EnvironmentError, Exec, FetchFiles, PutFiles, SkipReason};

use crate::support::{World, file};

#[tokio::test]
async fn files_go_in_and_come_out() {
    let world = World::new().await;
    let running = world.start_small().await;
    let binary: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
    let put = PutFiles {
        container: running.main().to_owned(),
        folder: "/tests".to_owned(),
        replace: true,
        files: vec![file("test.sh", "echo tested"), file("data/ä b.bin", binary.clone())],
    };
    // Something else is at the folder's place, which must not be followed.
    world.shell(&running, "link", "mkdir /elsewhere; ln -s /elsewhere /tests").await;
    world.finish(&running.environment, "put", &put).await.unwrap();
    assert_eq!(
        world.shell(&running, "run", "/tests/test.sh; ls /elsewhere; stat -c %u:%a /tests/test.sh").await,
        "tested\n0:755\n"
    );
    let fetch = FetchFiles::new(running.main(), "/tests");
    let fetched = world.finish(&running.environment, "fetch", &fetch).await.unwrap().unwrap();
    assert_eq!(fetched.get("data/ä b.bin"), Some(binary.as_slice()));
    assert!(fetched.files.iter().any(|file| file.path == "test.sh" && file.is_executable));
    let one = FetchFiles::new(running.main(), "/tests/test.sh");
    let fetched = world.finish(&running.environment, "one", &one).await.unwrap().unwrap();
    assert_eq!(fetched.get(""), Some("echo tested".as_bytes()));
    let none = FetchFiles::new(running.main(), "/nothing/here");
    assert_eq!(world.finish(&running.environment, "nothing", &none).await, Ok(None));
    world.remove(&running.environment).await;
    assert!(matches!(
        world.finish(&running.environment, "late", &fetch).await,
        Err(EnvironmentError::Removed)
    ));
}

#[tokio::test]
async fn links_devices_and_large_files_are_skipped() {
    let world = World::new().await;
    let running = world.start_small().await;
    let command = "mkdir -p /out/d; cd /out; ln -s /etc/passwd link; ln -s /out loop; mkfifo pipe; mknod zero c 1 5 || true; \
        echo ok > d/ok; head -c 3000000 /dev/zero > long; printf x > 'new\nline'; ln d/ok hard";
    world.shell(&running, "make", command).await;
    let fetch = FetchFiles { file_bytes_max: 1 << 20, ..FetchFiles::new(running.main(), "/out") };
    let fetched = world.finish(&running.environment, "fetch", &fetch).await.unwrap().unwrap();
    let mut paths: Vec<&str> = fetched.files.iter().map(|file| file.path.as_str()).collect();
    paths.sort_unstable();
    // One of the two names of a file is a link in the stream.
    assert!(paths == ["d/ok"] || paths == ["hard"] || paths == ["d/ok", "hard"], "{paths:?}");
    let long = fetched.skipped.iter().find(|file| file.path == "long").unwrap();
    assert_eq!((long.why, long.bytes), (SkipReason::TooLong, Some(3_000_000)));
    assert!(fetched.skipped.iter().any(|file| file.path == "link" && file.why == SkipReason::NotAFile));
    assert!(!fetched.is_cut);
    let few = FetchFiles { bytes_max: 1, ..FetchFiles::new(running.main(), "/out/d") };
    assert!(world.finish(&running.environment, "few", &few).await.unwrap().unwrap().is_cut);
    // A link as the fetched path itself is not followed.
    let link = FetchFiles::new(running.main(), "/out/link");
    let fetched = world.finish(&running.environment, "link", &link).await.unwrap();
    assert!(fetched.is_none_or(|fetched| fetched.files.is_empty()));
    world.remove(&running.environment).await;
}

#[tokio::test]
async fn a_path_that_is_too_long_hides_nothing_that_is_looked_for() {
    let world = World::new().await;
    let running = world.start_small().await;
    let deep = "set -e; mkdir /out; cd /out; echo 1 > reward.txt; mkdir a; name=$(printf 'x%.0s' $(seq 200)); \
        for level in $(seq 30); do mkdir b; mv a b/$name; mv b a; done; echo made";
    assert_eq!(world.shell(&running, "deep", deep).await.trim(), "made");
    let fetch = FetchFiles {
        first: vec!["reward.json".to_owned(), "reward.txt".to_owned()],
        ..FetchFiles::new(running.main(), "/out")
    };
    let fetched = world.finish(&running.environment, "fetch", &fetch).await.unwrap().unwrap();
    assert_eq!(fetched.get("reward.txt"), Some("1\n".as_bytes()), "{fetched:?}");
    world.remove(&running.environment).await;
}

#[tokio::test]
async fn many_files_are_put_in_several_calls() {
    let world = World::new().await;
    let running = world.start_small().await;
    let files = vec![file("large", vec![b'x'; 3 << 20])];
    let put =
        PutFiles { container: running.main().to_owned(), folder: "/in".to_owned(), replace: false, files };
    world.finish(&running.environment, "put", &put).await.unwrap();
    assert_eq!(world.shell(&running, "size", "stat -c %s /in/large").await.trim(), (3 << 20).to_string());
    world.remove(&running.environment).await;
}

#[tokio::test]
async fn of_very_many_folders_only_some_are_read() {
    let world = World::new().await;
    let running = world.start_small().await;
    let make = "mkdir /out && cd /out && seq 30000 | xargs mkdir && echo late > /out/zzz";
    let make =
        Exec { time_limit: Duration::from_secs(120), ..Exec::shell(running.main(), make, Duration::ZERO) };
    assert_eq!(world.exec(&running, "make", &make).await.exit_code, Some(0));
    let fetch = FetchFiles::new(running.main(), "/out");
    let fetched = world.finish(&running.environment, "fetch", &fetch).await.unwrap().unwrap();
    assert!(fetched.is_cut, "{fetched:?}");
    let first = FetchFiles { first: vec!["zzz".to_owned()], ..fetch };
    let fetched = world.finish(&running.environment, "first", &first).await.unwrap().unwrap();
    assert_eq!(fetched.get("zzz"), Some("late\n".as_bytes()));
    world.remove(&running.environment).await;
}
