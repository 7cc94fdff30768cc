#!/usr/bin/env bash
# Generate the Python, Go and TypeScript stubs, and the descriptors that reflection serves, from proto/; or
# with --check only say whether they are what they should be. `make gen` and `make gen-check` call it, and
# see that .gen-venv is there, and the TypeScript generator where there is npm. Without Go the Go stubs
# are left out, which it says.
set -euo pipefail
cd "$(dirname "$0")/.."

stubs=clients/python/jobline/v1
go_stubs=clients/go/joblinev1
descriptors=service/jobline_server/rpc/descriptors.binpb
# What KEDA asks is of no use to a client: the messages are the server's alone.
scaler=externalscaler/externalscaler_pb2
scaler_stub=service/jobline_server/rpc/externalscaler_pb2
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

.gen-venv/bin/buf generate -o "$fresh" 2>"$fresh/said" || { cat "$fresh/said" >&2; exit 1; }

# mypy-protobuf writes an empty _pb2_grpc.pyi for files without services; there is no such module.
for typed in "$fresh/$stubs"/*_pb2_grpc.pyi; do
  [ -e "${typed%i}" ] || rm "$typed"
done

# The plugin of the TypeScript stubs comes from npm. Without it they are left as they are. The journal's
# own messages are no client's business.
typescript=clients/typescript/src/v1
generator=clients/typescript/node_modules/.bin/protoc-gen-es
made=$fresh/$typescript/jobline/v1
if [ -x "$generator" ]; then
  .gen-venv/bin/buf generate --template clients/typescript/buf.gen.yaml -o "$fresh" \
    --exclude-path proto/jobline/v1/store.proto --exclude-path proto/jobline/v1/entry.proto \
    --exclude-path proto/externalscaler
else
  echo "no packages from npm: the TypeScript stubs are left out" >&2
fi

# Source info and all: the comments are what `grpcurl describe` shows.
.gen-venv/bin/buf build --as-file-descriptor-set -o "$fresh/descriptors.binpb"

has_go=
if scripts/go_tools.sh; then
  has_go=yes
  .gen-venv/bin/buf generate --template buf.gen.go.yaml -o "$fresh" 2>"$fresh/said" || { cat "$fresh/said" >&2; exit 1; }
else
  echo "left out: the Go stubs"
fi

if [ "${1:-}" = --check ]; then
  if [ -n "$has_go" ] && ! diff --recursive --brief "$fresh/$go_stubs" "$go_stubs"; then
    echo "The stubs in $go_stubs are not what proto/ says. Run \`make gen\` and commit the result." >&2
    exit 1
  fi
  if ! diff --recursive --brief --exclude=__init__.py --exclude=__pycache__ "$fresh/$stubs" "$stubs"; then
    echo "The stubs in $stubs are not what proto/ says. Run \`make gen\` and commit the result." >&2
    exit 1
  fi
  for kind in py pyi; do
    if ! cmp --silent "$fresh/clients/python/$scaler.$kind" "$scaler_stub.$kind"; then
      echo "$scaler_stub.$kind is not what proto/ says. Run \`make gen\` and commit the result." >&2
      exit 1
    fi
  done
  if ! cmp --silent "$fresh/descriptors.binpb" "$descriptors"; then
    echo "$descriptors is not what proto/ says. Run \`make gen\` and commit the result." >&2
    exit 1
  fi
  if [ -d "$made" ] && ! diff --brief --exclude=index.ts "$made" "$typescript"; then
    echo "The stubs in $typescript are not what proto/ says. Run \`make gen\` and commit the result." >&2
    exit 1
  fi
  echo "stubs and descriptors: as proto/ says"
else
  mkdir -p "$stubs"
  rm -f "$stubs"/*_pb2.py "$stubs"/*_pb2.pyi "$stubs"/*_pb2_grpc.py "$stubs"/*_pb2_grpc.pyi
  cp "$fresh/$stubs"/*_pb2* "$stubs"/
  for kind in py pyi; do cp "$fresh/clients/python/$scaler.$kind" "$scaler_stub.$kind"; done
  cp "$fresh/descriptors.binpb" "$descriptors"
  [ -z "$has_go" ] || { rm -rf "$go_stubs" && cp -r "$fresh/$go_stubs" "$go_stubs"; }
  if [ -d "$made" ]; then
    rm -f "$typescript"/*_pb.ts
    cp "$made"/*_pb.ts "$typescript"/
  fi
  echo "stubs: $(find "$stubs" -name '*_pb2*' -not -name '*.pyc' | wc -l) files in $stubs"
fi
