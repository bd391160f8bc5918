#!/usr/bin/env bash
# Builds etcd and the parts of Kubernetes from their Go modules into ~/.cache/podgpu-kubernetes/bin; takes half an hour of two cores.
# What is already there in the right version is kept.
set -euo pipefail

kubernetes=${KUBERNETES_VERSION:-v1.36.4}
etcd=${ETCD_VERSION:-v3.6.16}
home=${PODGPU_KUBERNETES:-$HOME/.cache/podgpu-kubernetes}
export CGO_ENABLED=0 GOWORK=off
mkdir -p "$home/bin"

build() { # MODULE VERSION PACKAGE NAME LDFLAGS, in a module that requires MODULE
    if [ "$(cat "$home/bin/.$4" 2>/dev/null)" != "$2" ]; then
        echo "building $4 $2"
        go build -p 2 -trimpath -ldflags="-s -w $5" -o "$home/bin/$4" "$3"
        echo "$2" >"$home/bin/.$4"
    fi
}

# An empty module, since neither project can be installed by `go install`: both replace modules by folders of their own.
module() { # NAME
    mkdir -p "$home/src/$1"
    cd "$home/src/$1"
    [ -e go.mod ] || go mod init "podgpu.example/$1" 2>/dev/null
}

module etcd
go get "go.etcd.io/etcd/server/v3@$etcd"
build go.etcd.io/etcd/server/v3 "$etcd" go.etcd.io/etcd/server/v3 etcd ""

module kubernetes
folder=$(cd / && go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
sed -n 's/^\t\?\(k8s.io\/[a-z-]*\) => .\/staging.*/\1/p' "$folder/go.mod" | while read -r staged; do
    go mod edit -replace "$staged=$staged@${kubernetes/v1/v0}"
done
programs=(kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl kube-proxy)
packages=("${programs[@]/#/k8s.io/kubernetes/cmd/}")
go get "${packages[@]/%/@$kubernetes}"
says="-X k8s.io/component-base/version.gitVersion=$kubernetes -X k8s.io/component-base/version.gitMajor=1"
minor=${kubernetes#v1.}
for program in "${programs[@]}"; do
    build k8s.io/kubernetes "$kubernetes" "k8s.io/kubernetes/cmd/$program" "$program" \
        "$says -X k8s.io/component-base/version.gitMinor=${minor%%.*}"
done
ls -l "$home/bin"
