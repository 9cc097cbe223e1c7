//! Removal of what sandboxes leave behind.

use std::collections::BTreeSet;

use bench_engine::{NetworkPolicy, reap};

use crate::support::{BUSYBOX, World, stdout};

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_sandbox_leaves_nothing_and_touches_nothing_else() {
    let world = World::start().await;
    let foreign = format!("foreign-{}", world.instance);
    assert!(
        world
            .docker(&["run", "-d", "--network", "none", "--name", &foreign, BUSYBOX, "sleep", "600"])
            .status
            .success()
    );
    let (one, two) =
        (world.sandbox("s1", NetworkPolicy::Unfiltered), world.sandbox("s2", NetworkPolicy::None));
    for sandbox in [&one, &two] {
        let volume = format!("volume-{}-{}:/v", sandbox.id, world.instance);
        sandbox.succeed(&["network", "create", &format!("net-{}-{}", sandbox.id, world.instance)]);
        sandbox.succeed(&["run", "-d", "-v", &volume, "-v", "/anonymous", BUSYBOX, "sleep", "600"]);
    }
    one.proxy.stop().await.unwrap();
    let left = world.left();
    assert_eq!(left.len(), 3, "{left:?}");
    assert_ne!(two.succeed(&["ps", "--quiet"]), "");

    // A crash of the program: the next start removes what no sandbox uses.
    drop(two);
    let client = world.engine.client();
    reap(client, &world.instance, &BTreeSet::from(["s2".to_owned()]), false).await.unwrap();
    assert_eq!(world.left().len(), 3);
    reap(client, "another-instance", &BTreeSet::new(), false).await.unwrap();
    assert_eq!(world.left().len(), 3);
    reap(client, &world.instance, &BTreeSet::new(), false).await.unwrap();
    assert_eq!(stdout(&world.docker(&["inspect", "--format", "{{.State.Running}}", &foreign])), "true");
    assert!(world.docker(&["rm", "-f", &foreign]).status.success());
    world.stop().await;
}
