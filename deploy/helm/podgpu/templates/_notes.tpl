{{- define "podgpu.notes" -}}
podgpu runs on {{ if .Values.affinity }}the nodes your affinity chooses{{ else if .Values.gpuNodesOnly }}every node with a GPU label{{ else }}every node that tolerations and nodeSelector allow{{ end }}.
{{- if and .Values.gpuNodesOnly (not .Values.affinity) }}
If there are no pods, no node has a label of GPU feature discovery or node feature discovery: set gpuNodesOnly=false, and a nodeSelector.
{{- end }}

Look at one agent's page:
  kubectl -n {{ include "podgpu.namespace" . }} port-forward ds/{{ include "podgpu.fullname" . }} {{ .Values.port }}
  then open {{ include "podgpu.scheme" . }}://127.0.0.1:{{ .Values.port }}/

Ask it what works and what does not:
  kubectl -n {{ include "podgpu.namespace" . }} exec ds/{{ include "podgpu.fullname" . }} -- /usr/bin/podgpu doctor --config.file=/etc/podgpu/podgpu.yml
{{- $scraped := false }}
{{- range $each := list "podMonitor" "serviceMonitor" "vmPodScrape" "clusterPodMonitoring" "scrapeAnnotations" }}
{{- if (get $.Values $each).enabled }}{{- $scraped = true }}{{- end }}
{{- end }}
{{- if not $scraped }}

Nothing scrapes the agents yet. Switch on one of podMonitor, serviceMonitor, vmPodScrape, clusterPodMonitoring or
scrapeAnnotations; a scrape job of your own needs honor_labels: true.
{{- end }}
{{- if eq (include "podgpu.scheme" .) "https" }}
{{- range $each := list "podMonitor" "serviceMonitor" "vmPodScrape" "clusterPodMonitoring" }}
{{- $monitor := get $.Values $each }}
{{- if and $monitor.enabled (not (or $monitor.tlsConfig $monitor.tls (and (include "podgpu.makesTls" $) (hasKey $monitor "tlsConfig")))) }}

WARNING: the pages are served by TLS, and {{ $each }} does not say whom to trust. A scrape goes to an address and not to a
name, so set the certificate's name as serverName, and its authority.
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.cluster.enabled }}

The page of the whole cluster:
  kubectl -n {{ include "podgpu.namespace" . }} port-forward deploy/{{ include "podgpu.cluster.fullname" . }} {{ .Values.cluster.port }}
{{- if gt (int .Values.cluster.replicas) 1 }}

WARNING: cluster.replicas is {{ .Values.cluster.replicas }}. Each replica serves the same series: do not scrape them all, or sums count everything
{{ .Values.cluster.replicas }} times.
{{- end }}
{{- if and (or .Values.cluster.ingress.enabled .Values.cluster.httpRoute.enabled) (not (include "podgpu.cluster.asksForLogin" .)) }}

WARNING: whoever reaches the page from outside sees every namespace and pod that holds a GPU. Let a proxy ask for a login
(docs/serving.md#behind-a-single-sign-on), or set cluster.webConfig.
{{- end }}
{{- end }}
{{- if .Values.priorityClassName | hasPrefix "system-" }}

If the DaemonSet has no pods, and its events speak of quota, this namespace may not use {{ .Values.priorityClassName }}: allow it by a ResourceQuota
(docs/install.md), or set priorityClassName to an empty text.
{{- end }}
{{- if or .Values.hostPID .Values.hostNetwork (include "podgpu.hostFolders" . | ne "[]") }}

hostPID and host paths need a namespace that allows privileged pods:
  kubectl label namespace {{ include "podgpu.namespace" . }} pod-security.kubernetes.io/enforce=privileged
{{- end }}
{{- $switches := include "podgpu.switches" . | fromJson }}
{{- range .Files.Get "files/privileges.yaml" | fromYamlArray }}
{{- if and .default (not (get $switches .value)) }}

WARNING: {{ .value }} is off. Without it {{ .lost }}.
{{- end }}
{{- end }}
{{- end -}}
