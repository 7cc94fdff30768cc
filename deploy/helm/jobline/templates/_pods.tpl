{{/* The restricted pod security standard, of a pod and of a container. */}}
{{- define "jobline.podSecurity" -}}
runAsNonRoot: true
{{- with .runAsUser }}
runAsUser: {{ int64 . }}
runAsGroup: {{ int64 . }}
{{- end }}
{{- with .fsGroup }}
fsGroup: {{ int64 . }}
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "jobline.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* What every pod has: no token, no variables about Services (a Service `jobline` would make JOBLINE_…
     variables), the account, the credentials of the registry. */}}
{{- define "jobline.podBasics" -}}
serviceAccountName: {{ include "jobline.serviceAccountName" . | quote }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ quote . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Where pods run: dict nodeSelector, tolerations, affinity. */}}
{{- define "jobline.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Variables by which a client finds the server: dict root, token, clientSecret. */}}
{{- define "jobline.clientEnv" -}}
- name: JOBLINE_SERVER
  value: {{ include "jobline.address" .root }}
{{- if .token.existingSecret }}
- name: JOBLINE_TOKEN
  valueFrom:
    secretKeyRef: {name: {{ quote .token.existingSecret }}, key: {{ quote .token.key }}}
{{- end }}
{{- if .root.Values.tls.existingSecret }}
{{- if .root.Values.tls.caKey }}
- name: JOBLINE_TLS_CA
  value: /etc/jobline/ca/ca.crt
{{- else }}
- name: JOBLINE_TLS
  value: "1"
{{- end }}
{{- if .clientSecret }}
- name: JOBLINE_CLIENT_CERTIFICATE
  value: /etc/jobline/client/tls.crt
- name: JOBLINE_CLIENT_KEY
  value: /etc/jobline/client/tls.key
{{- end }}
{{- end }}
{{- end -}}

{{/* Mounts and volumes of a client: a folder for temporary files, the CA (and not the server's key, which
     is in the same Secret), and its certificate. */}}
{{- define "jobline.clientMounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .root.Values.tls.existingSecret }}
{{- if .root.Values.tls.caKey }}
- {name: ca, mountPath: /etc/jobline/ca, readOnly: true}
{{- end }}
{{- if .clientSecret }}
- {name: client, mountPath: /etc/jobline/client, readOnly: true}
{{- end }}
{{- end }}
{{- end -}}

{{- define "jobline.clientVolumes" -}}
- name: tmp
  emptyDir: {}
{{- if .root.Values.tls.existingSecret }}
{{- with .root.Values.tls.caKey }}
- name: ca
  secret:
    secretName: {{ quote $.root.Values.tls.existingSecret }}
    items: [{key: {{ quote . }}, path: ca.crt}]
{{- end }}
{{- with .clientSecret }}
- name: client
  secret:
    secretName: {{ quote . }}
    items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
{{- end }}
{{- end }}
{{- end -}}
