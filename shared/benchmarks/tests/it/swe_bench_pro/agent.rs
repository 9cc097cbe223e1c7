//! The repository of an agent's container: its preparation, and the collection of what the agent changed.

use super::*;

const FIX: &str = "00e09b984d694236f5c247658853ef83475bbf51";
const BASE: &str = "fa8dc0b1acdae0e792529cd6c45a86dfef72413d";
/// Reference solution, as a command.
const SOLVE: &str = "sed -i 's/price for _, price, _/price * count for _, price, count/' minicart/cart.py
sed -i 's/^        self.lines.append/        if count < 1:\\n            raise ValueError(count)\\n        self.lines.append/' minicart/cart.py";

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Returns a prepared repository.
fn prepared(before: &str) -> Container {
    let container = Container::mini();
    let made = container.in_app(before);
    assert!(made.status.success(), "{made:?}");
    let prepared = container.prepare(&item(mini_row()));
    assert!(prepared.status.success(), "{prepared:?}");
    container
}

#[test]
fn the_fix_is_unreachable() {
    for before in [
        "",
        "git gc -q",
        "git tag v1; git tag -a v2 -m v2; git branch other; git update-ref refs/pull/1/head HEAD",
        "git pack-refs --all; git remote add origin ../x; git update-ref refs/remotes/origin/main HEAD
         git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main",
        "echo x >> README; git add README; git stash -q; git checkout -q HEAD~1",
        "git notes add -m note; git replace HEAD~1 HEAD; git commit-graph write --reachable; git multi-pack-index write || true",
        "git worktree add -q ../tree HEAD; git reset -q --hard HEAD~1; echo x > new; rm minicart/cart.py",
        "mkdir .git/own; printf '#!/bin/sh\\nexit 1\\n' > .git/own/post-checkout; chmod +x .git/own/*; git config core.hooksPath .git/own",
        "git repack -a -d -q; touch $(ls .git/objects/pack/*.pack | sed s/pack$/keep/); git checkout -q --detach HEAD",
    ] {
        let container = prepared(before);
        assert_eq!(text(&container.in_app("git rev-parse HEAD")), BASE, "{before}");
        assert_eq!(text(&container.in_app("git status --porcelain")), "", "{before}");
        assert_eq!(text(&container.in_app("git log --all --oneline | wc -l")), "1", "{before}");
        for command in ["git cat-file -e", "git show", "git checkout -q"] {
            let shown = container.in_app(&format!("{command} {FIX}"));
            assert!(!shown.status.success(), "{before}: {shown:?}");
        }
        let found = container.in_app(&format!("grep -rlE '{FIX}' .git || true"));
        assert_eq!(text(&found), "", "{before}");
        let objects = container.in_app("git fsck --no-reflogs --unreachable --no-progress 2>&1");
        assert!(!text(&objects).contains("commit"), "{before}: {objects:?}");
    }
}

#[test]
fn a_repository_without_its_base_is_reported() {
    let container = Container::mini();
    let missing = mini_with(&[("base_commit", "0123456789012345678901234567890123456789")]);
    let ended = container.prepare(&missing);
    assert_eq!(
        (ended.status.code(), text(&ended).as_str()),
        (Some(1), "the repository has no commit 0123456789012345678901234567890123456789")
    );
    fs::remove_dir_all(container.app(".git")).unwrap();
    let ended = container.prepare(&item(mini_row()));
    assert!(!ended.status.success() && text(&ended).contains("is no git repository"), "{ended:?}");
    fs::remove_dir_all(container.path("app")).unwrap();
    let ended = container.prepare(&item(mini_row()));
    assert!(!ended.status.success() && text(&ended).contains("has no folder"), "{ended:?}");
}

#[test]
fn a_change_is_collected_and_resolves_the_instance() {
    let (item, scripts) = (item(mini_row()), mini_scripts());
    for hostile in [
        "true",
        "git commit -qam done; git checkout -q -b other; git commit -q --allow-empty -m more",
        "git add -A; git commit -qm x; git reset -q --soft HEAD~1; git update-ref -d HEAD || true",
        "rm -rf .git",
        "rm -rf .git; git init -q .; git add -A; git commit -qm mine",
        "printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/*; git config core.hooksPath .git/hooks",
        "git config diff.external /bin/false; git config color.ui always; git config diff.noprefix true
         git config core.pager false; git config core.fsmonitor /bin/false; git config core.worktree /tmp",
        "mkdir -p .git/info; echo '* -diff' > .git/info/attributes; echo '*' > .git/info/exclude",
        "echo garbage > .git/index; echo garbage > .git/HEAD; rm -rf .git/objects",
        "export GIT_DIR=/nowhere; git config --global diff.noprefix true || true
         git config --global core.attributesFile /app/all; git config --global core.excludesFile /app/none",
        "git update-index --assume-unchanged minicart/cart.py; git update-index --skip-worktree minicart/cart.py",
        "git replace HEAD $(git commit-tree -m x $(git write-tree))",
    ] {
        let container = prepared("");
        let changed = container.in_app(&format!("{SOLVE}\n{hostile}"));
        assert!(changed.status.success(), "{hostile}: {changed:?}");
        let (code, output, change) = container.collect(&item);
        assert_eq!((code, output.as_str()), (Some(0), ""), "{hostile}");
        let (_, report) = Container::mini().verify(&item, &change, &scripts);
        assert!(is_resolved(&item, &change, &report), "{hostile}: {change}");
    }
}

#[test]
fn all_kinds_of_changes_are_in_the_diff() {
    let item = item(mini_row());
    let container = prepared("");
    let changed = container.in_app(
        "mkdir -p 'new dir'; echo text > 'new dir/ä.txt'; git rm -q tests/test_names.py; git mv minicart/cart.py minicart/basket.py
         printf 'a\\0b' > blob.bin; chmod +x minicart/__init__.py; ln -s minicart link
         echo '*.log' > .gitignore; echo hidden > x.log; printf 'no end' > last
         git init -q nested; (cd nested; git commit -q --allow-empty -m x); git init -q empty; mkfifo pipe",
    );
    assert!(changed.status.success(), "{changed:?}");
    let (code, output, change) = container.collect(&item);
    assert_eq!(code, Some(0), "{output}");
    for part in [
        "+++ \"b/new dir/\\303\\244.txt\"",
        "deleted file mode 100644",
        "rename from minicart/cart.py",
        "Binary files /dev/null and b/blob.bin differ",
        "new mode 100755",
        "new file mode 120000",
        "+++ b/.gitignore",
        "\\ No newline at end of file",
        "Subproject commit",
    ] {
        assert!(change.contains(part), "{part}: {change}");
    }
    assert!(!change.contains("x.log") && !change.contains("pipe"), "{change}");
    // Collecting again gives the same change.
    assert_eq!(container.collect(&item).2, change);
}

#[test]
fn an_unchanged_repository_has_an_empty_change() {
    let container = prepared("");
    assert_eq!(container.collect(&item(mini_row())), (Some(0), String::new(), String::new()));
}

#[test]
fn large_changes_are_refused() {
    let item = item(mini_row());
    for (script, part) in [
        ("truncate -s 10G huge", "the changed files have 10737418240 bytes"),
        ("yes 0123456789 | head -c 20000000 > long.txt", "a change has at most 16777216"),
        ("for i in $(seq 60); do truncate -s 10M part$i; done", "at most 536870912 can be a change"),
    ] {
        let container = prepared("");
        assert!(container.in_app(script).status.success());
        let (code, output, change) = container.collect(&item);
        assert_eq!((code, change.as_str()), (Some(bench_benchmarks::CHANGE_TOO_LARGE_EXIT), ""), "{output}");
        assert!(output.contains(part), "{output}");
    }
}

#[test]
fn a_change_that_cannot_be_staged_is_reported() {
    // A filter that the image's repository requires, and that doesn't run.
    let container = prepared("git config filter.own.required true; git config filter.own.clean /bin/false");
    let changed = container.in_app(&format!("{SOLVE}\necho '* filter=own' > .gitattributes"));
    assert!(changed.status.success(), "{changed:?}");
    let (code, output, change) = container.collect(&item(mini_row()));
    assert_eq!((code, change.as_str()), (Some(1), ""), "{output}");
    assert!(output.contains("the change can't be staged: fatal: "), "{output}");
}

#[test]
fn a_change_without_its_base_is_reported() {
    let container = prepared("");
    fs::remove_dir_all(container.path("store/base.git")).unwrap();
    let (code, output, change) = container.collect(&item(mini_row()));
    assert_eq!((code, change.as_str()), (Some(1), ""));
    assert!(output.contains("objects of the base commit are gone"), "{output}");
    let container = prepared("");
    fs::remove_dir_all(container.path("app")).unwrap();
    let (code, output, _) = container.collect(&item(mini_row()));
    assert!(code == Some(1) && output.contains("is gone"), "{output}");
}
