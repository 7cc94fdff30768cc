{{/* The values of a worker over their defaults, one level deep: false and 0 are values, too. */}}
{{- define "jobline.worker" -}}
{{- $merged := deepCopy .defaults -}}
{{- range $key, $value := .given -}}
{{- if and (kindIs "map" $value) (kindIs "map" (get $.defaults $key)) (get $.defaults $key) -}}
{{- $inner := get $merged $key -}}
{{- range $name, $entry := $value -}}{{- $_ := set $inner $name $entry -}}{{- end -}}
{{- else -}}
{{- $_ := set $merged $key $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $merged -}}
{{- end -}}

{{/* What scales a worker: dict root, name, full, keda. KEDA asks the server, which knows its queues, and
     which tells it at once of the first job (external-push). */}}
{{- define "jobline.scaledObject" -}}
{{- $secret := include "jobline.clientSecret" (dict "root" .root "own" .keda.existingSecret) -}}
{{- $tls := .root.Values.tls.existingSecret }}
{{- $ca := .root.Values.tls.caKey }}
{{- if and $tls (or $ca $secret) }}
---
apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata:
  name: {{ .full }}
  labels: {{- include "jobline.labels" .root | nindent 4 }}
spec:
  secretTargetRef:
    {{- if $ca }}
    - {parameter: caCert, name: {{ quote $tls }}, key: {{ quote $ca }}}
    {{- end }}
    {{- if $secret }}
    - {parameter: tlsClientCert, name: {{ quote $secret }}, key: tls.crt}
    - {parameter: tlsClientKey, name: {{ quote $secret }}, key: tls.key}
    {{- end }}
{{- end }}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {{ .full }}
  labels: {{- include "jobline.labels" .root | nindent 4 }}
spec:
  scaleTargetRef: {name: {{ .full }}}
  minReplicaCount: {{ int64 .keda.minReplicas }}
  maxReplicaCount: {{ int64 .keda.maxReplicas }}
  pollingInterval: {{ int64 .keda.pollingInterval }}
  cooldownPeriod: {{ int64 .keda.cooldownPeriod }}
  triggers:
    - type: external-push
      metadata:
        scalerAddress: {{ include "jobline.address" .root }}
        queue: {{ default .name .keda.queue | quote }}
        metric: {{ .keda.metric }}
        {{- range $key := list "targetBacklogPerReplica" "activationBacklog" }}
        {{- $value := get $.keda $key }}
        {{- if not (kindIs "invalid" $value) }}
        {{ $key }}: {{ include "jobline.number" $value | quote }}
        {{- end }}
        {{- end }}
        {{- if $tls }}
        enableTLS: "true"
        {{- end }}
      {{- if and $tls (or $ca $secret) }}
      authenticationRef: {name: {{ .full }}}
      {{- end }}
{{- end -}}
