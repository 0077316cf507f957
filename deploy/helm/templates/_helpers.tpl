{{- define "doorward.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "doorward.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "doorward.labels" -}}
{{ include "doorward.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Labels of jobs. They don't fit the selector, so that no job gets requests. */}}
{{- define "doorward.jobLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-job
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "doorward.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "doorward.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "doorward.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "doorward.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "doorward.databaseVolume" -}}
- name: database
  secret:
    secretName: {{ .Values.database.existingSecret }}
    defaultMode: 0440
    items: [{key: {{ .Values.database.key }}, path: url}]
{{- end }}

{{- define "doorward.authoritiesVolume" -}}
{{- with .Values.authorities }}{{ if .existingSecret -}}
- name: authorities
  secret:
    secretName: {{ .existingSecret }}
    items: [{key: {{ .key }}, path: ca.crt}]
{{- else if .existingConfigMap -}}
- name: authorities
  configMap:
    name: {{ .existingConfigMap }}
    items: [{key: {{ .key }}, path: ca.crt}]
{{- end }}{{ end }}
{{- end }}

{{- define "doorward.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Refuses values that contradict each other, and a limit on memory that is too low. */}}
{{- define "doorward.check" -}}
{{- if and (not .Values.database.existingSecret) (gt (int .Values.replicas) 1) }}
{{- fail "replicas: more than one needs PostgreSQL; set database.existingSecret, or replicas to 1 for SQLite" }}
{{- end }}
{{- if and (not .Values.database.existingSecret) .Values.autoscaling.enabled }}
{{- fail "autoscaling: more than one replica needs PostgreSQL; set database.existingSecret" }}
{{- end }}
{{- if and (not .Values.database.existingSecret) .Values.migration.job }}
{{- fail "migration.job: it is for PostgreSQL; with SQLite the server migrates when it starts" }}
{{- end }}
{{- if and .Values.database.existingSecret .Values.backup.enabled }}
{{- fail "backup: it is for SQLite; back PostgreSQL up with its own programs, see docs/operations.md" }}
{{- end }}
{{- if and .Values.migration.job (hasKey .Values.settings "migrate") }}
{{- fail "settings: migrate is set by migration.job" }}
{{- end }}
{{- range $name, $_ := .Values.settings }}
{{- if has $name (list "config" "base-url" "listen" "admin-listen" "database" "smtp" "mail-from" "trusted-proxies" "return-to" "tls-cert" "tls-key" "acme-dir" "trace-header") }}
{{- fail (printf "settings: %s has a value of its own in this chart" $name) }}
{{- end }}
{{- end }}
{{- if and .Values.authorities.existingSecret .Values.authorities.existingConfigMap }}
{{- fail "authorities: a Secret and a ConfigMap are named; keep one of them" }}
{{- end }}
{{- $limit := include "doorward.memoryLimit" . | int64 }}
{{- $needed := include "doorward.memoryNeeded" . | int64 }}
{{- if and $limit (lt $limit $needed) }}
{{- fail (printf "resources.limits.memory: %d bytes are less than the %d that %d cores and the sessions in memory may need; raise it, or set sessions-in-memory or cores lower" $limit $needed (int64 .Values.cores)) }}
{{- end }}
{{- end }}

{{/* The limit on memory in bytes; 0 without one. */}}
{{- define "doorward.memoryLimit" -}}
{{- $text := dig "limits" "memory" "0" .Values.resources | toString }}
{{- $unit := regexFind "[A-Za-z]*$" $text }}
{{- $number := trimSuffix $unit $text }}
{{- $bytes := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- if or (not (hasKey $bytes $unit)) (not (regexMatch "^[0-9]+([.][0-9]+)?$" $number)) }}
{{- fail (printf "resources.limits.memory: write %s as a number with Mi or Gi" $text) }}
{{- end }}
{{- mulf (float64 $number) (get $bytes $unit) | int64 }}
{{- end }}

{{/* The memory of a pod in bytes, see docs/capacity.md: at rest; under many logins, four
times the memory of a hash for each core, in use or not yet collected; and the sessions. */}}
{{- define "doorward.memoryNeeded" -}}
{{- $hash := mul 1024 (int64 (get .Values.settings "password-memory-kib" | default 19456)) }}
{{- $sessions := int64 (get .Values.settings "sessions-in-memory" | default 1000000) }}
{{- add 31000000 (mul 4 $hash (int64 .Values.cores)) (mul 661 $sessions) }}
{{- end }}
