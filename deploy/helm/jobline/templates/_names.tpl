{{/* Names. A Service's begins with a letter and has no dot, and the longest name made from one has 23
     characters more. Where one must be cut, a hash keeps two releases apart. */}}
{{- define "jobline.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := .Release.Name | replace "." "-" -}}
{{- if not (contains $name $full) -}}{{- $full = printf "%s-%s" $full $name -}}{{- end -}}
{{- if regexMatch "^[0-9]" $full -}}{{- $full = printf "j%s" $full -}}{{- end -}}
{{- if gt (len $full) 40 -}}
{{- printf "%s-%s" (trunc 33 $full | trimSuffix "-") (sha256sum .Release.Name | trunc 6) -}}
{{- else -}}
{{- $full -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "jobline.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "jobline.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Labels that never change: selectors and the claim of the data have them. */}}
{{- define "jobline.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "jobline.labels" -}}
{{ include "jobline.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Where clients find the server: HOST:PORT of gRPC. */}}
{{- define "jobline.host" -}}
{{ include "jobline.fullname" . }}.{{ .Release.Namespace }}.svc
{{- end -}}
{{- define "jobline.address" -}}
{{ include "jobline.host" . }}:{{ .Values.service.grpcPort }}
{{- end -}}

{{/* image, and the tag where it has none: dict image, tag. */}}
{{- define "jobline.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ required "a worker's image needs a tag or a digest" (default .tag .image.tag) }}
{{- end -}}
{{- end -}}

{{/* The Secret with which a client shows who it is, where the server asks for certificates: dict root, own. */}}
{{- define "jobline.clientSecret" -}}
{{- default .root.Values.tls.clientCertificate.existingSecret .own -}}
{{- end -}}

{{/* Health alone is served in plain text where the main port asks for TLS or for who is calling. */}}
{{- define "jobline.healthPort" -}}
{{- if or .Values.tls.existingSecret .Values.auth.existingSecret -}}7072{{- else -}}7070{{- end -}}
{{- end -}}
