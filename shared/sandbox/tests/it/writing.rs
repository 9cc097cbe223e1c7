//! Files that the host writes into a folder controlled by programs.

use bench_sandbox::isolation::IsolationError;

use crate::support::{each_form, run, stdout_of};

#[tokio::test(flavor = "multi_thread")]
async fn files_are_written_and_replaced() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let every_byte: Vec<u8> = (0..=255).collect();
        sandbox.write("a/b/every byte", &every_byte).await.unwrap();
        let hex =
            stdout_of(&sandbox, "python3 -c 'print(open(\"a/b/every byte\", \"rb\").read().hex())'").await;
        assert_eq!(hex, every_byte.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        sandbox.write("/workspace/a/b/every byte", b"short").await.unwrap();
        assert_eq!(stdout_of(&sandbox, "cat 'a/b/every byte'; ls -A a/b | wc -l").await, "short1");
        sandbox.write("empty", b"").await.unwrap();
        assert_eq!(
            stdout_of(&sandbox, "stat -c %s%F empty; rm empty a/b/*; rmdir a/b a; ls -A").await,
            "0regular empty file"
        );
        // As large as files of jobs are.
        let large = vec![b'x'; 8 << 20];
        sandbox.write("large", &large).await.unwrap();
        assert_eq!(stdout_of(&sandbox, "stat -c %s large").await, large.len().to_string());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_out_of_the_folder_are_rejected() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
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
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let victim = form.folder().join("victim");
        std::fs::write(&victim, "kept").unwrap();
        let place = form.folder().display();
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
        assert!(!form.folder().join("new").exists());
        sandbox.write("real/new", b"x").await.unwrap();
        assert_eq!(stdout_of(&sandbox, "find . -name '.write*'").await, "");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_change_during_a_write_do_not_lead_outside() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let place = form.folder().join("place");
        std::fs::create_dir_all(&place).unwrap();
        let swap = format!(
            "mkdir -p d; setsid bash -c 'while :; do rm -rf d; ln -s {} d; rm -f d; mkdir d; done' >/dev/null 2>&1 &",
            place.display()
        );
        run(&sandbox, &swap).await;
        for _ in 0..300 {
            // The write may succeed or fail.
            let _ = sandbox.write("d/file", b"x").await;
        }
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writing_to_a_full_folder_is_an_error() {
    each_form(|form| async move {
        if form.is_confined() {
            // It isn't a separate file system; the attack `full_disk` covers this form.
            return;
        }
        let sandbox = form.sandbox().await;
        sandbox.write("small", b"old").await.unwrap();
        run(&sandbox, "head -c 1G /dev/zero > filler").await;
        let outcome = sandbox.write("small", &vec![b'x'; 1 << 20]).await;
        assert!(matches!(outcome, Err(IsolationError::Write(_))), "{outcome:?}");
        assert_eq!(stdout_of(&sandbox, "cat small; ls -A").await, "oldfiller\nsmall");
        run(&sandbox, "rm filler").await;
        sandbox.write("small", b"new").await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writing_to_a_removed_folder_is_an_error() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        sandbox.write("jobs/a/script", b"x").await.unwrap();
        let closed = run(&sandbox, "rm -rf $HOME $HOME/* $HOME/.*; chmod 500 .").await;
        assert_eq!(closed.exit_code == Some(0), !form.lacks("change modes"));
        let outcome = sandbox.write("jobs/a/script", b"x").await;
        if closed.exit_code == Some(0) {
            assert!(matches!(outcome, Err(IsolationError::Write(_))), "{outcome:?}");
        }
        run(&sandbox, "chmod 700 .").await;
        sandbox.write("jobs/a/script", b"x").await.unwrap();
    })
    .await;
}
