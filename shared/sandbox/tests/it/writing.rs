//! Files written by the host into a folder that belongs to others.

use bench_sandbox::isolation::IsolationError;

use crate::host::{each_form, printed, run};

#[tokio::test(flavor = "multi_thread")]
async fn files_are_written_and_replaced() {
    each_form(|at| async move {
        let sandbox = at.sandbox().await;
        let every_byte: Vec<u8> = (0..=255).collect();
        sandbox.write("a/b/every byte", &every_byte).await.unwrap();
        let hex =
            printed(&sandbox, "python3 -c 'print(open(\"a/b/every byte\", \"rb\").read().hex())'").await;
        assert_eq!(hex, every_byte.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        sandbox.write("/workspace/a/b/every byte", b"short").await.unwrap();
        assert_eq!(printed(&sandbox, "cat 'a/b/every byte'; ls -A a/b | wc -l").await, "short1");
        sandbox.write("empty", b"").await.unwrap();
        assert_eq!(
            printed(&sandbox, "stat -c %s%F empty; rm empty a/b/*; rmdir a/b a; ls -A").await,
            "0regular empty file"
        );
        // As large as a job's files are.
        let large = vec![b'x'; 8 << 20];
        sandbox.write("large", &large).await.unwrap();
        assert_eq!(printed(&sandbox, "stat -c %s large").await, large.len().to_string());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_out_of_the_folder_are_none() {
    each_form(|at| async move {
        let sandbox = at.sandbox().await;
        let long = "x".repeat(300);
        for path in [
            "../x",
            "/etc/passwd",
            "a/../../x",
            "",
            ".",
            "/workspace",
            "a\0b",
            "/workspace/../x",
            long.as_str(),
        ] {
            assert_eq!(sandbox.write(path, b"x").await, Err(IsolationError::Path(path.to_owned())));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_pipes_and_folders_are_not_written_to() {
    each_form(|at| async move {
        let sandbox = at.sandbox().await;
        let victim = at.folder().join("victim");
        std::fs::write(&victim, "kept").unwrap();
        let place = at.folder().display();
        run(
            &sandbox,
            &format!(
                "ln -s {place}/victim link; ln -s {place} folder; ln -s / root; ln -s /proc/self/cwd me; \
                 ln -s file inside; mkfifo pipe; mkdir real; ln -s real alias; ln -s loop loop"
            ),
        )
        .await;
        for path in [
            "link",
            "folder/new",
            "root/tmp/new",
            "me/new",
            "inside",
            "pipe",
            "real",
            "alias/new",
            "loop",
            "loop/x",
            "pipe/x",
        ] {
            assert_eq!(sandbox.write(path, b"x").await, Err(IsolationError::Path(path.to_owned())), "{path}");
        }
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "kept");
        assert!(!at.folder().join("new").exists());
        sandbox.write("real/new", b"x").await.unwrap();
        assert_eq!(printed(&sandbox, "find . -name '.write*'").await, "");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_change_while_they_are_written_lead_nowhere() {
    each_form(|at| async move {
        let sandbox = at.sandbox().await;
        let place = at.folder().join("place");
        std::fs::create_dir_all(&place).unwrap();
        let swap = format!(
            "mkdir -p d; setsid bash -c 'while :; do rm -rf d; ln -s {} d; rm -f d; mkdir d; done' >/dev/null 2>&1 &",
            place.display()
        );
        run(&sandbox, &swap).await;
        for _ in 0..300 {
            // Whatever comes of it.
            let _ = sandbox.write("d/file", b"x").await;
        }
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_folder_says_so() {
    each_form(|at| async move {
        if at.is_confined() {
            // It has no file system of its own: see the attack that fills it.
            return;
        }
        let sandbox = at.sandbox().await;
        sandbox.write("small", b"old").await.unwrap();
        run(&sandbox, "head -c 1G /dev/zero > filler").await;
        let outcome = sandbox.write("small", &vec![b'x'; 1 << 20]).await;
        assert!(matches!(outcome, Err(IsolationError::Write(_))), "{outcome:?}");
        assert_eq!(printed(&sandbox, "cat small; ls -A").await, "oldfiller\nsmall");
        run(&sandbox, "rm filler").await;
        sandbox.write("small", b"new").await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_its_programs_took_away_is_an_error() {
    each_form(|at| async move {
        let sandbox = at.sandbox().await;
        sandbox.write("jobs/a/script", b"x").await.unwrap();
        let closed = run(&sandbox, "rm -rf $HOME $HOME/* $HOME/.*; chmod 500 .").await;
        assert_eq!(closed.exit_code == Some(0), !at.lacks("change modes"));
        let outcome = sandbox.write("jobs/a/script", b"x").await;
        if closed.exit_code == Some(0) {
            assert!(matches!(outcome, Err(IsolationError::Write(_))), "{outcome:?}");
        }
        run(&sandbox, "chmod 700 .").await;
        sandbox.write("jobs/a/script", b"x").await.unwrap();
    })
    .await;
}
