#!/usr/bin/env bash
# Makes an image with bash, git, Python and the usual tools from the programs of this machine, for tests of images that registries
# hold elsewhere: `base.sh NAME [COMMAND...]`. The command imports a tar archive from standard input, by default into the engine.
set -euo pipefail
name=$1
shift
folder=$(mktemp -d "${TMPDIR:-/tmp}/bench-base-XXXXXX")
trap 'rm -rf "$folder"' EXIT
root=$folder/root
mkdir -p "$root"/{bin,etc,lib64,proc,root,sys,tmp,usr/bin,usr/lib,var/tmp}
chmod 1777 "$root/tmp" "$root/var/tmp"

# Lists the libraries that a program is linked with; none for a script.
libraries() { { ldd "$1" 2>/dev/null || true; } | { grep -o '/[^ ):]*' || true; }; }

# Copies a file with the libraries that it is linked with.
add() {
  local file=$1 target=${2:-$1} library
  if [ -e "$root$target" ]; then return; fi
  mkdir -p "$root$(dirname "$target")"
  cp -L "$file" "$root$target"
  for library in $(libraries "$file"); do
    if [ -f "$library" ]; then add "$library"; fi
  done
}

programs=(
  awk basename bash cat chmod chown cmp comm cp cut date dd df diff dirname du env expr false find grep gzip head hostname id
  install kill ln ls mkdir mkfifo mktemp mv nproc od printf ps pwd readlink realpath rm rmdir sed seq sh sleep sort split stat
  tail tar tee test timeout touch tr true uname uniq wc which xargs yes
)
for program in "${programs[@]}"; do
  found=$(PATH=/usr/bin:/bin command -v "$program" || true)
  case $found in /*) add "$found" "/usr/bin/$program" ;; esac
done
git=/usr/bin/git
if [ ! -x "$git" ]; then git=$(command -v git); fi
add "$git" /usr/bin/git
core=$("$git" --exec-path)
mkdir -p "$root$core"
for program in sh-setup sh-i18n submodule merge-octopus; do
  if [ -e "$core/git-$program" ]; then cp -L "$core/git-$program" "$root$core/"; fi
done
ln -s /usr/bin/git "$root$core/git"
python=/usr/bin/python3
if [ ! -x "$python" ]; then python=$(command -v python3); fi
"$python" -I -c 'import sys, sysconfig; print(sys.executable); print(sysconfig.get_path("stdlib"))' >"$folder/python"
{ read -r executable; read -r library; } <"$folder/python"
add "$(readlink -f "$executable")" /usr/bin/python3
ln -s python3 "$root/usr/bin/python"
mkdir -p "$root$library"
tar -C "$library" -c --exclude=test --exclude=tests --exclude=__pycache__ --exclude=idlelib --exclude=site-packages \
  --exclude=dist-packages --exclude='config-*' . | tar -C "$root$library" -x
for module in "$root$library"/lib-dynload/*.so; do
  for needed in $(libraries "$module"); do
    if [ -f "$needed" ]; then add "$needed"; fi
  done
done
for link in bash sh env; do ln -sf "/usr/bin/$link" "$root/bin/$link"; done
# What images install is there already.
printf '#!/bin/sh\nexit 0\n' >"$root/usr/bin/apt-get"
chmod 755 "$root/usr/bin/apt-get"
printf 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
printf 'passwd: files\ngroup: files\n' >"$root/etc/nsswitch.conf"

if [ $# -eq 0 ]; then
  set -- docker import --change 'CMD ["bash"]' --change 'ENV PATH=/usr/bin:/bin' - "$name"
fi
tar -C "$root" -c . | "$@" >/dev/null
