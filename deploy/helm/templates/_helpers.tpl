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

{{- define "doorward.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* What would run and be wrong is refused here. */}}
{{- define "doorward.check" -}}
{{- if and (not .Values.database.existingSecret) (gt (int .Values.replicas) 1) }}
{{- fail "replicas: more than one needs PostgreSQL; set database.existingSecret, or replicas to 1 for SQLite" }}
{{- end }}
{{- range $name, $_ := .Values.settings }}
{{- if has $name (list "config" "base-url" "listen" "admin-listen" "database" "smtp" "mail-from" "trusted-proxies" "return-to" "tls-cert" "tls-key" "acme-dir" "trace-header") }}
{{- fail (printf "settings: %s has a value of its own in this chart" $name) }}
{{- end }}
{{- end }}
{{- end }}
