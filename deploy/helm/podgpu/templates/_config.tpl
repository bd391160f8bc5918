{{/* The agent's configuration file. Its keys are written in full, with dots, so that every key stands alone. */}}

{{/* YAML makes off a boolean and 20000000 a 2e+07; the agent reads words and digits. */}}
{{- define "podgpu.word" -}}
{{- if kindIs "bool" . -}}{{ ternary "on" "off" . }}
{{- else if kindIs "string" . -}}{{ . }}
{{- else if eq (floor .) (float64 .) -}}{{ int64 . }}
{{- else -}}{{ . }}
{{- end -}}
{{- end -}}

{{/* Collects dict "from" a section "above" its path into dict "into". */}}
{{- define "podgpu.flatten" -}}
{{- range $key, $value := .from -}}
{{- $path := ternary $key (printf "%s.%s" $.above $key) (eq $.above "") -}}
{{- if kindIs "map" $value -}}
{{- include "podgpu.flatten" (dict "from" $value "above" $path "into" $.into) -}}
{{- else if hasKey $.into $path -}}
{{- fail (printf "config.%s is given twice, once as a section and once with dots; keep one of them." $path) -}}
{{- else if kindIs "slice" $value -}}
{{- $_ := set $.into $path $value -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $_ := set $.into $path (include "podgpu.word" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* dict "values" with a port for probes "into" the options, unless they name an address for it. */}}
{{- define "podgpu.addProbePort" -}}
{{- if and .values.probePort (not (hasKey .into "web.probe-address")) -}}
{{- $_ := set .into "web.probe-address" (printf ":%d" (int .values.probePort)) -}}
{{- end -}}
{{- end -}}

{{/* What the user set, as JSON: full key to value. */}}
{{- define "podgpu.given" -}}
{{- $into := dict -}}
{{- include "podgpu.flatten" (dict "from" .Values.config "above" "" "into" $into) -}}
{{- include "podgpu.addProbePort" (dict "values" .Values "into" $into) -}}
{{- toJson $into -}}
{{- end -}}

{{/* What other values set, as JSON. */}}
{{- define "podgpu.own" -}}
{{- $own := dict "web.listen-address" (list (printf ":%d" (int .Values.port))) "path.state" "/var/lib/podgpu" -}}
{{- range .Values.listeners -}}
{{- $_ := set $own "web.listen-address" (append (get $own "web.listen-address") (printf ":%d=%s" (int .port) .dialect)) -}}
{{- end -}}
{{- if .Values.customMetrics -}}{{- $_ := set $own "dcgm.collectors" "/etc/podgpu/counters.csv" -}}{{- end -}}
{{- if .Values.ratioFile -}}{{- $_ := set $own "sharing.ratio-file" "/etc/podgpu/ratios" -}}{{- end -}}
{{- if include "podgpu.webConfig" . | ne "{}" -}}{{- $_ := set $own "web.config.file" "/etc/podgpu-web/web-config.yml" -}}{{- end -}}
{{- if or .Values.hostPaths.root .Values.hostPaths.hami -}}{{- $_ := set $own "path.root" "/host" -}}{{- end -}}
{{- if and .Values.switches.enabled (not (hasKey (include "podgpu.given" . | fromJson) "switches")) -}}{{- $_ := set $own "switches" "check" -}}{{- end -}}
{{- toJson $own -}}
{{- end -}}

{{- define "podgpu.configFile" -}}
{{- $lines := list -}}
{{- range $key, $value := merge (include "podgpu.own" . | fromJson) (include "podgpu.given" . | fromJson) -}}
{{- $lines = append $lines (printf "%s: %s" $key (toJson $value)) -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}

{{- define "podgpu.filesConfigMap" -}}
podgpu.yml: |
  {{- include "podgpu.configFile" . | nindent 2 }}
{{- with .Values.customMetrics }}
counters.csv: {{ toJson . }}
{{- end }}
{{- with .Values.ratioFile }}
ratios: {{ toString . | toJson }}
{{- end }}
{{- end -}}

{{/* Whether the API server is asked with the pod's own token: "true" or "". */}}
{{- define "podgpu.asksApi" -}}
{{- if eq (get (include "podgpu.given" . | fromJson) "kube.api" | default "auto") "auto" -}}true{{- end -}}
{{- end -}}

{{/* Whether the API server is asked for the node's pods: "true" or "". */}}
{{- define "podgpu.listsPods" -}}
{{- $given := include "podgpu.given" . | fromJson -}}
{{- if and (include "podgpu.asksApi" .) (ne (get $given "kube.pods" | default "auto") "kubelet") -}}true{{- end -}}
{{- end -}}

{{/* Whether the agent's role has any rule: "true" or "". */}}
{{- define "podgpu.hasRules" -}}
{{- $uses := or (include "podgpu.listsPods" .) .Values.rbac.owners .Values.rbac.resourceClaims (include "podgpu.asksForTokens" .) .Values.rbac.extraRules -}}
{{- if and (include "podgpu.asksApi" .) $uses -}}true{{- end -}}
{{- end -}}

{{/* Whether a socket is mounted that only uid 0 can open, or a capability given that only uid 0 has: "true" or "". */}}
{{- define "podgpu.needsRoot" -}}
{{- if or .Values.hostPaths.podResources .Values.hostPaths.podsApi .Values.switches.enabled -}}true{{- end -}}
{{- end -}}

{{/* Whether the chart, or cert-manager, makes the certificate: "true" or "". */}}
{{- define "podgpu.makesTls" -}}
{{- if or .Values.tlsServerConfig.selfSigned .Values.tlsServerConfig.certManager.enabled -}}true{{- end -}}
{{- end -}}

{{/* The Secret with the agents' certificate; empty where there is none. */}}
{{- define "podgpu.tlsSecret" -}}
{{- if include "podgpu.makesTls" . -}}{{ include "podgpu.fullname" . }}-tls{{- else -}}{{ .Values.tlsServerConfig.existingSecret }}{{- end -}}
{{- end -}}

{{/* The name in a certificate that is made for all agents: that of their Service, whether there is one or not. */}}
{{- define "podgpu.tlsName" -}}
{{- printf "%s.%s.svc" (include "podgpu.fullname" .) (include "podgpu.namespace" .) -}}
{{- end -}}

{{/* The web configuration file, with the certificate of the Secret, as JSON. */}}
{{- define "podgpu.webConfig" -}}
{{- $config := deepCopy .Values.webConfig -}}
{{- if include "podgpu.tlsSecret" . -}}
{{- $files := dict "cert_file" "/etc/podgpu-tls/tls.crt" "key_file" "/etc/podgpu-tls/tls.key" -}}
{{- $_ := set $config "tls_server_config" (merge (default dict $config.tls_server_config) $files) -}}
{{- end -}}
{{- toJson $config -}}
{{- end -}}

{{- define "podgpu.scheme" -}}
{{- ternary "https" "http" (include "podgpu.webConfig" . | fromJson | dig "tls_server_config" dict | empty | not) -}}
{{- end -}}

{{/* Whether tokens of Kubernetes open the pages: "true" or "". */}}
{{- define "podgpu.asksForTokens" -}}
{{- if eq (get (include "podgpu.given" . | fromJson) "web.kube-auth" | default "off") "on" -}}true{{- end -}}
{{- end -}}

{{/* Whether the pages are only for clients with a certificate: "true" or "". */}}
{{- define "podgpu.asksForCertificates" -}}
{{- $tls := include "podgpu.webConfig" . | fromJson | dig "tls_server_config" dict -}}
{{- if eq (default "" $tls.client_auth_type) "RequireAndVerifyClientCert" -}}true{{- end -}}
{{- end -}}

{{/* Whether each of files/privileges.yaml is on, as JSON. Rights at an API server that is not asked are not missed. */}}
{{- define "podgpu.switches" -}}
{{- $asks := eq (include "podgpu.asksApi" .) "true" -}}
{{- $switches := dict
    "hostPID" .Values.hostPID
    "switches.enabled" .Values.switches.enabled
    "config.kube.api" $asks
    "config.kube.pods" (or (not $asks) (eq (include "podgpu.listsPods" .) "true"))
    "config.web.kube-auth" (eq (include "podgpu.asksForTokens" .) "true")
    "rbac.owners" (or (not $asks) .Values.rbac.owners)
    "rbac.resourceClaims" (or (not $asks) .Values.rbac.resourceClaims) -}}
{{- range $name, $on := .Values.hostPaths -}}
{{- $_ := set $switches (printf "hostPaths.%s" $name) $on -}}
{{- end -}}
{{- toJson $switches -}}
{{- end -}}
