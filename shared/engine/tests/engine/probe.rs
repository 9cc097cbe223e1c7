//! The probe, on the real engine and where there is none.

use bench_engine::{ProbeOptions, probe};

use crate::support::{World, options};

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_is_described() {
    let world = World::start().await;
    let report = world.engine.report();
    println!("{report}; {report:?}; found in {} ms", world.probe_ms);
    assert!(report.version.contains('.'), "{report:?}");
    assert!(matches!(report.cgroup_version.as_str(), "1" | "2"), "{report:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_engine_the_reason_is_returned() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent.sock");
    let mut refused = options(folder.path());
    refused.docker_host = Some(format!("unix://{}", absent.display()));
    let error = probe(&refused).await.unwrap_err().to_string();
    assert!(error.contains("absent.sock` can't be used: can't connect"), "{error}");
    refused.docker_host = Some("tcp://127.0.0.1:2375".to_owned());
    let error = probe(&refused).await.unwrap_err().to_string();
    assert!(error.contains("use `unix:///path/to/socket`"), "{error}");
    // Podman without its storage, home and programs.
    let broken =
        ProbeOptions { path: "/nonexistent".into(), ..ProbeOptions::new(folder.path().join("none")) };
    if !std::path::Path::new("/var/run/docker.sock").exists() {
        let error = probe(&broken).await.unwrap_err().to_string();
        assert!(error.contains("apt-get install podman"), "{error}");
    }
}
