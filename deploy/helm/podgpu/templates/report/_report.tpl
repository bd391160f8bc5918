{{/* Bills by themselves. */}}

{{- define "podgpu.report.refuse" -}}
{{- include "podgpu.job.refuse" (dict "root" . "job" "report" "what" "bills") -}}
{{- with .Values.report -}}
{{- if and .schedule (eq .basis "energy") .prices (not .prices.kwh) -}}
{{- fail "report.basis=energy needs a price of energy. Set report.prices.kwh." -}}
{{- end -}}
{{- end -}}
{{- end -}}
