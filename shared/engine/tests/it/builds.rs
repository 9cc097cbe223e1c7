//! Builds: parameters, Dockerfile and context, as they reach the engine.

use std::io::Write;

use serde_json::json;

use crate::fake::World;

/// Returns an archive of one file.
fn context(name: &str, content: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), content).unwrap();
    let packed =
        std::process::Command::new("tar").arg("-C").arg(folder.path()).args(["-cf", "-", name]).output();
    packed.unwrap().stdout
}

const DEFAULTS: &str = "buildargs=%7B%7D&cachefrom=%5B%5D&cgroupparent=&cpuperiod=0&cpuquota=0&cpusetcpus=&\
                        cpusetmems=&cpushares=0&labels=%7B%7D&memory=0&memswap=0&networkmode=default&rm=1&\
                        shmsize=0&target=&ulimits=null&version=1";

#[tokio::test]
async fn the_checked_dockerfile_is_the_one_that_is_built() {
    let world = World::start().await;
    let address = format!("/v1.41/build?{DEFAULTS}&dockerfile=Dockerfile&t=localhost%2Fbench%2Fs1%2Fapp%3A1");
    let plain = context("Dockerfile", "FROM debian\nRUN true\n");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    for body in [plain, gzip.finish().unwrap()] {
        let (status, answer) = world.send_raw("POST", &address, "", &body).await;
        assert_eq!(status, 200, "{answer}");
        let build = world.changes().into_iter().find(|request| request.address.contains("/build?")).unwrap();
        let query: std::collections::BTreeMap<String, String> =
            form_urlencoded::parse(build.address.split_once('?').unwrap().1.as_bytes())
                .into_owned()
                .collect();
        let text = String::from_utf8_lossy(&build.body).into_owned();
        assert!(query["dockerfile"].starts_with(".bench-"), "{query:?}");
        assert!(text.contains(&query["dockerfile"]), "{text}");
        assert_eq!(query["networkmode"], "bench-i1-s1");
        assert_eq!((query["memory"].as_str(), query["forcerm"].as_str()), ("2147483648", "1"));
        assert!(query["labels"].contains(r#""bench-runner.sandbox":"s1""#), "{query:?}");
    }
}

#[tokio::test]
async fn parameters_beyond_the_sandbox_are_refused() {
    let world = World::start().await;
    let body = context("Dockerfile", "FROM debian\n");
    for query in [
        "networkmode=host",
        "networkmode=container:own",
        "networkmode=foreign",
        "remote=https://host/x.git",
        "remote=client-session",
        "session=x",
        "version=2",
        "outputs=%5B%7B%22Type%22%3A%22local%22%7D%5D",
        "securityopt=%5B%22seccomp%3Dunconfined%22%5D",
        "cgroupparent=/",
        "entitlements=security.insecure",
        "allow=security.insecure",
        "squash=1",
        "cachefrom=%5B%22localhost/bench/s2/x%22%5D",
        "extrahosts=x:host-gateway",
        "buildargs=%7B%22SECRET%22%3Anull%7D",
        "buildargs=x",
        "labels=%7B%22bench-runner.sandbox%22%3A%22s2%22%7D",
        "memory=-1",
        "memory=1099511627776",
        "ulimits=%5B%7B%22Name%22%3A%22x%22%7D%5D",
        "t=debian",
        "t=localhost/bench/s1/a&t=debian",
        "t=localhost/bench/s1/../s2/a",
        "dockerfile=../Dockerfile",
        "dockerfile=/etc/passwd",
        "dockerfile=%5B%22Dockerfile%22%5D",
        "dockerfile=Dockerfile&dockerfile=Other",
        "Dockerfile=x",
        "volume=/:/host",
        "dockerfile=absent",
    ] {
        let (status, answer) = world.send_raw("POST", &format!("/build?{query}"), "", &body).await;
        assert!(matches!(status, 400 | 403), "{query}: {status} {answer}");
        assert!(world.changes().is_empty(), "{query}");
    }
}

#[tokio::test]
async fn dockerfiles_and_contexts_beyond_the_sandbox_are_refused() {
    let world = World::with(|rules| rules.limits.context_bytes_max = 64 << 10).await;
    for text in [
        "FROM localhost/bench/s2/x",
        "FROM debian\nCOPY --from=localhost/bench/s2/x /a /b",
        "ARG A=localhost/bench/s2/x\nFROM $A",
        "FROM debian\nADD http://169.254.169.254/latest/meta-data /x",
        "FROM debian\nRUN --network=host true",
        "FROM debian\nRUN --security=insecure true",
    ] {
        let body = context("Dockerfile", text);
        let (status, answer) = world.send_raw("POST", "/build", "", &body).await;
        assert_eq!(status, 403, "{text}: {answer}");
        assert!(world.changes().is_empty(), "{text}");
    }
    for (body, expected) in [
        (context("Dockerfile", &"#".repeat(100 << 10)), 413),
        (b"FROM debian\n".repeat(100), 400),
        (b"BZh91AY&SY".repeat(100), 400),
        (vec![0x1f, 0x8b, 8, 0, 0, 0], 400),
        (Vec::new(), 400),
    ] {
        let (status, answer) = world.send_raw("POST", "/build", "", &body).await;
        assert_eq!(status, expected, "{answer}");
    }
    // A small archive that becomes a large one.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&context("large", &" ".repeat(1 << 20))).unwrap();
    assert_eq!(world.send_raw("POST", "/build", "", &bomb.finish().unwrap()).await.0, 413);
    // The variable isn't declared before `FROM`.
    let body = context("Dockerfile", "FROM $BASE\n");
    let arguments = json!({ "BASE": "debian" }).to_string();
    let query: String =
        form_urlencoded::Serializer::new("/build?".to_owned()).append_pair("buildargs", &arguments).finish();
    assert_eq!(world.send_raw("POST", &query.replacen("?&", "?", 1), "", &body).await.0, 403);
}

#[tokio::test]
async fn images_of_a_build_are_there_and_add_nothing_to_it() {
    let world = World::start().await;
    let build = async |dockerfile: &str| {
        let address =
            format!("/v1.41/build?{DEFAULTS}&dockerfile=Dockerfile&t=localhost%2Fbench%2Fs1%2Fapp%3A1");
        let answer = world.send_raw("POST", &address, "", &context("Dockerfile", dockerfile)).await;
        let changes: Vec<String> = world.changes().into_iter().map(|request| request.address).collect();
        (answer.0, answer.1, changes)
    };
    for (dockerfile, status, reason) in [
        ("FROM trigger:1\n", 403, "`trigger:1` has `ONBUILD` instructions"),
        ("FROM debian AS a\nFROM docker.io/x/trigger\n", 403, "ONBUILD"),
        ("FROM absent\n", 404, "`docker.io/library/absent:latest` could not be pulled"),
        ("FROM debian\nCOPY --from=absent:2 /x /x\n", 404, "could not be pulled"),
        (
            "FROM debian\nRUN python -c \"x; \\\nfrom absent import x\"\n",
            403,
            "could also mean the image `absent`",
        ),
    ] {
        let (found, answer, changes) = build(dockerfile).await;
        assert!(found == status && answer.contains(reason), "{dockerfile}: {found} {answer}");
        assert!(!changes.iter().any(|address| address.contains("/build?")), "{changes:?}");
        let pulled = changes
            .iter()
            .any(|address| address.contains("/images/create?fromImage=docker.io%2Flibrary%2Fabsent%3A"));
        assert_eq!(pulled, status == 404, "{dockerfile}: {changes:?}");
    }
    let (status, answer, changes) =
        build("FROM debian\nRUN python -c \"x; \\\nfrom debian import x\"\n").await;
    assert_eq!(status, 200, "{answer}");
    assert!(!changes.iter().any(|address| address.contains("/images/create")), "{changes:?}");
}
