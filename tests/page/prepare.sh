#!/bin/sh
# Checks that Node.js and npm are here, or that Chromium is, which it installs on Debian and Ubuntu when run by root.
set -eu

fail() {
  echo "$*" >&2
  exit 1
}

case "$1" in
  node)
    for command in node npm; do
      command -v "$command" > /dev/null || fail "$command is missing: install Node.js 20 or later with npm (Debian 13, Ubuntu 24.10: apt-get install nodejs npm; others: https://nodejs.org)"
    done
    node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' ||
      fail "Node.js $(node --version) is too old: install version 20 or later (https://nodejs.org)"
    ;;
  chromium)
    cd "$(dirname "$0")"
    node -e 'import("./support/browser.js").then(({ findChromium }) => findChromium(), () => {}).catch(() => process.exit(1))' && exit 0
    if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
      echo "Installing Chromium"
      apt-get update --quiet=2
      DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends chromium fonts-dejavu-core
    else
      fail "Chromium is missing: apt-get install chromium (as root), or set CHROMIUM to the path of Chromium or Chrome"
    fi
    ;;
esac
