//! One environment of a host builds at a time.

use std::time::Duration;

use bench_environments::{Built, EngineHost, EnvironmentError, Progress};
use bench_sandy::testing::Fault;

use crate::support::{World, build, environment};

#[tokio::test]
async fn sandboxes_of_a_host_build_an_image_once() {
    let world = World::new().await;
    let other = world.new_sandbox().await;
    let (one, two) = (environment("ep1"), environment("ep2"));
    let build = build(&world.project(&one).await.unwrap());
    world.set("hold-build", "");
    let name = "build".parse().unwrap();
    let second = EngineHost::new(&world.sandy, &other);
    let first = world.host().advance(&one, &name, &build, Duration::ZERO).await;
    assert_eq!(first, Ok(Progress::Running));
    world.wait_for_call("build").await;
    let waiting = second.advance(&two, &name, &build, Duration::from_millis(1_200)).await;
    assert_eq!(waiting, Ok(Progress::Running));
    assert_eq!(world.count("build"), 1);
    world.unset("hold-build");
    assert_eq!(world.finish(&one, "build", &build).await, Ok(Built { images: 1 }));
    let waited =
        World::wait_for(async || second.advance(&two, &name, &build, Duration::from_secs(5)).await).await;
    assert_eq!(waited, Ok(Built { images: 0 }));
    assert_eq!(
        (world.count("build"), std::fs::read_dir(world.engine("containers")).unwrap().count()),
        (1, 0)
    );
}

impl World {
    async fn wait_for<T>(
        call: impl AsyncFn() -> Result<Progress<T>, EnvironmentError>,
    ) -> Result<T, EnvironmentError> {
        for _ in 0..100 {
            if let Progress::Done(done) = call().await? {
                return Ok(done);
            }
        }
        panic!("an operation does not end");
    }
}

#[tokio::test]
async fn a_lock_is_broken_when_its_lease_is_over_or_its_environment_removed() {
    let world = World::with_rule(|_| Fault::None).await;
    let (one, two) = (environment("ep1"), environment("ep2"));
    let (first, second) =
        (build(&world.project(&one).await.unwrap()), build(&world.project(&two).await.unwrap()));
    let lock = |until: &str| {
        let place = world.engine("containers/bench-runner-builder");
        std::fs::create_dir_all(&place).unwrap();
        let id = "f".repeat(64);
        let labels = format!(
            r#"{{"id":"{id}","bench-runner.lock.holder":"lost","bench-runner.lock.until":"{until}"}}"#
        );
        std::fs::write(place.join("labels"), labels).unwrap();
    };
    // The sandbox that held it was lost long ago.
    lock("1000000000");
    assert_eq!(world.finish(&one, "build", &first).await, Ok(Built { images: 1 }));
    std::fs::remove_dir_all(world.engine("images")).unwrap();
    // The lease isn't over.
    lock("99999999999");
    let name = "build".parse().unwrap();
    let waiting = world.host().advance(&two, &name, &second, Duration::from_millis(700)).await;
    assert_eq!(waiting, Ok(Progress::Running));
    world.host().remove(&"lost".parse().unwrap()).await.unwrap();
    assert_eq!(world.finish(&two, "build", &second).await, Ok(Built { images: 1 }));
}
