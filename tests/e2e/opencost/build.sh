#!/usr/bin/env bash
# Builds OpenCost into build/opencost, in a few minutes, and keeps it while the version is the same. Its source is cloned from GitHub,
# or copied from the folder OPENCOST_SOURCE: its modules replace each other by folders, so `go install` cannot build it.
set -euo pipefail

version=${OPENCOST_VERSION:-5f6533303e3850c8635796a74bb22802d16e9090} # nine commits after v1.112.0
home=$(cd "$(dirname "$0")/../../.." && pwd)/build/opencost
export CGO_ENABLED=0 GOWORK=off

if [ "$(cat "$home/.built" 2>/dev/null)" = "$version" ]; then
    exit 0
fi
rm -rf "$home"
mkdir -p "$home/source"
if [ -n "${OPENCOST_SOURCE:-}" ]; then
    tar -C "$OPENCOST_SOURCE" --exclude=.git -c . | tar -x -C "$home/source"
else
    git clone --quiet https://github.com/opencost/opencost "$home/source"
    git -C "$home/source" checkout --quiet "$version"
fi
cd "$home/source"
# A large table that it embeds, and reads for estimates of carbon alone. Some mirrors leave it out.
[ -s pkg/carbon/carbonlookupdata.csv ] || echo provider,region,instanceType,carbon >pkg/carbon/carbonlookupdata.csv
go build -p 2 -buildvcs=false -o "$home/opencost" ./cmd/costmodel
echo "$version" >"$home/.built"
