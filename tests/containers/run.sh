#!/usr/bin/env bash
# Runs the tests that need a container engine, with podman's storage, networks and settings in a temporary folder: images
# and containers of this machine aren't touched. As root on Debian, installs what is missing.
# With arguments, runs them as a command instead of the tests.
#
# Variables: `DOCKER_HOST` names another engine, `CARGO` the build tool.
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo=${CARGO:-cargo}
folder=$(mktemp -d "${TMPDIR:-/tmp}/bench-containers-XXXXXX")
service=

finish() {
  if [ -n "$service" ]; then
    kill "$service" 2>/dev/null || true
    wait "$service" 2>/dev/null || true
  fi
  if [ -e "$folder/storage.conf" ]; then
    # Only this folder's storage: its containers first, then what is still mounted below it.
    podman rm --all --force --time 0 >/dev/null 2>&1 || true
    podman network prune --force >/dev/null 2>&1 || true
  fi
  # Podman's own programs that clean up after a container a while later would mount the storage again.
  for process in /proc/[0-9]*; do
    if { tr "\0" " " <"$process/cmdline"; } 2>/dev/null | grep -qF "$folder/"; then
      kill -KILL "${process##*/}" 2>/dev/null || true
    fi
  done
  awk -v under="$folder/" 'index($5, under) == 1 { print $5 }' /proc/self/mountinfo | sort -r | while read -r place; do
    umount --lazy "$place" 2>/dev/null || true
  done
  # What podman was still writing keeps a folder from being removed for a moment.
  for _ in 1 2 3 4 5; do
    if rm -rf "$folder" 2>/dev/null; then return; fi
    sleep 1
  done
  echo "$folder could not be removed." >&2
}
trap finish EXIT

tests/containers/prepare.sh

export CONTAINERS_STORAGE_CONF=$folder/storage.conf CONTAINERS_CONF=$folder/containers.conf
cat >"$CONTAINERS_STORAGE_CONF" <<CONF
[storage]
driver = "overlay"
graphroot = "$folder/storage"
runroot = "$folder/run"
CONF
runc=$(command -v runc || true)
{
  # Podman's own limits are above those of this process, which may not raise them in a container.
  printf '[containers]\ndefault_ulimits = []\n[network]\nnetwork_backend = "netavark"\nnetwork_config_dir = "%s/networks"\n' "$folder"
  printf '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nexit_command_delay = 10\n'
  # crun refuses cgroups of both versions at once.
  if [ -n "$runc" ]; then printf 'runtime = "runc"\n[engine.runtimes]\nrunc = ["%s"]\n' "$runc"; fi
} >"$CONTAINERS_CONF"

if [ -z "${DOCKER_HOST:-}" ]; then
  # In a session of its own, since what runs here needs the engine for its cleanup after Ctrl-C.
  # Podman writes a file into its working folder when a container runs out of memory.
  (cd "$folder" && exec setsid podman system service --time 0 "unix://$folder/podman.sock") 2>"$folder/podman.log" &
  service=$!
  export DOCKER_HOST=unix://$folder/podman.sock
  for _ in $(seq 100); do
    if [ -S "$folder/podman.sock" ]; then break; fi
    sleep 0.1
  done
fi

if [ $# -gt 0 ]; then
  "$@"
  exit
fi

# Tests wait for the engine most of the time. The packages of the whole workspace are selected, so that cargo reuses what it
# built for other tests.
"$cargo" test --workspace --locked --no-fail-fast --test engine -- --test-threads 4
