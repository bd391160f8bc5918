{{/*
Jobs that ask a store by themselves: bills, and what would fit. Each is called with a dict: `root`, and the `job` that names its
values, its command and its component.
*/}}

{{- define "podgpu.job.fullname" -}}
{{- printf "%s-%s" (include "podgpu.fullname" .root) .job -}}
{{- end -}}

{{- define "podgpu.job.selectorLabels" -}}
app.kubernetes.io/name: {{ include "podgpu.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .job }}
{{- end -}}

{{- define "podgpu.job.labels" -}}
{{- include "podgpu.labels" .root | replace "app.kubernetes.io/component: agent" (printf "app.kubernetes.io/component: %s" .job) -}}
{{- end -}}

{{- define "podgpu.job.metadata" -}}
name: {{ include "podgpu.job.fullname" . }}
namespace: {{ include "podgpu.namespace" .root }}
labels:
  {{- include "podgpu.job.labels" . | nindent 2 }}
{{- end -}}

{{- define "podgpu.job.hasPrices" -}}
{{- with get .root.Values .job -}}
{{- if or .prices .existingPrices -}}yes{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the user set, as JSON: full key to value. */}}
{{- define "podgpu.job.given" -}}
{{- $given := dict -}}
{{- include "podgpu.flatten" (dict "from" (get .root.Values .job).config "above" "" "into" $given) -}}
{{- toJson $given -}}
{{- end -}}

{{/* The options of the command, as its configuration file has them. */}}
{{- define "podgpu.job.configFile" -}}
{{- $given := include "podgpu.job.given" . | fromJson -}}
{{- $_ := set $given "prometheus.url" (get .root.Values .job).store -}}
{{- $given = merge $given (include "podgpu.believed" .root | fromJson) -}}
{{- if include "podgpu.job.hasPrices" . -}}{{- $_ := set $given "price" "/etc/podgpu-prices/prices.yaml" -}}{{- end -}}
{{- $lines := list -}}
{{- range $key, $value := $given -}}
{{- $lines = append $lines (printf "%s: %s" $key (toJson $value)) -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}

{{/* `what` is what the job makes. */}}
{{- define "podgpu.job.refuse" -}}
{{- $job := .job -}}
{{- $what := .what -}}
{{- $given := include "podgpu.job.given" . | fromJson -}}
{{- with get .root.Values .job -}}
{{- if .schedule -}}
{{- if not .store -}}
{{- fail (printf "%s.schedule makes %s of what a store has, but %s.store is empty. Set it to the address of Prometheus, Thanos, VictoriaMetrics or Mimir." $job $what $job) -}}
{{- end -}}
{{- if and .prices .existingPrices -}}
{{- fail (printf "%s.prices and %s.existingPrices each have prices. Keep one." $job $job) -}}
{{- end -}}
{{- range $key, $owner := dict "prometheus.url" "store" "price" "prices" -}}
{{- if hasKey $given $key -}}
{{- fail (printf "%s.config.%s cannot be set: the chart sets it from %s.%s. Remove it from %s.config." $job $key $job $owner $job) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "podgpu.job.configMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "podgpu.job.metadata" . | nindent 2 }}
data:
  podgpu.yml: |
    {{- include "podgpu.job.configFile" . | nindent 4 }}
  {{- with (get .root.Values .job).prices }}
  prices.yaml: |
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* `args` of the command, exit codes that are `failures` at once, and the `claim` for files; none if empty. */}}
{{- define "podgpu.job.cronJob" -}}
{{- with get .root.Values .job -}}
apiVersion: batch/v1
kind: CronJob
metadata:
  {{- include "podgpu.job.metadata" $ | nindent 2 }}
spec:
  schedule: {{ .schedule | quote }}
  timeZone: Etc/UTC
  concurrencyPolicy: Forbid
  successfulJobsHistoryLimit: {{ .successfulJobsHistoryLimit }}
  failedJobsHistoryLimit: {{ .failedJobsHistoryLimit }}
  jobTemplate:
    metadata:
      labels:
        {{- include "podgpu.job.labels" $ | nindent 8 }}
    spec:
      backoffLimit: {{ .backoffLimit }}
      activeDeadlineSeconds: {{ .activeDeadlineSeconds }}
      # What is lacking is lacking however often it is asked for: only a store without an answer is asked again.
      podFailurePolicy:
        rules:
          - action: FailJob
            onExitCodes:
              containerName: {{ $.job }}
              operator: In
              values: {{ toJson $.failures }}
      template:
        metadata:
          labels:
            {{- include "podgpu.job.selectorLabels" $ | nindent 12 }}
            {{- with merge (deepCopy .podLabels) $.root.Values.commonLabels }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- with .podAnnotations }}
          annotations:
            {{- toYaml . | nindent 12 }}
          {{- end }}
        spec:
          restartPolicy: Never
          automountServiceAccountToken: false
          enableServiceLinks: false
          {{- with concat $.root.Values.global.imagePullSecrets $.root.Values.imagePullSecrets }}
          imagePullSecrets:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          securityContext:
            runAsNonRoot: true
            runAsUser: 65534
            runAsGroup: 65534
            fsGroup: 65534
            seccompProfile:
              type: RuntimeDefault
          {{- with .nodeSelector }}
          nodeSelector:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with .affinity }}
          affinity:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with .tolerations }}
          tolerations:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          containers:
            - name: {{ $.job }}
              image: {{ include "podgpu.image" $.root }}
              imagePullPolicy: {{ $.root.Values.image.pullPolicy }}
              args:
                - {{ $.job }}
                - --config.file=/etc/podgpu/podgpu.yml
                {{- toYaml $.args | nindent 16 }}
                {{- with .extraArgs }}
                {{- toYaml . | nindent 16 }}
                {{- end }}
              resources:
                {{- toYaml .resources | nindent 16 }}
              securityContext:
                allowPrivilegeEscalation: false
                privileged: false
                readOnlyRootFilesystem: true
                capabilities:
                  drop: [ALL]
              volumeMounts:
                {{- if $.claim }}
                - name: bills
                  mountPath: /bills
                {{- end }}
                - name: config
                  mountPath: /etc/podgpu
                  readOnly: true
                {{- if include "podgpu.job.hasPrices" $ }}
                - name: prices
                  mountPath: /etc/podgpu-prices
                  readOnly: true
                {{- end }}
                {{- if .login.existingSecret }}
                - name: login
                  mountPath: /etc/podgpu-login
                  readOnly: true
                {{- end }}
          volumes:
            {{- with $.claim }}
            - name: bills
              persistentVolumeClaim:
                claimName: {{ . }}
            {{- end }}
            - name: config
              configMap:
                name: {{ include "podgpu.job.fullname" $ }}
            {{- if include "podgpu.job.hasPrices" $ }}
            - name: prices
              configMap:
                name: {{ default (include "podgpu.job.fullname" $) .existingPrices }}
            {{- end }}
            {{- with .login.existingSecret }}
            - name: login
              secret:
                secretName: {{ . }}
            {{- end }}
{{- end -}}
{{- end -}}
