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

{{/* What other values set, as JSON: the agents of this release, and no others. */}}
{{- define "podgpu.cluster.own" -}}
{{- $selector := list -}}
{{- range $key, $value := include "podgpu.selectorLabels" . | fromYaml -}}
{{- $selector = append $selector (printf "%s=%s" $key $value) -}}
{{- end -}}
{{- $own := dict
    "web.listen-address" (list (printf ":%d" (int .Values.cluster.port)))
    "cluster.selector" (join "," $selector)
    "cluster.namespace" (include "podgpu.namespace" .) -}}
{{- range .Values.cluster.listeners -}}
{{- $_ := set $own "web.listen-address" (append (get $own "web.listen-address") (printf ":%d=%s" (int .port) .dialect)) -}}
{{- end -}}
{{- if .Values.cluster.webConfig -}}{{- $_ := set $own "web.config.file" "/etc/podgpu-web/web-config.yml" -}}{{- end -}}
{{- toJson $own -}}
{{- end -}}

{{/* What the user set, as JSON: full key to value. */}}
{{- define "podgpu.cluster.given" -}}
{{- $into := dict -}}
{{- include "podgpu.flatten" (dict "from" .Values.cluster.config "above" "" "into" $into) -}}
{{- toJson $into -}}
{{- end -}}

{{- define "podgpu.cluster.configFile" -}}
{{- $lines := list -}}
{{- range $key, $value := merge (include "podgpu.cluster.given" . | fromJson) (include "podgpu.cluster.own" . | fromJson) -}}
{{- $lines = append $lines (printf "%s: %s" $key (toJson $value)) -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}
