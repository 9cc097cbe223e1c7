# Sets a repository to its base commit and removes everything that came after it.
# Variables: base, folder, store.
set -eu
umask 022
fail() {
    echo "$*"
    exit 1
}
trap 'fail "line $LINENO of the preparation failed"' ERR
set -o errtrace

# Other configuration than the repository's own has no say, and no hooks run: some repositories set a folder of them.
rm -rf "$store"
mkdir -p "$store"
printf '[safe]\n\tdirectory = *\n' > "$store/config"
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL="$store/config" GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=0 GIT_NO_REPLACE_OBJECTS=1
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
command -v git > /dev/null || fail "the image has no git"
git() {
    command git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c advice.detachedHead=false "$@"
}
cd "$folder" 2> /dev/null || fail "the image has no folder $folder"
git rev-parse --git-dir > /dev/null 2>&1 || fail "$folder is no git repository"
full=$(git rev-parse --verify --quiet "$base^{commit}") || fail "the repository has no commit $base"
git=$(git rev-parse --absolute-git-dir)

git reset --quiet --hard "$full"
git clean --quiet -fd
git checkout --quiet --detach "$full"

# References, logs and notes about other commits.
git for-each-ref --format='delete %(refname)' | git update-ref --no-deref --stdin
rm -rf "$git/logs" "$git/worktrees" "$git/rebase-merge" "$git/rebase-apply" "$git/sequencer" "$git/refs/original"
for name in FETCH_HEAD ORIG_HEAD MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD BISECT_HEAD AUTO_MERGE; do
    rm -f "$git/$name"
done
rm -f "$git"/BISECT_* "$git/info/refs"
for remote in $(git remote); do
    git config --remove-section "remote.$remote" || true
done

# Objects that can't be reached any more, and indexes that still name them.
rm -rf "$git/objects/info/commit-graph" "$git/objects/info/commit-graphs"
rm -f "$git/objects/pack/multi-pack-index"* "$git"/objects/pack/*.keep
git -c repack.writeBitmaps=false -c gc.reflogExpire=now repack -a -d -q
git prune --expire=now

# Nothing but the base commit and its ancestors may be left.
head=$(git rev-parse HEAD)
[ "$head" = "$full" ] || fail "the repository is at $head instead of $full"
git diff --cached --quiet "$full" || fail "the index differs from $full"
known=$(git rev-list --count "$full")
all=$(git cat-file --batch-check='%(objecttype)' --batch-all-objects | grep -c '^commit$')
[ "$known" = "$all" ] || fail "$((all - known)) commits are left that are no ancestors of $full"
left=$(git for-each-ref | wc -l)
[ "$left" -eq 0 ] || fail "$left references are left"

# The base's objects and the repository's own settings, from which the change is computed whatever the agent does to them.
mkdir -p "$store/base.git/refs" "$store/base.git/info"
cp -al "$git/objects" "$store/base.git/objects" 2> /dev/null || cp -a "$git/objects" "$store/base.git/objects"
cp "$git/config" "$store/base.git/config"
for name in attributes exclude; do
    if [ -f "$git/info/$name" ]; then cp "$git/info/$name" "$store/base.git/info/$name"; fi
done
for name in shallow; do
    if [ -f "$git/$name" ]; then cp "$git/$name" "$store/base.git/$name"; fi
done
echo "$full" > "$store/base.git/HEAD"
echo "$full" > "$store/base"
chmod -R go-rwx "$store"
