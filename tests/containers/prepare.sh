#!/usr/bin/env bash
# Checks that what the container tests need is there, and installs it as root on Debian and Ubuntu.
set -euo pipefail

compose_folder=/usr/local/lib/docker/cli-plugins
missing=()

has() { command -v "$1" >/dev/null 2>&1; }

has_helper() {
  local folder
  for folder in /usr/local/libexec/podman /usr/local/lib/podman /usr/libexec/podman /usr/lib/podman; do
    if [ -x "$folder/$1" ]; then return 0; fi
  done
  return 1
}

is_static_busybox() { has busybox && ! ldd "$(command -v busybox)" >/dev/null 2>&1; }

# Sets `missing` to the packages of Debian that are needed.
look() {
  missing=()
  has podman || missing+=(podman)
  has runc || has crun || missing+=(runc)
  has_helper netavark || missing+=(netavark)
  has_helper aardvark-dns || missing+=(aardvark-dns)
  has iptables || missing+=(iptables)
  has nft || missing+=(nftables)
  has ip || missing+=(iproute2)
  has curl || missing+=(curl)
  has docker || missing+=(docker-cli)
  has tmux || missing+=(tmux)
  is_static_busybox || missing+=(busybox-static)
}

say_missing() {
  echo "The container tests need $*. Debian, Ubuntu: \`apt-get install podman runc netavark aardvark-dns iptables nftables" \
    "iproute2 curl tmux busybox-static docker-cli docker-compose\` (before Debian 13: docker.io instead of docker-cli, and the" \
    "plugin \`docker-compose\` in $compose_folder)." >&2
  exit 1
}

# Installs packages. Before Debian 13, the docker command is in docker.io.
install() {
  local packages=() package
  for package in "$@"; do
    if [ "$package" = docker-cli ] && ! apt-cache show docker-cli >/dev/null 2>&1; then package=docker.io; fi
    packages+=("$package")
  done
  # Services of packages, such as dockerd, aren't started.
  local policy=/usr/sbin/policy-rc.d made=
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    made=1
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends "${packages[@]}" >&2 || true
  if [ -n "$made" ]; then rm -f "$policy"; fi
}

has_compose() { docker compose version >/dev/null 2>&1; }

# Installs the compose plugin: from the machine's release, or from that of Debian 13, whose program needs no libraries.
install_compose() {
  if apt-cache show docker-compose 2>/dev/null | grep -q '^Version: 2'; then
    install docker-compose
  fi
  if has_compose; then return; fi
  local folder mirror
  folder=$(mktemp -d)
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep '/debian/$' | head -n 1)
  if [ -z "$mirror" ]; then return; fi
  mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$folder/sources.list"
  local options=(
    -o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder/cache"
  )
  (
    cd "$folder"
    apt-get "${options[@]}" update --quiet >&2
    apt-get "${options[@]}" download docker-compose >&2
    dpkg-deb -x docker-compose_*.deb plugin
    mkdir -p "$compose_folder"
    cp plugin/usr/libexec/docker/cli-plugins/docker-compose "$compose_folder/"
  ) || true
  rm -rf "$folder"
}

may_install() { [ "$(id -u)" = 0 ] && has apt-get; }

look
if [ ${#missing[@]} -gt 0 ] && may_install; then
  apt-get update --quiet >&2 || true
  install "${missing[@]}"
  look
fi
if has docker && ! has_compose && may_install; then install_compose; fi
if [ ${#missing[@]} -gt 0 ]; then say_missing "${missing[*]}"; fi
if ! has_compose; then say_missing "the plugin of \`docker compose\`"; fi
if [ "$(id -u)" != 0 ]; then
  echo "The container tests need root: they limit networks and mount files." >&2
  exit 1
fi
