//! Builds of images.

use std::time::Duration;

use bench_environments::{
    Build, BuildLimits, Built, ComposeFiles, EnvironmentError, ErrorKind, Limit, MainImage, Network, TaskFile,
};

use crate::support::{DOCKERFILE, World, compose_task, dockerfile, environment, file, small_task};

/// A task whose image nobody has built yet, with these lines at the end of its Dockerfile.
pub(crate) fn new_task(lines: &str) -> Vec<TaskFile> {
    let mut task = small_task();
    let unique = uuid::Uuid::new_v4().simple();
    task[0] = file("environment/Dockerfile", format!("{DOCKERFILE}ENV UNIQUE={unique}\n{lines}"));
    task
}

#[tokio::test]
async fn an_image_is_built_once_per_content() {
    let world = World::new().await;
    let task = new_task("RUN sleep 1\n");
    let (one, two) = (environment(&task), environment(&task));
    let first = world.resolve(&one, &task, &dockerfile()).await.unwrap();
    let second = world.resolve(&two, &task, &dockerfile()).await.unwrap();
    assert_eq!(first.images(), second.images());
    let (first, second) = (world.build(&first), world.build(&second));
    let built = tokio::join!(world.finish(&one, "build", &first), world.finish(&two, "build", &second));
    assert_eq!(built.0.unwrap().images + built.1.unwrap().images, 1);
    let three = environment(&task);
    let third = world.resolve(&three, &task, &dockerfile()).await.unwrap();
    assert_eq!(world.finish(&three, "build", &world.build(&third)).await, Ok(Built { images: 0 }));
    for environment in [one, two, three] {
        world.remove(&environment).await;
    }
}

#[tokio::test]
async fn a_failed_build_is_the_task_s_fault_and_shows_its_output() {
    let world = World::new().await;
    let failing = "RUN echo first\nRUN echo earlier; echo so it goes >&2; exit 3\nRUN echo never\n";
    for (lines, part) in
        [(failing, "so it goes"), ("NONSENSE\n", "NONSENSE"), ("COPY missing /x\n", "missing")]
    {
        let task = new_task(lines);
        let environment = environment(&task);
        let project = world.resolve(&environment, &task, &dockerfile()).await.unwrap();
        let failed = world.finish(&environment, "build", &world.build(&project)).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Task, "{failed:?}");
        assert!(failed.log().is_some_and(|log| !log.is_empty()));
        let reason = failed.to_string();
        let is_useful = reason.to_uppercase().contains(&part.to_uppercase()) && !reason.contains("first");
        assert!(is_useful && !reason.contains("DEPRECATED"), "{reason}");
        world.remove(&environment).await;
    }
}

#[tokio::test]
async fn builds_have_limits() {
    let world = World::new().await;
    for (lines, limits, limit) in [
        (
            "RUN sleep 1000\n",
            BuildLimits { time: Duration::from_secs(10), ..BuildLimits::default() },
            Limit::BuildTime,
        ),
        (
            "RUN head -c 3000000 /dev/zero > /x\n",
            BuildLimits { image_bytes_max: 3_000_000, ..BuildLimits::default() },
            Limit::ImageSize,
        ),
    ] {
        let task = new_task(lines);
        let environment = environment(&task);
        let project = world.resolve(&environment, &task, &dockerfile()).await.unwrap();
        let build = Build { limits, ..world.build(&project) };
        let failed = world.finish(&environment, "build", &build).await.unwrap_err();
        assert!(
            matches!(&failed, EnvironmentError::LimitExceeded { limit: found, .. } if *found == limit),
            "{failed:?}"
        );
        world.remove(&environment).await;
    }
}

#[tokio::test]
async fn arguments_of_a_build_reach_it_and_name_its_image() {
    let world = World::new().await;
    let unique = uuid::Uuid::new_v4().simple();
    let (task, files) = compose_task(&format!(
        "services:\n  main:\n    build:\n      dockerfile_inline: |\n{}        ARG A\n        RUN echo \"$$A\" > /a\n\
         \x20     args: {{A: 'x $$y ${{B}} {unique}'}}\n",
        DOCKERFILE.lines().map(|line| format!("        {line}\n")).collect::<String>(),
    ));
    let mut images = Vec::new();
    // The task's Dockerfile has no effect beside the one in the compose file.
    for (value, image) in [("1", files.image.clone()), ("2", MainImage::Compose)] {
        let mut files = ComposeFiles { image, ..files.clone() };
        files.variables.insert("B".to_owned(), value.to_owned());
        let running = world.start(&task, &files, Network::None).await.unwrap();
        assert_eq!(world.shell(&running, "look", "cat /a").await, format!("x $y {value} {unique}\n"));
        let resolved = world.resolve(&running.environment, &task, &files).await.unwrap();
        images.push(resolved.images()[0].name.clone());
        world.remove(&running.environment).await;
    }
    assert_ne!(images[0], images[1]);
}
