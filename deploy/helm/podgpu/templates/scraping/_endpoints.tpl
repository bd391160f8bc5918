{{/* Ports to scrape, as JSON: podgpu's own page, and the old ones that ask for it. */}}
{{- define "podgpu.scrapedPorts" -}}
{{- $ports := list "http" -}}
{{- range .Values.listeners -}}
{{- if .scrape -}}{{- $ports = append $ports (include "podgpu.portName" .) -}}{{- end -}}
{{- end -}}
{{- toJson $ports -}}
{{- end -}}

{{/*
The pods on a page are those that use GPUs, not the agent's. So the agent's own names are dropped before they get in the
way, and nothing is called exported_pod, even where a Prometheus overrides honorLabels.
*/}}
{{- define "podgpu.relabelings" -}}
- action: labeldrop
  regex: (namespace|pod|container|service|endpoint)
{{/* The operators would add the default action themselves, and tools that compare would see a difference for ever. */}}
- action: replace
  sourceLabels: [__meta_kubernetes_pod_node_name]
  targetLabel: node
- action: replace
  targetLabel: job
  replacement: {{ include "podgpu.scrapeJob" . }}
{{- end -}}

{{/*
By its job, bills tell the agents' pages from anybody's. It has a slash, which no label of a pod may have, so that no pod
gets it by a monitor that takes the job from a label.
*/}}
{{- define "podgpu.scrapeJob" -}}
{{- printf "%s/%s" (include "podgpu.namespace" .) (include "podgpu.fullname" .) -}}
{{- end -}}

{{/* Options of what reads a store, as JSON: whom to believe, where a monitor of this release names the job. */}}
{{- define "podgpu.believed" -}}
{{- if or .Values.podMonitor.enabled .Values.serviceMonitor.enabled .Values.vmPodScrape.enabled -}}
{{- toJson (dict "prometheus.job" (list (include "podgpu.scrapeJob" .))) -}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{/* dict "root" $ "monitor" values: whom it trusts, as JSON. Of a certificate that was made here, that is known. */}}
{{- define "podgpu.trust" -}}
{{- $made := dict -}}
{{- if include "podgpu.makesTls" .root -}}
{{- $made = dict "ca" (dict "secret" (dict "name" (include "podgpu.tlsSecret" .root) "key" "ca.crt")) "serverName" (include "podgpu.tlsName" .root) -}}
{{- end -}}
{{- toJson (merge (deepCopy .monitor.tlsConfig) $made) -}}
{{- end -}}

{{/* dict "root" $ "monitor" values "relabel" and "metricRelabel": what the two settings are called there */}}
{{- define "podgpu.endpoints" -}}
{{- range $index, $port := include "podgpu.scrapedPorts" .root | fromJsonArray }}
{{- if $index }}{{ "\n" }}{{ end -}}
- port: {{ $port }}
  path: /metrics
  scheme: {{ include "podgpu.scheme" $.root }}
  interval: {{ $.monitor.interval }}
  scrapeTimeout: {{ $.monitor.scrapeTimeout }}
  honorLabels: {{ $.monitor.honorLabels }}
  {{ $.relabel }}:
    {{- include "podgpu.relabelings" $.root | nindent 4 }}
    {{- with get $.monitor $.relabel }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with get $.monitor $.metricRelabel }}
  {{ $.metricRelabel }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "podgpu.trust" $ | fromJson }}
  tlsConfig:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- range $each := list "basicAuth" "authorization" }}
  {{- with get $.monitor $each }}
  {{ $each }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with $.monitor.bearerTokenFile }}
  bearerTokenFile: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The rest of a monitor's spec: dict "root" $ "monitor" values */}}
{{- define "podgpu.monitored" -}}
selector:
  matchLabels:
    {{- include "podgpu.selectorLabels" .root | nindent 4 }}
namespaceSelector:
  matchNames: [{{ include "podgpu.namespace" .root }}]
{{- with .monitor.sampleLimit }}
sampleLimit: {{ . }}
{{- end }}
{{- end -}}
