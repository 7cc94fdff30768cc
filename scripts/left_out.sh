#!/usr/bin/env bash
# Say which suites and tests this machine leaves out, for want of which program, and what brings it.
# With names (go node …) only those count, and the script ends with 1 if one of them is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

node_fits() { command -v npm && node -e 'process.exit(+(process.versions.node.split(".")[0] < 20))'; }
postgresql() { command -v pg_ctl || compgen -G '/usr/lib/postgresql/*/bin/initdb'; }
promtool() { type -P promtool || test -x .tools/bin/promtool; }
grpcurl() { type -P grpcurl || test -x .tools/bin/grpcurl || test -x "$HOME/go/bin/grpcurl"; }

missing=0
said=
look() { # name, how to find it, what is left out, what brings it
  local name=$1 found=$2 what=$3 brings=$4
  case " ${wanted:-$name} " in *" $name "*) ;; *) return 0 ;; esac
  $found >/dev/null 2>&1 && return 0
  [ -n "$said" ] || printf 'left out on this machine:\n'
  said=yes
  printf '  no %-11s %s (%s)\n' "$name:" "$what" "$brings"
  missing=1
}

wanted=$*
look go 'command -v go' 'the Go client: its tests, vectors and outbox' 'make go-setup'
look gcc 'command -v gcc' 'the race detector in the tests of the Go client' 'apt-get install gcc libc6-dev'
look node node_fits 'the TypeScript client: its tests and vectors; the client of Connect' 'Node 20 or newer, with npm'
look ruby 'command -v ruby' 'the program in Ruby of docs/clients.md' 'apt-get install ruby'
look mono 'command -v mcs' 'the program in C# of docs/clients.md' 'apt-get install mono-mcs mono-runtime'
look java 'command -v java' 'the program in Java of docs/clients.md' 'apt-get install default-jdk-headless'
look grpcurl grpcurl 'what README.md shows with grpcurl' 'go install …/grpcurl, as scripts/ci.sh does'
look promtool promtool 'the check of metrics' 'scripts/promtool.sh'
look postgresql postgresql 'the outbox on PostgreSQL' 'apt-get install postgresql'
look helm 'test -x .tools/bin/helm4' 'the chart for Kubernetes and the image' 'make helm-setup'
look moto 'test -x .venv/bin/moto_server' 'backups to an object store' 'make object-store'
look openssl 'command -v openssl' 'webhooks over TLS' 'apt-get install openssl'
look strace 'command -v strace' 'the system calls of a commit' 'apt-get install strace'
if [ -n "$wanted" ] && [ "$missing" -ne 0 ]; then exit 1; fi
[ -n "$said" ] || echo "nothing was left out for want of a program"
