{{/* Bills by themselves. */}}

{{- define "podgpu.report.fullname" -}}
{{- printf "%s-report" (include "podgpu.fullname" .) -}}
{{- end -}}

{{- define "podgpu.report.selectorLabels" -}}
app.kubernetes.io/name: {{ include "podgpu.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: report
{{- end -}}

{{- define "podgpu.report.labels" -}}
{{- include "podgpu.labels" . | replace "app.kubernetes.io/component: agent" "app.kubernetes.io/component: report" -}}
{{- end -}}

{{- define "podgpu.report.metadata" -}}
name: {{ include "podgpu.report.fullname" . }}
namespace: {{ include "podgpu.namespace" . }}
labels:
  {{- include "podgpu.report.labels" . | nindent 2 }}
{{- end -}}

{{- define "podgpu.report.hasPrices" -}}
{{- if or .Values.report.prices .Values.report.existingPrices -}}yes{{- end -}}
{{- end -}}

{{/* What the user set, as JSON: full key to value. */}}
{{- define "podgpu.report.given" -}}
{{- $given := dict -}}
{{- include "podgpu.flatten" (dict "from" .Values.report.config "above" "" "into" $given) -}}
{{- toJson $given -}}
{{- end -}}

{{/* The options of `podgpu report`, as its configuration file has them. */}}
{{- define "podgpu.report.configFile" -}}
{{- $given := include "podgpu.report.given" . | fromJson -}}
{{- $_ := set $given "prometheus.url" .Values.report.store -}}
{{- if include "podgpu.report.hasPrices" . -}}{{- $_ := set $given "price" "/etc/podgpu-prices/prices.yaml" -}}{{- end -}}
{{- $lines := list -}}
{{- range $key, $value := $given -}}
{{- $lines = append $lines (printf "%s: %s" $key (toJson $value)) -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}

{{- define "podgpu.report.refuse" -}}
{{- with .Values.report -}}
{{- if .schedule -}}
{{- if not .store -}}
{{- fail "report.schedule makes bills of what a store has, but report.store is empty. Set it to the address of Prometheus, Thanos, VictoriaMetrics or Mimir." -}}
{{- end -}}
{{- if and .prices .existingPrices -}}
{{- fail "report.prices and report.existingPrices each have prices. Keep one." -}}
{{- end -}}
{{- if and (eq .basis "energy") .prices (not .prices.kwh) -}}
{{- fail "report.basis=energy needs a price of energy. Set report.prices.kwh." -}}
{{- end -}}
{{- $given := include "podgpu.report.given" $ | fromJson -}}
{{- range $key, $owner := dict "prometheus.url" "report.store" "price" "report.prices" -}}
{{- if hasKey $given $key -}}
{{- fail (printf "report.config.%s cannot be set: the chart sets it from %s. Remove it from report.config." $key $owner) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
