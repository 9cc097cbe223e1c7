//! Shared folders, paths, and invalid options.

use std::os::unix::fs::PermissionsExt;

use bench_sandbox::isolation::{IsolationError, IsolationOptions, SharedFolder, forms, probe};

use crate::support::{each_form_with, helper, run, stdout_of};

#[tokio::test(flavor = "multi_thread")]
async fn shared_folders_are_read_only() {
    let files = tempfile::tempdir().unwrap();
    let tools = tempfile::tempdir().unwrap();
    for folder in [&files, &tools] {
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    }
    std::fs::write(files.path().join("data"), "data").unwrap();
    std::fs::set_permissions(files.path().join("data"), PermissionsExt::from_mode(0o666)).unwrap();
    std::fs::create_dir(tools.path().join("bin")).unwrap();
    let tool = tools.path().join("bin/python3");
    std::fs::write(&tool, "#!/bin/bash\necho prepared\n").unwrap();
    std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
    let (files_path, tools_path) = (files.path().to_owned(), tools.path().to_owned());
    each_form_with(
        |options| {
            options.shared = vec![
                SharedFolder { host: files_path, inside: "/files".into() },
                SharedFolder { host: tools_path, inside: "/opt/tools".into() },
            ];
            options.variables = [("TOOLS".to_owned(), "/opt/tools".into())].into();
            options.path_prefix = vec!["/opt/tools/bin".into()];
        },
        |form| async move {
            let sandbox = form.sandbox().await;
            assert_eq!(stdout_of(&sandbox, "cat $SANDY_FILES/data; python3").await, "dataprepared");
            assert_eq!(stdout_of(&sandbox, "$TOOLS/bin/python3").await, "prepared");
            for command in [
                "echo x > $SANDY_FILES/data",
                "touch $SANDY_FILES/new",
                "rm $SANDY_FILES/data",
                "mkdir $SANDY_FILES/d",
            ] {
                assert_ne!(run(&sandbox, command).await.exit_code, Some(0), "{command}");
            }
            if !form.is_confined() {
                assert_eq!(
                    stdout_of(&sandbox, "echo $SANDY_FILES; which python3").await,
                    "/files\n/opt/tools/bin/python3"
                );
            }
        },
    )
    .await;
    assert_eq!(std::fs::read_to_string(files.path().join("data")).unwrap(), "data");
    assert_eq!(std::fs::read_dir(files.path()).unwrap().count(), 1);
}

#[test]
fn invalid_options_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let good = IsolationOptions::new(helper(), folder.path());
    let refusal = |options: &IsolationOptions| match probe(options) {
        Err(IsolationError::Unsafe(reason)) => reason,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("the probe succeeded"),
    };
    let no_helper = IsolationOptions::new("/no/such/helper", folder.path());
    assert!(refusal(&no_helper).contains("cannot start the helper `/no/such/helper`"));
    // A program that isn't a helper.
    let wrong_helper = IsolationOptions::new("/bin/true", folder.path());
    assert!(refusal(&wrong_helper).contains("exited without a message"));
    let no_folder = IsolationOptions::new(helper(), "/proc/no/folder");
    assert!(refusal(&no_folder).contains("/proc/no/folder"));
    let missing = SharedFolder { host: "/no/such/folder".into(), inside: "/files".into() };
    assert!(refusal(&IsolationOptions { shared: vec![missing], ..good.clone() }).contains("is missing"));
    let everywhere = SharedFolder { host: "/usr".into(), inside: "/".into() };
    assert!(
        refusal(&IsolationOptions { shared: vec![everywhere], ..good.clone() })
            .contains("cannot be the path")
    );

    let all = forms(&no_helper);
    assert_eq!(all.len(), 2);
    for outcome in all {
        let (name, reason) = outcome.err().unwrap();
        assert!(["namespaces", "confined"].contains(&name) && !reason.contains('\n'), "{name}: {reason}");
    }
    // None of them leaves files behind.
    drop(probe(&good).unwrap());
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["lock"]);
}
