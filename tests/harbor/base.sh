#!/usr/bin/env bash
# Makes the image `debian:bookworm` for an engine that neither has it nor can pull it. The stand-in has the packages that
# the sample tasks install and no package sources, so that builds need no network. The folder $1 keeps its archive.
set -euo pipefail

image=debian:bookworm
packages=python3,tmux,ca-certificates

if docker image inspect "$image" >/dev/null 2>&1 || docker pull --quiet "$image" >/dev/null 2>&1; then exit; fi

archive=$1/bookworm.tar
if [ ! -e "$archive" ]; then
  if ! command -v debootstrap >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends debootstrap >&2 || true
  fi
  if ! command -v debootstrap >/dev/null; then
    echo "The image $image can't be pulled, and to make it debootstrap is missing: \`apt-get install debootstrap\`." >&2
    exit 1
  fi
  # On Debian, from this machine's own mirror.
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep '/debian/$' | head -n 1 || true)
  root=$(mktemp -d "$1/bookworm-XXXXXX")
  trap 'rm -rf "$root" "$archive.new"' EXIT
  echo "making $image with debootstrap" >&2
  debootstrap --variant=minbase --include="$packages" bookworm "$root" ${mirror:+"$mirror"} >"$1/debootstrap.log" 2>&1 || {
    tail -n 20 "$1/debootstrap.log" >&2
    exit 1
  }
  : >"$root/etc/apt/sources.list"
  tar -C "$root" -cf "$archive.new" .
  mv "$archive.new" "$archive"
fi
docker import --change 'CMD ["bash"]' "$archive" "$image" >/dev/null
