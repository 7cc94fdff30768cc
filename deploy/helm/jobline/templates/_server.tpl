{{- define "jobline.serverPorts" -}}
- {name: grpc, containerPort: 7070}
- {name: http, containerPort: 7071}
{{- if ne (include "jobline.healthPort" .) "7070" }}
- {name: health, containerPort: 7072}
{{- end }}
{{- end -}}

{{/* kubelet speaks grpc.health.v1, in plain text and without a token. A start serves only when the journal
     is read; then half a minute of silence restarts a server, and ten seconds take it out of the Service. */}}
{{- define "jobline.probes" -}}
{{- $port := include "jobline.healthPort" . -}}
startupProbe:
  grpc: {port: {{ $port }}}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: {{ div (add1 (int64 .Values.startupSeconds)) 2 }}
readinessProbe:
  grpc: {port: {{ $port }}}
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 2
livenessProbe:
  grpc: {port: {{ $port }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
{{- end -}}

{{/* Secrets are mounted as folders: kubelet renews those, and the server reads them again. */}}
{{- define "jobline.serverMounts" -}}
- {name: data, mountPath: /var/lib/jobline}
- {name: tmp, mountPath: /tmp}
- {name: settings, mountPath: /etc/jobline/settings, readOnly: true}
{{- if .Values.tls.existingSecret }}
- {name: tls, mountPath: /etc/jobline/tls, readOnly: true}
{{- end }}
{{- if .Values.tls.clientCa.existingSecret }}
- {name: client-ca, mountPath: /etc/jobline/client-ca, readOnly: true}
{{- end }}
{{- if .Values.auth.existingSecret }}
- {name: auth, mountPath: /etc/jobline/auth, readOnly: true}
{{- end }}
{{- if and .Values.backup.enabled (not .Values.backup.to) }}
- {name: backup, mountPath: /var/lib/jobline-backup}
{{- end }}
{{- end -}}

{{- define "jobline.serverVolumes" -}}
- name: tmp
  emptyDir: {}
- name: settings
  configMap: {name: {{ include "jobline.fullname" . }}}
{{- with .Values.persistence.existingClaim }}
- name: data
  persistentVolumeClaim: {claimName: {{ quote . }}}
{{- end }}
{{- with .Values.tls }}
{{- if .existingSecret }}
- name: tls
  secret:
    secretName: {{ quote .existingSecret }}
    items: [{key: {{ quote .certificateKey }}, path: {{ quote .certificateKey }}}, {key: {{ quote .privateKeyKey }}, path: {{ quote .privateKeyKey }}}]
{{- end }}
{{- if .clientCa.existingSecret }}
- name: client-ca
  secret:
    secretName: {{ quote .clientCa.existingSecret }}
    items: [{key: {{ quote .clientCa.key }}, path: {{ quote .clientCa.key }}}]
{{- end }}
{{- end }}
{{- with .Values.auth }}
{{- if .existingSecret }}
# All of it: the file may name others beside it, the keys of an issuer for example.
- name: auth
  secret: {secretName: {{ quote .existingSecret }}}
{{- end }}
{{- end }}
{{- if and .Values.backup.enabled (not .Values.backup.to) }}
- name: backup
  persistentVolumeClaim:
    claimName: {{ default (printf "%s-backup" (include "jobline.fullname" .)) .Values.backup.volume.existingClaim | quote }}
{{- end }}
{{- end -}}
