#!/usr/bin/env bash
# Builds oauth2-proxy into build/oauth2-proxy, in a few minutes, and keeps it while the version is the same. Not by `go install`, which
# also wants a list of all versions, and not every mirror has one.
set -euo pipefail

version=${OAUTH2_PROXY_VERSION:-v7.8.1}
module=github.com/oauth2-proxy/oauth2-proxy/v7
home=$(cd "$(dirname "$0")/../.." && pwd)/build/oauth2-proxy
export CGO_ENABLED=0 GOWORK=off

if [ "$(cat "$home/.built" 2>/dev/null)" = "$version" ]; then
    exit 0
fi
rm -rf "$home"
mkdir -p "$home"
cd "$home"
go mod init podgpu.example/login 2>/dev/null
go mod edit -require="$module@$version"
go build -mod=mod -p 2 -buildvcs=false -o oauth2-proxy "$module"
echo "$version" >.built
