{{/* Parts of the agent's pod. */}}

{{- define "podgpu.portName" -}}
{{- default (.dialect | replace "." "-") .name -}}
{{- end -}}

{{/* dict "given" the options that the user set. The port of the address for probes alone; empty where there is none. */}}
{{- define "podgpu.probePort" -}}
{{- with get .given "web.probe-address" -}}
{{- regexReplaceAll "^.*:([0-9]+)(=.*)?$" . "${1}" -}}
{{- end -}}
{{- end -}}

{{- define "podgpu.ports" -}}
- name: http
  containerPort: {{ .Values.port }}
  protocol: TCP
  {{- if .Values.hostNetwork }}
  hostPort: {{ .Values.port }}
  {{- end }}
{{- with include "podgpu.probePort" (dict "given" (include "podgpu.given" . | fromJson)) }}
- name: probe
  containerPort: {{ . }}
  protocol: TCP
  {{- if $.Values.hostNetwork }}
  hostPort: {{ . }}
  {{- end }}
{{- end }}
{{- range .Values.listeners }}
- name: {{ include "podgpu.portName" . }}
  containerPort: {{ .port }}
  protocol: TCP
  {{- with ternary .port .hostPort $.Values.hostNetwork }}
  hostPort: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "podgpu.env" -}}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
- name: HOST_IP
  valueFrom:
    fieldRef:
      fieldPath: status.hostIP
# The NVIDIA runtime injects the driver's library and devices where it finds these.
- name: NVIDIA_VISIBLE_DEVICES
  value: all
- name: NVIDIA_DRIVER_CAPABILITIES
  value: utility
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The host's folders that are switched on, as JSON: a list of name, host, inside and type. */}}
{{- define "podgpu.hostFolders" -}}
{{- $folders := list -}}
{{- $paths := .Values.hostPaths -}}
{{- $kubelet := .Values.kubeletPath | trimSuffix "/" -}}
{{- if $paths.podResources -}}
{{- $folders = append $folders (dict "name" "pod-resources" "host" (printf "%s/pod-resources" $kubelet) "inside" "/var/lib/kubelet/pod-resources" "type" "Directory") -}}
{{- end -}}
{{- if $paths.podsApi -}}
{{- $folders = append $folders (dict "name" "pods-api" "host" (printf "%s/pods-api" $kubelet) "inside" "/var/lib/kubelet/pods-api" "type" "Directory") -}}
{{- end -}}
{{- if $paths.podLogs -}}
{{- range $each := list "pods" "containers" -}}
{{- $path := printf "/var/log/%s" $each -}}
{{- $folders = append $folders (dict "name" (printf "log-%s" $each) "host" $path "inside" $path "type" "Directory") -}}
{{- end -}}
{{- end -}}
{{- if $paths.root -}}
{{- $folders = append $folders (dict "name" "root" "host" "/" "inside" "/host" "type" "Directory") -}}
{{- else if $paths.hami -}}
{{- /* Only some nodes may have HAMi: its folder is made where it is missing, or the pod would not start. */ -}}
{{- $folders = append $folders (dict "name" "hami" "host" "/usr/local/vgpu/containers" "inside" "/host/usr/local/vgpu/containers" "type" "DirectoryOrCreate") -}}
{{- end -}}
{{- toJson $folders -}}
{{- end -}}

{{- define "podgpu.volumeMounts" -}}
- name: config
  mountPath: /etc/podgpu
  readOnly: true
- name: state
  mountPath: /var/lib/podgpu
{{- if include "podgpu.webConfig" . | ne "{}" }}
- name: web-config
  mountPath: /etc/podgpu-web
  readOnly: true
{{- end }}
{{- if include "podgpu.tlsSecret" . }}
- name: web-tls
  mountPath: /etc/podgpu-tls
  readOnly: true
{{- end }}
{{- range include "podgpu.hostFolders" . | fromJsonArray }}
- name: {{ .name }}
  mountPath: {{ .inside }}
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "podgpu.volumes" -}}
- name: config
  configMap:
    name: {{ include "podgpu.fullname" . }}
- name: state
{{- if and .Values.stateHostPath .Values.hostPaths.podResources }}
  hostPath:
    path: {{ .Values.stateHostPath }}
    type: DirectoryOrCreate
{{- else }}
  emptyDir:
    sizeLimit: 64Mi
{{- end }}
{{- if include "podgpu.webConfig" . | ne "{}" }}
- name: web-config
  secret:
    secretName: {{ include "podgpu.fullname" . }}-web
{{- end }}
{{- with include "podgpu.tlsSecret" . }}
- name: web-tls
  secret:
    secretName: {{ . }}
{{- end }}
{{- range include "podgpu.hostFolders" . | fromJsonArray }}
- name: {{ .name }}
  hostPath:
    path: {{ .host }}
    type: {{ .type }}
{{- end }}
{{- range .Values.extraHostVolumes }}
- name: {{ .name }}
  hostPath:
    path: {{ .hostPath }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "podgpu.podSecurityContext" -}}
{{- $own := dict "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.podSecurityContext)) -}}
{{- end -}}

{{- define "podgpu.securityContext" -}}
{{- $own := dict
    "allowPrivilegeEscalation" false
    "privileged" false
    "readOnlyRootFilesystem" true
    "capabilities" (dict "drop" (list "ALL")) -}}
{{- if .Values.switches.enabled -}}
{{- $_ := set $own "capabilities" (dict "drop" (list "ALL") "add" (list "SYS_ADMIN")) -}}
{{- end -}}
{{- if include "podgpu.needsRoot" . -}}
{{- $own = merge $own (dict "runAsUser" 0 "runAsGroup" 0) -}}
{{- else -}}
{{- $own = merge $own (dict "runAsNonRoot" true "runAsUser" 65534 "runAsGroup" 65534) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.securityContext)) -}}
{{- end -}}

{{/* Nodes with a GPU, by the label of either discovery. */}}
{{- define "podgpu.gpuNodes" -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - key: nvidia.com/gpu.present
            operator: In
            values: ["true"]
      {{- range $class := list "10de" "0302_10de" "0300_10de" }}
      - matchExpressions:
          - key: feature.node.kubernetes.io/pci-{{ $class }}.present
            operator: In
            values: ["true"]
      {{- end }}
{{- end -}}

{{/* dict "root" $ "path" of the page "settings" from the values. Probes need no login and no certificate. */}}
{{- define "podgpu.probe" -}}
httpGet:
  path: {{ .path }}
  port: {{ ternary "probe" "http" (include "podgpu.probePort" (dict "given" (include "podgpu.given" .root | fromJson)) | ne "") }}
  scheme: {{ include "podgpu.scheme" .root | upper }}
{{- with .settings }}
{{ toYaml . }}
{{- end }}
{{- end -}}
