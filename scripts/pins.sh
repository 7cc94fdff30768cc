#!/usr/bin/env bash
# Write constraints.txt: the newest versions that both pyproject files allow, tried together in an
# environment of its own. What the checks say can then change only in a commit.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"${PYTHON:-python3}" -m venv "$fresh"
"$fresh/bin/python" -m pip install --quiet --disable-pip-version-check \
  -e clients/python -e '.[dev,native]'
{
  echo "# The versions the checks run with; users are bound by pyproject.toml only. \`make pins\` renews it."
  "$fresh/bin/python" -m pip list --format=freeze --disable-pip-version-check \
    --exclude-editable --exclude pip --exclude setuptools
} >"$fresh/pins"
mv "$fresh/pins" constraints.txt
