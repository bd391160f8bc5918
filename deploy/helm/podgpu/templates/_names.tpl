{{/* Names and labels. */}}

{{- define "podgpu.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "podgpu.fullname" -}}
{{- $name := include "podgpu.name" . -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "podgpu.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "podgpu.selectorLabels" -}}
app.kubernetes.io/name: {{ include "podgpu.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end -}}

{{- define "podgpu.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "podgpu.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: podgpu
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
metadata of an object in the release's namespace, or in another: dict "root" $ "also" labels "notes" annotations, and
"suffix" of the name and "namespace" where they differ
*/}}
{{- define "podgpu.metadata" -}}
name: {{ include "podgpu.fullname" .root }}{{ with .suffix }}-{{ . }}{{ end }}
namespace: {{ default (include "podgpu.namespace" .root) .namespace }}
labels:
  {{- include "podgpu.labels" .root | nindent 2 }}
  {{- with .also }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .notes }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "podgpu.serviceAccountName" -}}
{{- $own := ternary (include "podgpu.fullname" .) "default" .Values.serviceAccount.create -}}
{{- default $own .Values.serviceAccount.name -}}
{{- end -}}

{{- define "podgpu.image" -}}
{{- $registry := default .Values.image.registry .Values.global.imageRegistry -}}
{{- $name := ternary (printf "%s/%s" $registry .Values.image.repository) .Values.image.repository (ne $registry "") -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $name .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}
