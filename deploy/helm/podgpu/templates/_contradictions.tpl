{{/* Values that contradict each other end the rendering with a sentence that says why and what to do. */}}

{{- define "podgpu.refuseContradictions" -}}
{{- $given := include "podgpu.given" . | fromJson -}}
{{- include "podgpu.refuseOwnedKeys" (dict "given" $given) -}}
{{- include "podgpu.refuseTwoScrapers" . -}}
{{- include "podgpu.refuseClashingListeners" . -}}
{{- include "podgpu.refuseBlindness" (dict "root" . "given" $given) -}}
{{- include "podgpu.refuseUnreachableDcgm" (dict "given" $given) -}}
{{- end -}}

{{/* Options that other values set. */}}
{{- define "podgpu.refuseOwnedKeys" -}}
{{- $owners := dict
    "web.listen-address" "port and listeners" "web.config.file" "webConfig" "dcgm.collectors" "customMetrics"
    "sharing.ratio-file" "ratioFile" "path.kubelet" "kubeletPath" "path.logs" "hostPaths.podLogs"
    "path.root" "hostPaths.root" "path.procfs" "hostPID" "node-name" "the node's own name, in NODE_NAME" -}}
{{- range $key, $owner := $owners -}}
{{- if hasKey $.given $key -}}
{{- fail (printf "config.%s cannot be set: the chart sets it from %s. Remove it from config." $key $owner) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "podgpu.refuseTwoScrapers" -}}
{{- $on := list -}}
{{- range $each := list "podMonitor" "serviceMonitor" "vmPodScrape" "clusterPodMonitoring" "scrapeAnnotations" -}}
{{- if (get $.Values $each).enabled -}}{{- $on = append $on (printf "%s.enabled" $each) -}}{{- end -}}
{{- end -}}
{{- if eq (toString (get .Values.podAnnotations "prometheus.io/scrape")) "true" -}}
{{- $on = append $on "podAnnotations with prometheus.io/scrape" -}}
{{- end -}}
{{- if gt (len $on) 1 -}}
{{- fail (printf "%s would each have the agents scraped, so every sample would be taken twice. Keep one." (join " and " $on)) -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (not .Values.service.enabled) -}}
{{- fail "serviceMonitor.enabled needs a Service to find: set service.enabled=true, or use podMonitor, which needs none." -}}
{{- end -}}
{{- end -}}

{{- define "podgpu.refuseClashingListeners" -}}
{{- $ports := list (int .Values.port) -}}
{{- $names := list "http" -}}
{{- range .Values.listeners -}}
{{- $name := include "podgpu.portName" . -}}
{{- if has (int .port) $ports -}}
{{- fail (printf "listeners: port %d is taken twice. Give each page a port of its own." (int .port)) -}}
{{- end -}}
{{- if has $name $names -}}
{{- fail (printf "listeners: two ports are named %q. Give one of them another name." $name) -}}
{{- end -}}
{{- $ports = append $ports (int .port) -}}
{{- $names = append $names $name -}}
{{- end -}}
{{- end -}}

{{/* Something is wanted whose only source is switched off. */}}
{{- define "podgpu.refuseBlindness" -}}
{{- $values := .root.Values -}}
{{- if and (eq (get .given "series.processes") "on") (not $values.hostPID) -}}
{{- fail "config.series.processes=on wants a series for each process, but without hostPID the driver shows the agent none. Set hostPID=true or leave processes off." -}}
{{- end -}}
{{- if and $values.ratioFile (not $values.hostPaths.podResources) -}}
{{- fail "ratioFile divides what device plugins gave to containers, but without hostPaths.podResources the agent does not learn what they gave. Set hostPaths.podResources=true or remove ratioFile." -}}
{{- end -}}
{{- if and $values.hostPaths.podsApi (not $values.hostPaths.podResources) -}}
{{- fail "hostPaths.podsApi without hostPaths.podResources shows the agent half of the kubelet's folder, and it would report the other half as broken. Set hostPaths.podResources=true." -}}
{{- end -}}
{{- if and (eq (get .given "kube.api") "off") (not $values.hostPaths.podResources) -}}
{{- fail "hostPaths.podResources=false and config.kube.api=off leave the agent no sign of Kubernetes, and it would take the node for a machine without it. Keep one of the two." -}}
{{- end -}}
{{- $uid := coalesce $values.securityContext.runAsUser $values.podSecurityContext.runAsUser -}}
{{- $nonRoot := or $values.securityContext.runAsNonRoot $values.podSecurityContext.runAsNonRoot -}}
{{- if and (include "podgpu.needsRoot" .root) (or $uid $nonRoot) -}}
{{- fail "runAsUser or runAsNonRoot keeps the agent from uid 0, but only uid 0 can open the kubelet's sockets. Set hostPaths.podResources=false and hostPaths.podsApi=false, or leave the user to the chart." -}}
{{- end -}}
{{- end -}}

{{- define "podgpu.refuseUnreachableDcgm" -}}
{{- $reads := contains "dcgm" (get .given "source") -}}
{{- if and $reads (eq (get .given "kube.api") "off") (not (get .given "dcgm.url")) -}}
{{- fail "config.source reads a dcgm-exporter that the API server finds, but config.kube.api is off. Set config.dcgm.url, or let the API server be asked." -}}
{{- end -}}
{{- end -}}
