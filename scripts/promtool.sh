#!/usr/bin/env bash
# Bring promtool, which checks metrics, into .tools/bin: out of Debian's package, without installing that.
# Built by Go it would need the libraries of every cloud that Prometheus can discover.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v promtool >/dev/null || [ -x .tools/bin/promtool ] && exit 0
command -v apt-get >/dev/null || { echo "there is no apt-get: promtool is part of Prometheus" >&2; exit 1; }
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
chmod 755 "$fresh"
(cd "$fresh" && { apt-get download -qq prometheus 2>/dev/null || { apt-get update -qq && apt-get download -qq prometheus; }; })
dpkg-deb --fsys-tarfile "$fresh"/prometheus_*.deb | tar -x -C "$fresh" ./usr/bin/promtool
mkdir -p .tools/bin
mv "$fresh/usr/bin/promtool" .tools/bin/promtool
