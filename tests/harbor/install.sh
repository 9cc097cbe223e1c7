#!/usr/bin/env bash
# Makes a virtual environment with Harbor in the folder $1. Takes the first Python that is recent enough: `PYTHON`, those on
# PATH, those of pyenv.
set -euo pipefail
cd "$(dirname "$0")/../.."

is_usable() { "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; }

found=
for python in ${PYTHON:-} python3.13 python3.12 python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python3; do
  if is_usable "$python"; then
    found=$python
    break
  fi
done
if [ -z "$found" ]; then
  echo "Harbor needs Python 3.12 or later with venv: install it, or name it as \`make compare-harbor PYTHON=/path/to/python3.13\`." >&2
  exit 1
fi

"$found" -m venv --clear "$1"
"$1/bin/pip" install --quiet --disable-pip-version-check --require-hashes --requirement tests/harbor/requirements.txt
