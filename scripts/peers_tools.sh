#!/usr/bin/env bash
# Bring what `make bench-peers` compares Jobline with, by name, from the registries:
#
#   scripts/peers_tools.sh nats-server redis beanstalkd postgresql strace   servers, and what counts their syncs
#   scripts/peers_tools.sh go-loads node-loads                              the programs that load them
#
# Ends with 1, and says what is missing as its last line, if one of them is not to be had here.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$PWD/.tools/bin
export PATH="$bin:$PATH:$PWD/.tools/go/bin" GOFLAGS=-buildvcs=false
mkdir -p "$bin"

give_up() { # why
  echo "$1" >&2
  exit 1
}

debian() { # package, program
  command -v "$2" >/dev/null && return 0
  command -v apt-get >/dev/null || give_up "$2 is not there, nor apt-get: install $1"
  [ "$(id -u)" -eq 0 ] || give_up "$2 is not there, and only root may install it: apt-get install $1"
  apt-cache show "$1" >/dev/null 2>&1 || apt-get update -qq || give_up "$2 is not there, and apt-get update failed"
  # The package's own service is of no use: each row has a server of its own.
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null ||
    give_up "$2 is not there, and apt-get install $1 failed"
}

go_is_there() {
  command -v go >/dev/null || give_up "there is no go on this machine: scripts/go_tools.sh --with-go brings one"
}

nats_server() {
  local version=v2.15.3
  [ "$("$bin/nats-server" --version 2>/dev/null || true)" != "nats-server: $version" ] || return 0
  go_is_there
  GOBIN=$bin go install "github.com/nats-io/nats-server/v2@$version" || give_up "nats-server $version cannot be built by go install"
}

go_loads() {
  go_is_there
  (cd benchmarks/peers/go && go build -o "$bin/peer-loads" .) || give_up "benchmarks/peers/go cannot be built by go build"
}

node_loads() {
  command -v npm >/dev/null && node -e 'process.exit(+(process.versions.node.split(".")[0] < 20))' ||
    give_up "there is no Node.js 20 with npm on this machine"
  cd benchmarks/peers/node
  if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
    npm ci --silent --no-audit --no-fund || give_up "npm ci failed in benchmarks/peers/node"
    touch node_modules/.package-lock.json
  fi
  # The package's install step only puts its program where npm looks for it.
  node_modules/.bin/bun --version >/dev/null || give_up "bun does not run on this machine"
  cd - >/dev/null
}

for tool in "$@"; do
  case $tool in
  nats-server) nats_server ;;
  redis) debian redis-server redis-server ;;
  beanstalkd) debian beanstalkd beanstalkd ;;
  postgresql) compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || debian postgresql initdb ;;
  strace) debian strace strace ;;
  go-loads) go_loads ;;
  node-loads) node_loads ;;
  *) give_up "there is no tool $tool" ;;
  esac
done
