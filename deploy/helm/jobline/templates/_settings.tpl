{{/* A number as people write it: Helm's whole ones are floats, and long ones would become 1e+07. */}}
{{- define "jobline.number" -}}
{{- if kindIs "float64" . -}}
{{- if eq . (floor .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/* Bytes, of a quantity of Kubernetes or of a size as the server reads it. */}}
{{- define "jobline.bytes" -}}
{{- $text := include "jobline.number" . | nospace | lower -}}
{{- $unit := regexFind "[a-z]*$" $text -}}
{{- $times := dict "k" 1e3 "m" 1e6 "g" 1e9 "t" 1e12 "p" 1e15 "e" 1e18 "ki" 1024 "mi" 1048576 "gi" 1073741824 "ti" 1099511627776 "pi" 1125899906842624 "ei" 1152921504606846976 -}}
{{- mulf (trimSuffix $unit $text) (default 1 (get $times (trimSuffix "b" $unit))) -}}
{{- end -}}

{{/* The settings file, TOML. What other values decide comes first; names and types of `config` are those
     of the schema. A JSON string is a TOML string, too. */}}
{{- define "jobline.settings" -}}
data = "/var/lib/jobline/data"
listen = "0.0.0.0:7070"
http = "0.0.0.0:7071"
{{- if ne (include "jobline.healthPort" .) "7070" }}
health_listen = "0.0.0.0:7072"
{{- end }}
{{- with .Values.tls }}
{{- if .existingSecret }}
tls_certificate = "/etc/jobline/tls/{{ .certificateKey }}"
tls_key = "/etc/jobline/tls/{{ .privateKeyKey }}"
{{- end }}
{{- if .clientCa.existingSecret }}
tls_client_ca = "/etc/jobline/client-ca/{{ .clientCa.key }}"
{{- end }}
{{- end }}
{{- with .Values.auth }}
{{- if .existingSecret }}
auth = "/etc/jobline/auth/{{ .key }}"
{{- end }}
{{- end }}
{{- with .Values.backup }}
{{- if .enabled }}
backup_to = {{ default "/var/lib/jobline-backup" .to | toJson }}
backup_every_seconds = {{ if .schedule }}0{{ else }}{{ int64 .everySeconds }}{{ end }}
backup_keep = {{ int64 .keep }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.config }}
{{- if kindIs "invalid" $value }}
{{- else if kindIs "float64" $value }}
{{ $name }} = {{ include "jobline.number" $value }}
{{- else }}
{{ $name }} = {{ toJson $value }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Refuses keys that the chart writes itself: one that stands twice may be read either way. By a template,
     as Helm 4 names another value than the one at fault where a schema refuses a name. dict where, given, own. */}}
{{- define "jobline.refuseOwn" -}}
{{- range $key, $_ := .given -}}
{{- if has $key $.own -}}
{{- fail (printf "%s has %s, which the chart sets itself" $.where $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Values that do not go together, each refused by name. */}}
{{- define "jobline.refusals" -}}
{{- $labels := keys (include "jobline.labels" . | fromYaml) -}}
{{- $ofPods := append (keys (include "jobline.selectorLabels" . | fromYaml)) "app.kubernetes.io/component" -}}
{{- include "jobline.refuseOwn" (dict "where" "podLabels" "given" .Values.podLabels "own" $ofPods) -}}
{{- include "jobline.refuseOwn" (dict "where" "podAnnotations" "given" .Values.podAnnotations "own" (list "checksum/settings")) -}}
{{- range $where := list "serviceMonitor" "prometheusRule" "grafanaDashboard" -}}
{{- $given := (get $.Values $where).labels -}}
{{- include "jobline.refuseOwn" (dict "where" (printf "%s.labels" $where) "given" $given "own" $labels) -}}
{{- end -}}
{{- $ofAlerts := list "severity" "alertname" -}}
{{- include "jobline.refuseOwn" (dict "where" "prometheusRule.alertLabels" "given" .Values.prometheusRule.alertLabels "own" $ofAlerts) -}}
{{- if and .Values.tls.clientCa.existingSecret (not .Values.tls.existingSecret) -}}
{{- fail "tls.clientCa needs tls.existingSecret: certificates of clients are asked for over TLS alone" -}}
{{- end -}}
{{- if and .Values.prometheusRule.enabled (not .Values.serviceMonitor.enabled) -}}
{{- fail "prometheusRule needs serviceMonitor.enabled: its alerts are about the metrics that it scrapes" -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if regexMatch "(?i)^JOBLINE_(CONFIG|DATA|LISTEN|HTTP|HEALTH_LISTEN|UNIX_SOCKET|AUTH|TLS_(CERTIFICATE|KEY|CLIENT_CA)|BACKUP_(TO|EVERY_SECONDS|KEEP))$" .name -}}
{{- fail (printf "extraEnv has %s, which other values of the chart decide" .name) -}}
{{- end -}}
{{- end -}}
{{- /* A password may have a slash that should be escaped; a number before a slash is a port. */ -}}
{{- $password := "://[^/@:]*:([0-9]*[^0-9/@][^@]*|[0-9]+)@" -}}
{{- range $name, $url := dict "backup.to" .Values.backup.to "config.history" .Values.config.history -}}
{{- if regexMatch $password (default "" $url) -}}
{{- fail (printf "%s has a password in it, and would be in a ConfigMap for all to read: credentials belong into environment variables, from backup.existingSecret or extraEnv" $name) -}}
{{- end -}}
{{- /* The server starts in /var/lib/jobline, which is where a path without a slash before it begins. */ -}}
{{- $path := regexReplaceAll "^.*(file|local)://" (default "" $url) "" -}}
{{- if and $url (not (contains "://" $path)) -}}
{{- $folder := ternary $path (printf "/var/lib/jobline/%s" $path) (hasPrefix "/" $path) | clean -}}
{{- if hasPrefix "/var/lib/jobline/" (printf "%s/" $folder) -}}
{{- fail (printf "%s is on the volume of the data, and would be lost with it: set a URL of another place, such as s3://bucket/jobline" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $certificate := .Values.tls.clientCertificate.existingSecret -}}
{{- $asks := .Values.tls.clientCa.existingSecret -}}
{{- if and .Values.serviceMonitor.enabled $asks (not $certificate) -}}
{{- fail "serviceMonitor needs tls.clientCertificate where tls.clientCa is set: the server lets nobody in without a certificate" -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled .Values.auth.existingSecret (not .Values.serviceMonitor.token.existingSecret) (not (and $asks $certificate)) -}}
{{- fail "serviceMonitor needs token.existingSecret where auth is set: Prometheus has nothing else to show" -}}
{{- end -}}
{{- if eq (int64 .Values.service.grpcPort) (int64 .Values.service.httpPort) -}}
{{- fail "service.grpcPort and service.httpPort are the same: set two ports" -}}
{{- end -}}
{{- /* 0 is a value, too. */ -}}
{{- $drain := get .Values.config "drain_seconds" -}}
{{- if or (kindIs "invalid" $drain) (kindIs "string" $drain) -}}{{- $drain = 30 -}}{{- end -}}
{{- with .Values.terminationGracePeriodSeconds -}}
{{- if lt (float64 .) (float64 $drain) -}}
{{- fail (printf "terminationGracePeriodSeconds is shorter than config.drain_seconds (%s), and the server would be killed while workers finish: set it to a minute more, or to null" (include "jobline.number" $drain)) -}}
{{- end -}}
{{- end -}}
{{- $data := default (printf "data-%s-0" (include "jobline.fullname" .)) .Values.persistence.existingClaim -}}
{{- if and .Values.backup.enabled (not .Values.backup.to) (eq .Values.backup.volume.existingClaim $data) -}}
{{- fail "backup.volume.existingClaim is the claim of the data, and backups would be lost with them: set another one" -}}
{{- end -}}
{{- $plain := "%s.token needs tls.existingSecret: jobline sends no token to another host without TLS" -}}
{{- range $name := list "backup" "tests" -}}
{{- if and (get $.Values $name).token.existingSecret (not $.Values.tls.existingSecret) -}}
{{- fail (printf $plain $name) -}}
{{- end -}}
{{- end -}}
{{- with .Values.backup -}}
{{- if and .schedule (not .enabled) -}}
{{- fail "backup.schedule needs backup.enabled: the server has no destination for backups without it" -}}
{{- end -}}
{{- if and .timeZone (not .schedule) -}}
{{- fail "backup.timeZone needs backup.schedule: everySeconds knows no hours" -}}
{{- end -}}
{{- /* A schedule that leaves days out: by the default the alert on old backups would fire between two. */ -}}
{{- $daily := regexMatch "^(@(daily|midnight|hourly)|[^ ]+ [^ ]+( [*?]){3})$" .schedule -}}
{{- if and .schedule (not $daily) (le (int64 .longestGapSeconds) 86400) -}}
{{- fail (printf "backup.longestGapSeconds: set it to the longest time between two backups of `%s`, in seconds, which is more than a day" .schedule) -}}
{{- end -}}
{{- if and .schedule $asks (not $certificate) -}}
{{- fail "backup.schedule needs tls.clientCertificate where tls.clientCa is set: the server lets nobody in without a certificate" -}}
{{- end -}}
{{- if and .schedule $.Values.auth.existingSecret (not .token.existingSecret) (not (and $asks $certificate)) -}}
{{- fail "backup.schedule needs backup.token.existingSecret where auth is set: its CronJob has nothing else to show" -}}
{{- end -}}
{{- end -}}
{{- $defaults := .Files.Get "files/worker-defaults.yaml" | fromYaml -}}
{{- range $name, $worker := .Values.workers -}}
{{- if and (default dict $worker.token).existingSecret (not $.Values.tls.existingSecret) -}}
{{- fail (printf $plain (printf "workers.%s" $name)) -}}
{{- end -}}
{{- $own := (default dict $worker.clientCertificate).existingSecret -}}
{{- if and $asks (not (include "jobline.clientSecret" (dict "root" $ "own" $own))) -}}
{{- fail (printf "workers.%s needs clientCertificate, or tls.clientCertificate, where tls.clientCa is set: the server lets nobody in without a certificate" $name) -}}
{{- end -}}
{{- $client := include "jobline.clientSecret" (dict "root" $ "own" $own) -}}
{{- $set := list -}}
{{- range include "jobline.clientEnv" (dict "root" $ "token" (default dict $worker.token) "clientSecret" $client) | fromYamlArray -}}
{{- $set = append $set .name -}}
{{- end -}}
{{- range $worker.env -}}
{{- include "jobline.refuseOwn" (dict "where" (printf "workers.%s.env" $name) "given" (dict .name true) "own" $set) -}}
{{- end -}}
{{- $keda := (include "jobline.worker" (dict "defaults" $defaults "given" $worker) | fromYaml).keda -}}
{{- if and $keda.enabled (gt (int64 $keda.minReplicas) (int64 $keda.maxReplicas)) -}}
{{- fail (printf "workers.%s.keda.minReplicas is above maxReplicas (%d): set it lower, or maxReplicas higher" $name (int64 $keda.maxReplicas)) -}}
{{- end -}}
{{- if and $keda.enabled $.Values.auth.existingSecret -}}
{{- if not (include "jobline.clientSecret" (dict "root" $ "own" $keda.existingSecret)) -}}
{{- fail (printf "workers.%s.keda needs existingSecret, or tls.clientCertificate, where auth is set: KEDA sends no token, so it must have a certificate" $name) -}}
{{- end -}}
{{- if not $.Values.tls.clientCa.existingSecret -}}
{{- fail (printf "workers.%s.keda needs tls.clientCa where auth is set: without it the server asks for no certificate, and KEDA has nothing else to show" $name) -}}
{{- end -}}
{{- end -}}
{{- /* A Secret of the worker may have the token in it. */ -}}
{{- $shows := or (default dict $worker.token).existingSecret $worker.existingSecret (and $asks $client) -}}
{{- range $worker.env -}}
{{- if eq .name "JOBLINE_TOKEN" -}}{{- $shows = true -}}{{- end -}}
{{- end -}}
{{- if and $.Values.auth.existingSecret (not $shows) -}}
{{- fail (printf "workers.%s needs token.existingSecret where auth is set: it has nothing else to show" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
