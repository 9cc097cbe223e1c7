//! Variables of the docker command.

use bench_environments::Resolve;

use crate::support::{World, environment, files, shell};

#[tokio::test]
async fn the_docker_command_sees_only_its_own_variables_and_those_of_the_order() {
    let world = World::new().await;
    let environment = environment("ep1");
    let started = world.start(&environment).await.unwrap();
    let mut with = files();
    with.variables.insert("T_BENCH_TEST_DIR".to_owned(), "/tests".to_owned());
    world.finish(&environment, "resolve-2", &Resolve { files: with }).await.unwrap();
    world.finish(&environment, "exec", &shell(&started, "true")).await.unwrap();
    let allowed = ["DOCKER_BUILDKIT", "DOCKER_HOST", "HOME", "LC_CTYPE", "PATH"];
    for line in world.log() {
        let names: Vec<&str> =
            line["env"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let is_second = names.contains(&"T_BENCH_TEST_DIR");
        assert_eq!(is_second, line["call"] == "config" && is_second);
        let others: Vec<_> =
            names.iter().filter(|name| !allowed.contains(name) && **name != "T_BENCH_TEST_DIR").collect();
        assert!(others.is_empty(), "{} sees {others:?}", line["call"]);
    }
    assert_eq!(world.log().iter().filter(|line| line["env"].to_string().contains("T_BENCH")).count(), 1);
}
