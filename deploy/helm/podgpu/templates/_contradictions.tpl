{{/* Values that contradict each other end the rendering with a sentence that says why and what to do. */}}

{{- define "podgpu.refuseContradictions" -}}
{{- $given := include "podgpu.given" . | fromJson -}}
{{- include "podgpu.refuseOutOfRange" (dict "root" . "key" "config" "given" $given) -}}
{{- include "podgpu.refuseOutOfRange" (dict "root" . "key" "cluster.config" "given" (include "podgpu.cluster.given" . | fromJson)) -}}
{{- range $job := list "report" "fit" -}}
{{- include "podgpu.refuseOutOfRange" (dict "root" $ "key" (printf "%s.config" $job) "given" (include "podgpu.job.given" (dict "root" $ "job" $job) | fromJson)) -}}
{{- end -}}
{{- include "podgpu.refuseOwnedKeys" (dict "given" $given) -}}
{{- include "podgpu.refuseTwoScrapers" . -}}
{{- include "podgpu.refuseClashingListeners" . -}}
{{- include "podgpu.refuseUnreachableProbes" (dict "key" "config" "given" $given "values" .Values) -}}
{{- include "podgpu.refuseUnreachableProbes" (dict "key" "cluster.config" "given" (include "podgpu.cluster.given" . | fromJson) "values" .Values.cluster) -}}
{{- include "podgpu.refuseIdleRules" . -}}
{{- include "podgpu.refuseBlindness" (dict "root" . "given" $given) -}}
{{- include "podgpu.refuseUnreachableDcgm" (dict "given" $given) -}}
{{- include "podgpu.refuseHalfTls" . -}}
{{- include "podgpu.refuseStrangePids" . -}}
{{- include "podgpu.refuseHostNetwork" . -}}
{{- include "podgpu.refuseLostTokens" (dict "root" . "given" $given) -}}
{{- include "podgpu.refuseLockedOutScrapers" . -}}
{{- include "podgpu.cluster.refuse" . -}}
{{- include "podgpu.cluster.refuseLockedOut" . -}}
{{- include "podgpu.report.refuse" . -}}
{{- include "podgpu.job.refuse" (dict "root" . "job" "fit" "what" "advice") -}}
{{- end -}}

{{/* dict "kind" DURATION, SIZE or NUMBER and "text" such as 500ms, whose form the schema has checked: the number in base units. */}}
{{- define "podgpu.amount" -}}
{{- $scales := dict
    "DURATION" (dict "" 1.0 "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 "d" 86400.0 "w" 604800.0)
    "SIZE" (dict "" 1.0 "KiB" 1024.0 "MiB" 1048576.0 "GiB" 1073741824.0)
    "NUMBER" (dict "" 1.0) -}}
{{- $number := regexFind "^[0-9.]+" .text -}}
{{- mulf (float64 $number) (get (get $scales .kind) (trimPrefix $number .text)) -}}
{{- end -}}

{{/* Texts such as 500ms, which a schema cannot compare. dict "root" $ "key" of the options "given" */}}
{{- define "podgpu.refuseOutOfRange" -}}
{{- range $name, $range := .root.Files.Get "files/ranges.yaml" | fromYaml -}}
{{- with get $.given $name -}}
{{- $amount := include "podgpu.amount" (dict "kind" $range.kind "text" .) | float64 -}}
{{- $least := include "podgpu.amount" (dict "kind" $range.kind "text" $range.least) | float64 -}}
{{- $most := include "podgpu.amount" (dict "kind" $range.kind "text" $range.most) | float64 -}}
{{- if or (lt $amount $least) (gt $amount $most) -}}
{{- fail (printf "%s.%s: %s is out of range; choose %s to %s." $.key $name . $range.least $range.most) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Options that other values set. */}}
{{- define "podgpu.refuseOwnedKeys" -}}
{{- $owners := dict
    "web.listen-address" "port and listeners" "web.config.file" "webConfig" "dcgm.collectors" "customMetrics"
    "sharing.ratio-file" "ratioFile" "path.kubelet" "kubeletPath" "path.logs" "hostPaths.podLogs"
    "path.state" "stateHostPath"
    "path.root" "hostPaths.root" "path.procfs" "hostPID" "node-name" "the node's own name, in NODE_NAME" -}}
{{- range $key, $owner := $owners -}}
{{- if hasKey $.given $key -}}
{{- fail (printf "config.%s cannot be set: the chart sets it from %s. Remove it from config." $key $owner) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "podgpu.refuseStrangePids" -}}
{{- if and .Values.switches.enabled (not .Values.hostPID) -}}
{{- fail "switches.enabled needs hostPID: the log names processes as the node does. Set hostPID to true, or switches.enabled to false." -}}
{{- end -}}
{{- end -}}

{{/* What does not work with the node's own network. */}}
{{- define "podgpu.refuseHostNetwork" -}}
{{- if .Values.hostNetwork -}}
{{- if .Values.networkPolicy.enabled -}}
{{- fail "networkPolicy.enabled has no effect on pods with hostNetwork. Switch one of them off, and limit who reaches the ports with webConfig or the node's firewall." -}}
{{- end -}}
{{- range .Values.listeners -}}
{{- if and .hostPort (ne (int .hostPort) (int .port)) -}}
{{- fail (printf "listeners: with hostNetwork, port %d cannot be port %d of the node. Give hostPort and port the same number, or leave hostPort out." (int .port) (int .hostPort)) -}}
{{- end -}}
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

{{/* The kubelet asks at the pod's address. dict "key" of the options "given" and the "values" with the other ports. */}}
{{- define "podgpu.refuseUnreachableProbes" -}}
{{- $port := include "podgpu.probePort" . -}}
{{- $address := get .given "web.probe-address" | default "" -}}
{{- if and $address (not (regexMatch "^(0\\.0\\.0\\.0|\\[::\\])?:[1-9][0-9]*(=|$)" $address)) -}}
{{- fail (printf "%s.web.probe-address=%s is not where the kubelet's probes ask: they come to the pod's address, at a port that is known. Write :PORT, such as :19401." .key $address) -}}
{{- end -}}
{{- $taken := list (toString (int .values.port)) -}}
{{- $names := list -}}
{{- range .values.listeners -}}
{{- $taken = append $taken (toString (int .port)) -}}
{{- $names = append $names (include "podgpu.portName" .) -}}
{{- end -}}
{{- if has $port $taken -}}
{{- fail (printf "%s.web.probe-address=%s: the port is taken twice. Give probes a port of their own, with probePort." .key $address) -}}
{{- end -}}
{{- if and $port (has "probe" $names) -}}
{{- fail "listeners: a port is named \"probe\", as that of web.probe-address is. Give it another name." -}}
{{- end -}}
{{- end -}}

{{/* Something is wanted whose only source is switched off. */}}
{{- define "podgpu.refuseBlindness" -}}
{{- $values := .root.Values -}}
{{- if and (eq (get .given "series.level") "process") (not $values.hostPID) -}}
{{- fail "config.series.level=process wants a series for each process, but without hostPID the driver shows the agent none. Set hostPID=true or choose another level." -}}
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
{{- if and (eq (get .given "kube.pods") "kubelet") (not (or $values.hostPaths.podsApi $values.hostPaths.podLogs)) -}}
{{- fail "config.kube.pods=kubelet has the kubelet list pods, but neither hostPaths.podsApi nor hostPaths.podLogs lets the agent read its list. Set one of them." -}}
{{- end -}}
{{- $uid := coalesce $values.securityContext.runAsUser $values.podSecurityContext.runAsUser -}}
{{- $nonRoot := or $values.securityContext.runAsNonRoot $values.podSecurityContext.runAsNonRoot -}}
{{- if and (include "podgpu.needsRoot" .root) (or $uid $nonRoot) -}}
{{- fail "runAsUser or runAsNonRoot keeps the agent from uid 0, but only uid 0 can open the kubelet's sockets. Set hostPaths.podResources=false and hostPaths.podsApi=false, or leave the user to the chart." -}}
{{- end -}}
{{- end -}}

{{- define "podgpu.refuseUnreachableDcgm" -}}
{{- $reads := contains "dcgm" (get .given "source") -}}
{{- if and $reads (eq (get .given "kube.pods") "kubelet") (not (get .given "dcgm.url")) -}}
{{- fail "config.source reads a dcgm-exporter that the API server finds among the pods, but config.kube.pods is kubelet. Set config.dcgm.url, or let the API server list pods." -}}
{{- end -}}
{{- if and $reads (eq (get .given "kube.api") "off") (not (get .given "dcgm.url")) -}}
{{- fail "config.source reads a dcgm-exporter that the API server finds, but config.kube.api is off. Set config.dcgm.url, or let the API server be asked." -}}
{{- end -}}
{{- end -}}

{{- define "podgpu.refuseIdleRules" -}}
{{- $wanted := .Values.defaultRules -}}
{{- if and .Values.prometheusRule.enabled .Values.vmRule.enabled -}}
{{- fail "prometheusRule.enabled and vmRule.enabled would each load the rules, so every alert would be sent twice: the operator of VictoriaMetrics reads both. Keep one." -}}
{{- end -}}
{{- $names := list -}}
{{- range $name, $_ := $wanted.rules -}}
{{- range (include "podgpu.ruleFile" (dict "root" $ "name" $name) | fromYaml).groups -}}
{{- range .rules -}}{{- $names = append $names (coalesce .alert .record) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $_ := $wanted.disabled -}}
{{- if not (has $name $names) -}}
{{- fail (printf "defaultRules.disabled: there is no rule %s. docs/alerts.md lists them." $name) -}}
{{- end -}}
{{- end -}}
{{- if or .Values.prometheusRule.enabled .Values.vmRule.enabled -}}
{{- if and $wanted.rules.accounting (not $wanted.rules.use) -}}
{{- fail "defaultRules.rules.accounting adds up what defaultRules.rules.use records, but use is off. Switch both on or both off." -}}
{{- end -}}
{{- if eq (include "podgpu.ruleGroups" .) "[]" -}}
{{- fail "prometheusRule.enabled or vmRule.enabled asks for rules, but every group of defaultRules.rules is off. Switch one on." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the agent would refuse when it starts. */}}
{{- define "podgpu.refuseHalfTls" -}}
{{- $given := default dict .Values.webConfig.tls_server_config -}}
{{- $tls := include "podgpu.webConfig" . | fromJson | dig "tls_server_config" dict -}}
{{- $demand := default "NoClientCert" $tls.client_auth_type -}}
{{- $sources := list -}}
{{- with .Values.tlsServerConfig -}}
{{- if .existingSecret -}}{{- $sources = append $sources "tlsServerConfig.existingSecret" -}}{{- end -}}
{{- if .selfSigned -}}{{- $sources = append $sources "tlsServerConfig.selfSigned" -}}{{- end -}}
{{- if .certManager.enabled -}}{{- $sources = append $sources "tlsServerConfig.certManager.enabled" -}}{{- end -}}
{{- if and .certManager.enabled (not .certManager.issuerRef.name) -}}
{{- fail "tlsServerConfig.certManager.enabled needs an issuer. Set tlsServerConfig.certManager.issuerRef.name, and its kind." -}}
{{- end -}}
{{- end -}}
{{- if or $given.cert_file $given.key_file -}}{{- $sources = append $sources "webConfig.tls_server_config" -}}{{- end -}}
{{- if gt (len $sources) 1 -}}
{{- fail (printf "%s each name a certificate. Keep one." (join " and " $sources)) -}}
{{- end -}}
{{- if and $tls (not (and $tls.cert_file $tls.key_file)) -}}
{{- fail "webConfig.tls_server_config needs a certificate: set tlsServerConfig.existingSecret, or give both cert_file and key_file." -}}
{{- end -}}
{{- if has $demand (list "RequestClientCert" "RequireAnyClientCert") -}}
{{- fail (printf "webConfig.tls_server_config.client_auth_type=%s would accept certificates that no authority has signed. Set RequireAndVerifyClientCert." $demand) -}}
{{- end -}}
{{- if ne (eq $demand "NoClientCert") (empty $tls.client_ca_file) -}}
{{- fail "webConfig.tls_server_config: client_ca_file goes together with client_auth_type=VerifyClientCertIfGiven or RequireAndVerifyClientCert. Set both or none." -}}
{{- end -}}
{{- end -}}

{{- define "podgpu.refuseLostTokens" -}}
{{- $asks := include "podgpu.asksForTokens" .root -}}
{{- if and $asks (eq (get .given "kube.api") "off") -}}
{{- fail "config.web.kube-auth=on has the API server check tokens, but config.kube.api is off. Let the API server be asked, or leave kube-auth off." -}}
{{- end -}}
{{- if and .root.Values.rbac.readers (not $asks) -}}
{{- fail "rbac.readers lists who may read the pages, but config.web.kube-auth is off and nobody is asked. Set config.web.kube-auth=on or remove rbac.readers." -}}
{{- end -}}
{{- end -}}

{{/* A scraper that is sure to be turned away. */}}
{{- define "podgpu.refuseLockedOutScrapers" -}}
{{- $web := include "podgpu.webConfig" . | fromJson -}}
{{- $locked := or $web.basic_auth_users (include "podgpu.asksForTokens" .) (hasKey (include "podgpu.given" . | fromJson) "web.trusted-proxy") -}}
{{- $tls := dig "tls_server_config" dict $web -}}
{{- range $name := list "podMonitor" "serviceMonitor" "vmPodScrape" "clusterPodMonitoring" -}}
{{- $monitor := get $.Values $name -}}
{{- $trust := ternary "tls" "tlsConfig" (eq $name "clusterPodMonitoring") -}}
{{- $shown := get $monitor $trust -}}
{{- if $monitor.enabled -}}
{{- if and $locked (not (or $monitor.basicAuth $monitor.authorization $monitor.bearerTokenFile)) -}}
{{- fail (printf "The pages ask for a login, but %s has none, so every scrape would be answered with 401. Set %s.basicAuth or %s.authorization." $name $name $name) -}}
{{- end -}}
{{- if and (include "podgpu.asksForCertificates" $) (not (or $shown.cert $shown.certFile)) -}}
{{- fail (printf "The pages are only for clients with a certificate, but %s has none, so every scrape would be answered with 403. Set %s.%s.cert and its key." $name $name $trust) -}}
{{- end -}}
{{- if and $shown (not $tls) -}}
{{- fail (printf "%s.%s is for TLS, but the agents serve plain HTTP. Set tlsServerConfig.existingSecret, or remove %s.%s." $name $trust $name $trust) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
