#!/usr/bin/env bash
# Builds etcd and Kubernetes from their Go modules into ~/.cache/podgpu-kubernetes, on two cores in about a quarter of an hour, and
# puts the resource definitions of the operators that the chart has objects for beside them. What is already there in the right version is kept.
set -euo pipefail

kubernetes=${KUBERNETES_VERSION:-v1.36.4}
etcd=${ETCD_VERSION:-v3.6.16}
operators=(
    "github.com/prometheus-operator/prometheus-operator@v0.85.0 example/prometheus-operator-crd/*_podmonitors.yaml"
    "github.com/prometheus-operator/prometheus-operator@v0.85.0 example/prometheus-operator-crd/*_servicemonitors.yaml"
    "github.com/prometheus-operator/prometheus-operator@v0.85.0 example/prometheus-operator-crd/*_prometheusrules.yaml"
    "github.com/VictoriaMetrics/operator@v0.50.0 config/crd/overlay/crd.yaml"
    "sigs.k8s.io/gateway-api@v1.3.0 config/crd/standard/*_httproutes.yaml"
    "github.com/cert-manager/cert-manager@v1.18.2 deploy/crds/crd-certificates.yaml"
    "github.com/GoogleCloudPlatform/prometheus-engine@v0.13.0 charts/operator/crds/*_clusterpodmonitorings.yaml"
)
home=${PODGPU_KUBERNETES:-$HOME/.cache/podgpu-kubernetes}
export CGO_ENABLED=0 GOWORK=off
mkdir -p "$home/bin"

build() { # NAME PACKAGE VERSION LDFLAGS
    if [ "$(cat "$home/bin/.$1" 2>/dev/null)" != "$3" ]; then
        echo "building $1 $3"
        go build -p 2 -trimpath -ldflags="-s -w $4" -o "$home/bin/$1" "$2"
        echo "$3" >"$home/bin/.$1"
    fi
}

# An empty module, since neither project can be installed by `go install`: both replace modules by folders of their own.
module() { # NAME
    mkdir -p "$home/src/$1"
    cd "$home/src/$1"
    [ -e go.mod ] || go mod init "podgpu.example/$1" 2>/dev/null
}

downloaded() { # MODULE@VERSION: its folder
    (cd / && go mod download -json "$1" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
}

mkdir -p "$home/crds"
for operator in "${operators[@]}"; do
    read -r module files <<<"$operator"
    install -m 644 "$(downloaded "$module")"/$files "$home/crds/"
done
sed -i '/{{/d' "$home/crds/crd-certificates.yaml" # labels of its own chart

module etcd
go get "go.etcd.io/etcd/server/v3@$etcd"
build etcd go.etcd.io/etcd/server/v3 "$etcd" ""

module kubernetes
folder=$(downloaded "k8s.io/kubernetes@$kubernetes")
sed -n 's/^\t\?\(k8s.io\/[a-z-]*\) => .\/staging.*/\1/p' "$folder/go.mod" | while read -r staged; do
    go mod edit -replace "$staged=$staged@${kubernetes/v1/v0}"
done
programs=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl)
packages=("${programs[@]/#/k8s.io/kubernetes/cmd/}")
go get "${packages[@]/%/@$kubernetes}"
minor=${kubernetes#v1.}
says="-X k8s.io/component-base/version.gitVersion=$kubernetes"
says+=" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=${minor%%.*}"
for program in "${programs[@]}"; do
    build "$program" "k8s.io/kubernetes/cmd/$program" "$kubernetes" "$says"
done
ls -l "$home/bin"
