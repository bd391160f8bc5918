{{/* The reader of the whole cluster. */}}

{{- define "podgpu.cluster.fullname" -}}
{{- printf "%s-cluster" (include "podgpu.fullname" .) -}}
{{- end -}}

{{- define "podgpu.cluster.selectorLabels" -}}
app.kubernetes.io/name: {{ include "podgpu.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: cluster
{{- end -}}

{{- define "podgpu.cluster.labels" -}}
{{- include "podgpu.labels" . | replace "app.kubernetes.io/component: agent" "app.kubernetes.io/component: cluster" -}}
{{- end -}}

{{/* metadata of an object in the release's namespace: dict "root" $ "also" labels "notes" annotations */}}
{{- define "podgpu.cluster.metadata" -}}
name: {{ include "podgpu.cluster.fullname" .root }}
namespace: {{ include "podgpu.namespace" .root }}
labels:
  {{- include "podgpu.cluster.labels" .root | nindent 2 }}
  {{- with .also }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .notes }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "podgpu.cluster.serviceAccountName" -}}
{{- $own := ternary (include "podgpu.cluster.fullname" .) "default" .Values.cluster.serviceAccount.create -}}
{{- default $own .Values.cluster.serviceAccount.name -}}
{{- end -}}

{{- define "podgpu.cluster.scheme" -}}
{{- ternary "https" "http" (hasKey .Values.cluster.webConfig "tls_server_config") -}}
{{- end -}}

{{/* Whether tokens of Kubernetes open the pages of this pod: "true" or "". */}}
{{- define "podgpu.cluster.asksForTokens" -}}
{{- if eq (get (include "podgpu.cluster.given" . | fromJson) "web.kube-auth" | default "off") "on" -}}true{{- end -}}
{{- end -}}

{{/* Whether the pages of this pod are only for those who have logged in: "true" or "". */}}
{{- define "podgpu.cluster.asksForLogin" -}}
{{- $proxy := hasKey (include "podgpu.cluster.given" . | fromJson) "web.trusted-proxy" -}}
{{- if or .Values.cluster.webConfig.basic_auth_users (include "podgpu.cluster.asksForTokens" .) $proxy -}}true{{- end -}}
{{- end -}}

{{/* What other values set, as JSON: the agents of this release, and no others. */}}
{{- define "podgpu.cluster.own" -}}
{{- $selector := list -}}
{{- range $key, $value := include "podgpu.selectorLabels" . | fromYaml -}}
{{- $selector = append $selector (printf "%s=%s" $key $value) -}}
{{- end -}}
{{- $own := dict
    "web.listen-address" (list (printf ":%d" (int .Values.cluster.port)))
    "cluster.selector" (join "," $selector)
    "cluster.namespace" (include "podgpu.namespace" .)
    "cluster.daemonset" (include "podgpu.fullname" .) -}}
{{- range .Values.cluster.listeners -}}
{{- $_ := set $own "web.listen-address" (append (get $own "web.listen-address") (printf ":%d=%s" (int .port) .dialect)) -}}
{{- end -}}
{{- if .Values.cluster.webConfig -}}{{- $_ := set $own "web.config.file" "/etc/podgpu-web/web-config.yml" -}}{{- end -}}
{{- if hasKey (include "podgpu.cluster.given" . | fromJson) "prometheus.url" -}}
{{- $own = merge $own (include "podgpu.believed" . | fromJson) -}}
{{- end -}}
{{- toJson (merge $own (include "podgpu.cluster.login" . | fromJson)) -}}
{{- end -}}

{{/* The Secret with the authority of the agents' certificate; empty where there is none. */}}
{{- define "podgpu.cluster.loginSecret" -}}
{{- default (ternary (include "podgpu.tlsSecret" .) "" (include "podgpu.makesTls" . | ne "")) .Values.cluster.login.existingSecret -}}
{{- end -}}

{{/* dict "root" $ "constraints" from the values. One without a selector is about the cluster's own pods. */}}
{{- define "podgpu.cluster.spread" -}}
{{- $own := dict "labelSelector" (dict "matchLabels" (include "podgpu.cluster.selectorLabels" .root | fromYaml)) -}}
{{- $all := list -}}
{{- range .constraints -}}{{- $all = append $all (ternary . (merge (deepCopy .) $own) (hasKey . "labelSelector")) -}}{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* The port of the store that the user named; empty where there is none. */}}
{{- define "podgpu.cluster.storePort" -}}
{{- with get (include "podgpu.cluster.given" . | fromJson) "prometheus.url" -}}
{{- $url := urlParse . -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" -}}
{{- default (ternary "443" "80" (eq $url.scheme "https")) $port -}}
{{- end -}}
{{- end -}}

{{/* Pods that would not be there, or would be counted more than once. */}}
{{- define "podgpu.cluster.refuse" -}}
{{- with .Values.cluster -}}
{{- if .enabled -}}
{{- $scraped := or .podMonitor.enabled (eq (toString (get .podAnnotations "prometheus.io/scrape")) "true") -}}
{{- if and $scraped (gt (int .replicas) 1) -}}
{{- fail (printf "cluster.replicas=%d: each replica serves the same series, so every sum over podgpu_cluster_… would be %d times as large. Keep one replica where it is scraped: a new pod has read all agents within seconds." (int .replicas) (int .replicas)) -}}
{{- end -}}
{{- if and .podMonitor.enabled (include "podgpu.cluster.asksForLogin" $) (not (or .podMonitor.basicAuth .podMonitor.authorization)) -}}
{{- fail "The pages of the cluster ask for a login, but cluster.podMonitor has none, so every scrape would be refused. Set cluster.podMonitor.basicAuth or cluster.podMonitor.authorization." -}}
{{- end -}}
{{- if and (or .ingress.enabled .httpRoute.enabled) (not .service.enabled) -}}
{{- fail "cluster.ingress and cluster.httpRoute lead to the Service of the cluster, but cluster.service.enabled is false. Set it to true." -}}
{{- end -}}
{{- if and .httpRoute.enabled (not .httpRoute.parentRefs) -}}
{{- fail "cluster.httpRoute.enabled needs a Gateway. Name it in cluster.httpRoute.parentRefs." -}}
{{- end -}}
{{- if and .podDisruptionBudget.enabled (eq (toString .podDisruptionBudget.minAvailable | empty) (toString .podDisruptionBudget.maxUnavailable | empty)) -}}
{{- fail "cluster.podDisruptionBudget takes minAvailable or maxUnavailable. Set one of them, and the other one to an empty text." -}}
{{- end -}}
{{- if and .podDisruptionBudget.enabled (eq (toString .podDisruptionBudget.minAvailable) (toString .replicas)) -}}
{{- fail (printf "cluster.podDisruptionBudget.minAvailable=%v with cluster.replicas=%v would let no node be drained. Set more replicas, or maxUnavailable=1 and minAvailable to an empty text." .podDisruptionBudget.minAvailable .replicas) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* How to log in to the agents of this release, as JSON: by what they ask for, and what the user did not set. */}}
{{- define "podgpu.cluster.login" -}}
{{- $login := dict -}}
{{- if eq (include "podgpu.scheme" .) "https" -}}{{- $_ := set $login "cluster.scheme" "https" -}}{{- end -}}
{{- $web := include "podgpu.webConfig" . | fromJson -}}
{{- $given := include "podgpu.cluster.given" . | fromJson -}}
{{- if or (hasKey $given "login.token-file") (hasKey $given "login.password-file") -}}
{{- /* One of them is enough, and both contradict each other. */ -}}
{{- else if include "podgpu.asksForTokens" . -}}
{{- $_ := set $login "login.token-file" "/var/run/secrets/kubernetes.io/serviceaccount/token" -}}
{{- else if and $web.basic_auth_users .Values.cluster.login.existingSecret -}}
{{- $_ := set $login "login.password-file" "/etc/podgpu-login/password" -}}
{{- end -}}
{{- if include "podgpu.cluster.loginSecret" . -}}
{{- $_ := set $login "login.ca-file" "/etc/podgpu-login/ca.crt" -}}
{{- if include "podgpu.makesTls" . -}}{{- $_ := set $login "login.server-name" (include "podgpu.tlsName" .) -}}{{- end -}}
{{- end -}}
{{- if .Values.cluster.login.existingSecret -}}
{{- if include "podgpu.asksForCertificates" . -}}
{{- $_ := set $login "login.client-cert-file" "/etc/podgpu-login/tls.crt" -}}
{{- $_ := set $login "login.client-key-file" "/etc/podgpu-login/tls.key" -}}
{{- end -}}
{{- end -}}
{{- toJson $login -}}
{{- end -}}

{{/* What the user set, as JSON: full key to value. */}}
{{- define "podgpu.cluster.given" -}}
{{- $given := dict -}}
{{- include "podgpu.flatten" (dict "from" .Values.cluster.config "above" "" "into" $given) -}}
{{- include "podgpu.addProbePort" (dict "values" .Values.cluster "into" $given) -}}
{{- toJson $given -}}
{{- end -}}

{{/* Agents that are sure to turn it away. */}}
{{- define "podgpu.cluster.refuseLockedOut" -}}
{{- if .Values.cluster.enabled -}}
{{- $given := include "podgpu.cluster.given" . | fromJson -}}
{{- $all := merge $given (include "podgpu.cluster.login" . | fromJson) -}}
{{- $web := include "podgpu.webConfig" . | fromJson -}}
{{- $locked := or $web.basic_auth_users (include "podgpu.asksForTokens" .) (hasKey (include "podgpu.given" . | fromJson) "web.trusted-proxy") -}}
{{- if and $locked (ne (get $all "cluster.scheme") "https") -}}
{{- fail "The agents ask for a login but serve plain HTTP, over which the pod of cluster.enabled sends none. Set tlsServerConfig.existingSecret." -}}
{{- end -}}
{{- if and $locked (not (or (get $all "login.token-file") (get $all "login.password-file"))) -}}
{{- fail "The agents ask for a password, but the pod of cluster.enabled has none. Set cluster.login.existingSecret to a Secret with a password." -}}
{{- end -}}
{{- if and (include "podgpu.asksForCertificates" .) (not (get $all "login.client-cert-file")) -}}
{{- fail "The agents are only for clients with a certificate, but the pod of cluster.enabled has none. Set cluster.login.existingSecret to a Secret with tls.crt and tls.key." -}}
{{- end -}}
{{- if and (eq (default "" (get $all "cluster.via")) "proxy") (or $locked (include "podgpu.asksForCertificates" .)) -}}
{{- fail "The agents ask for a login, which the API server's proxy does not pass on. Leave out cluster.config.cluster.via." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "podgpu.cluster.configFile" -}}
{{- $lines := list -}}
{{- range $key, $value := merge (include "podgpu.cluster.given" . | fromJson) (include "podgpu.cluster.own" . | fromJson) -}}
{{- $lines = append $lines (printf "%s: %s" $key (toJson $value)) -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}
