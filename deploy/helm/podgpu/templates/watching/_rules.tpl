{{/*
Rules and dashboards come from files/ and are never given to tpl: they have braces of their own, for Prometheus and Grafana.
*/}}

{{/* dict "root" $ "rule" as in the file: an alert gets the labels and the address of its runbook. */}}
{{- define "podgpu.rule" -}}
{{- $rule := deepCopy .rule -}}
{{- if $rule.record -}}
{{- $_ := set $rule "expr" (replace "[6h]" (printf "[%s]" .root.Values.defaultRules.seenWithin) $rule.expr) -}}
{{- end -}}
{{- if $rule.alert -}}
{{- $_ := set $rule "labels" (merge (default dict $rule.labels) .root.Values.defaultRules.additionalRuleLabels) -}}
{{- with .root.Values.defaultRules.runbookUrl -}}
{{- $_ := set $rule.annotations "runbook_url" (regexReplaceAll "^[^#]*" $rule.annotations.runbook_url .) -}}
{{- end -}}
{{- end -}}
{{- toJson $rule -}}
{{- end -}}

{{/* The groups that are switched on, without the disabled rules, as JSON. */}}
{{- define "podgpu.ruleGroups" -}}
{{- $groups := list -}}
{{- range $name, $on := .Values.defaultRules.rules -}}
{{- range (include "podgpu.ruleFile" (dict "root" $ "name" $name) | fromYaml).groups -}}
{{- $rules := list -}}
{{- range .rules -}}
{{- if and $on (not (get $.Values.defaultRules.disabled (coalesce .alert .record))) -}}
{{- $rules = append $rules (include "podgpu.rule" (dict "root" $ "rule" .) | fromJson) -}}
{{- end -}}
{{- end -}}
{{- if $rules -}}{{- $groups = append $groups (set (deepCopy .) "rules" $rules) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $groups -}}
{{- end -}}

{{/* dict "root" $ "name" of a group, such as gpuHealth: the text of its file. */}}
{{- define "podgpu.ruleFile" -}}
{{- .root.Files.Get (printf "files/rules/%s.yaml" (kebabcase .name)) -}}
{{- end -}}

{{/* dict "root" $ "rule" values: the same for both operators. */}}
{{- define "podgpu.ruleObject" -}}
metadata:
  {{- include "podgpu.metadata" (dict "root" .root "also" .rule.additionalLabels "notes" .rule.annotations) | nindent 2 }}
spec:
  groups:
    {{- include "podgpu.ruleGroups" .root | fromJsonArray | toYaml | nindent 4 }}
{{- end -}}
