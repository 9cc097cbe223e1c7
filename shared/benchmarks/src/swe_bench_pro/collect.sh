# Writes the difference between the base commit and the files in a repository's folder, new files included.
# Variables: base, folder, store, change_bytes_max, files_bytes_max, too_large.
set -u
fail() {
    echo "$*"
    exit 1
}
change="$store/change.diff"
rm -rf "$change" "$store/index" "$store/index.lock"

# The agent's own configuration, hooks and index have no say; its .git folder isn't read.
[ -f "$store/base" ] && [ -d "$store/base.git/objects" ] || fail "the objects of the base commit are gone"
printf '[safe]\n\tdirectory = *\n' > "$store/config"
unset "${!GIT_@}"
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL="$store/config" GIT_ATTR_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0 GIT_NO_REPLACE_OBJECTS=1
export GIT_DIR="$store/base.git" GIT_WORK_TREE="$folder" GIT_INDEX_FILE="$store/index" LC_ALL=C
export HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent
full=$(cat "$store/base")
cd "$folder" 2> /dev/null || fail "the folder $folder is gone"
base_git() {
    git -c core.bare=false -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.untrackedCache=false \
        -c core.pager=cat -c core.excludesFile=/dev/null -c core.attributesFile=/dev/null -c color.ui=false "$@"
}
base_git read-tree "$full" || fail "the base commit can't be read"

# Sizes first, since git would copy the files.
bytes=$(base_git ls-files -z --others --modified --exclude-standard | sort -zu | xargs -0 -r stat -c %s -- 2> /dev/null |
    awk '{ sum += $1 } END { printf "%.0f", sum }')
if [ "${bytes:-0}" -gt "$files_bytes_max" ]; then
    echo "the changed files have $bytes bytes; at most $files_bytes_max can be a change"
    exit "$too_large"
fi
# A file that can't be added is left out, such as a repository without a commit. After a fatal error, nothing was added.
added=0
base_git add --all --ignore-errors . 2> "$store/add.log" || added=$?
[ "$added" -eq 0 ] || head -c 2000 "$store/add.log"
[ "$added" -lt 128 ] || fail "the change can't be staged: $(tail -n 1 "$store/add.log" | head -c 300)"
# Written to the end, since a reader that stops early would hide an error.
base_git diff --cached --no-color --no-ext-diff --no-textconv "$full" > "$change" || fail "the change can't be computed"
size=$(stat -c %s "$change")
if [ "$size" -gt "$change_bytes_max" ]; then
    rm -f "$change"
    echo "the change has $size bytes; a change has at most $change_bytes_max"
    exit "$too_large"
fi
exit 0
