#!/usr/bin/env bash
# Write constraints.txt and pipeline/constraints.txt: the newest versions that the pyproject files
# allow, tried together in an environment of its own for each of the two. What the checks say can
# then change only in a commit.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

pin() { # file, packages…
  local file=$1 made=$fresh/${1//\//-}
  shift
  "${PYTHON:-python3}" -m venv "$made"
  "$made/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
  {
    echo "# The versions the checks run with; users are bound by pyproject.toml only. \`make pins\` renews it."
    "$made/bin/python" -m pip list --format=freeze --disable-pip-version-check \
      --exclude-editable --exclude pip --exclude setuptools
  } >"$made.pins"
  mv "$made.pins" "$file"
}

pin constraints.txt -e clients/python -e '.[dev,native,object-store]'
pin pipeline/constraints.txt -e clients/python -e '.[history]' -e 'pipeline[dev,java]'
