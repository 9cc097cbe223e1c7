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
services=()
command=

finish() {
  if [ -n "$command" ]; then kill -- "-$command" 2>/dev/null || true; fi
  for service in "${services[@]}"; do
    kill "$service" 2>/dev/null || true
    wait "$service" 2>/dev/null || true
  done
  for place in "$folder"/*/; do
    if [ ! -e "$place/storage.conf" ]; then continue; fi
    # Only this folder's storage: its containers first, then what is still mounted below it.
    use "$place"
    podman rm --all --force --time 0 >/dev/null 2>&1 || true
    podman network prune --force >/dev/null 2>&1 || true
  done
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

# Makes podman and the tests use the storage and the settings in a folder, and the service at its socket.
use() {
  export CONTAINERS_STORAGE_CONF=$1/storage.conf CONTAINERS_CONF=$1/containers.conf
  if [ -z "$given_host" ]; then export DOCKER_HOST=unix://$1/podman.sock; fi
}

# Writes storage and settings of podman into a folder and starts a service there. Its networks have addresses 10.NUMBER.*.*.
prepare() {
  local place=$1 number=$2 runc
  mkdir "$place"
  use "$place"
  cat >"$CONTAINERS_STORAGE_CONF" <<CONF
[storage]
driver = "overlay"
graphroot = "$place/storage"
runroot = "$place/run"
CONF
  runc=$(command -v runc || true)
  {
    # Podman's own limits are above those of this process, which may not raise them in a container.
    printf '[containers]\ndefault_ulimits = []\n[network]\nnetwork_backend = "netavark"\n'
    printf 'network_config_dir = "%s/networks"\n' "$place"
    # Two storages know nothing of each other's networks.
    printf 'default_subnet_pools = [{base = "10.%s.0.0/16", size = 24}]\n' "$number"
    printf '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nexit_command_delay = 10\n'
    # crun refuses cgroups of both versions at once.
    if [ -n "$runc" ]; then printf 'runtime = "runc"\n[engine.runtimes]\nrunc = ["%s"]\n' "$runc"; fi
  } >"$CONTAINERS_CONF"
  if [ -n "$given_host" ]; then return; fi
  # In a session of its own, since what runs here needs the engine for its cleanup after Ctrl-C.
  # Podman writes a file into its working folder when a container runs out of memory.
  (cd "$place" && exec setsid podman system service --time 0 "$DOCKER_HOST") 2>"$place/podman.log" &
  services+=($!)
  for _ in $(seq 1200); do
    if [ -S "$place/podman.sock" ]; then break; fi
    sleep 0.1
  done
}

tests/containers/prepare.sh
given_host=${DOCKER_HOST:-}
prepare "$folder/a" 89

if [ $# -gt 0 ]; then
  "$@"
  exit
fi

# Tests wait for the engine most of the time. The packages of the whole workspace are selected, so that cargo reuses what it
# built for other tests.
tests=("$cargo" test --workspace --locked --no-fail-fast --test engine -- --test-threads 4)
if [ -n "$given_host" ]; then
  "${tests[@]}"
  exit
fi

# Tests of the command count what the engine has, so they run one after another, on an engine of their own beside the others.
# Those of the agents follow there, so that both engines are busy for the same time.
prepare "$folder/b" 90
setsid "${tests[@]}" command:: agents:: >"$folder/command.log" 2>&1 &
command=$!
use "$folder/a"
failed=0
"${tests[@]}" --skip=command:: --skip=agents:: || failed=1
wait "$command" || failed=1
cat "$folder/command.log"
exit "$failed"
