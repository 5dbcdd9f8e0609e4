{{/* The image of a program: in the registry that was named, with the tag that was. */}}
{{- define "windlass.image" -}}
{{- $root := index . 0 }}
{{- with $root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end }}
{{- index . 1 }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}
{{- with get $root.Values.image.digests (index . 1) }}@{{ . }}{{ end }}
{{- end }}

{{/* What the cluster says of itself. */}}
{{- define "windlass.settingsData" -}}
{{- $data := dict "CLUSTER_NAME" .Values.autoDiscovery.clusterName }}
{{- with .Values.awsRegion }}{{ $_ := set $data "AWS_REGION" . }}{{ end }}
{{- with .Values.roleArn }}{{ $_ := set $data "SCALER_ROLE_ARN" . }}{{ end }}
{{- toJson $data }}
{{- end }}

{{/*
A ConfigMap is named for what it has, so that a change of it starts new pods. It is the name that
kustomize gives it.
*/}}
{{- define "windlass.named" -}}
{{- $hash := dict "kind" "ConfigMap" "name" "" "data" (index . 1) | toJson | sha256sum | trunc 10 }}
{{- printf "%s-%s" (index . 0) ($hash | replace "0" "g" | replace "1" "h" | replace "3" "k" | replace "a" "m" | replace "e" "t") }}
{{- end }}

{{- define "windlass.settings" -}}
{{- include "windlass.named" (list "windlass-settings" (include "windlass.settingsData" . | fromJson)) }}
{{- end }}

{{/* What is sent where: the value, or the manifests' file. */}}
{{- define "windlass.notifierConfigText" -}}
{{- $config := .Values.notifications.config }}
{{- if not $config }}{{ .Files.Get "files/notifier.yaml" }}
{{- else if kindIs "string" $config }}{{ $config }}
{{- else }}{{ toYaml $config }}
{{- end }}
{{- end }}

{{- define "windlass.notifierConfig" -}}
{{- include "windlass.named" (list "windlass-notifier-config" (dict "config.yaml" (include "windlass.notifierConfigText" .))) }}
{{- end }}

{{/* Flags as arguments; a list is a flag that is given several times. */}}
{{- define "windlass.args" -}}
{{- range $flag, $values := . }}
{{- range kindIs "slice" $values | ternary $values (list $values) }}
- {{ printf "--%s=%s" $flag (kindIs "string" . | ternary . (toJson .)) | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The names that an argument has, as those of a list. */}}
{{- define "windlass.names" -}}
{{- $names := list }}
{{- range kindIs "slice" . | ternary . (list .) }}{{ with . }}{{ $names = append $names (toJson .) }}{{ end }}{{ end }}
{{- join ", " $names }}
{{- end }}

{{- define "windlass.pullSecrets" -}}
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}

{{- define "windlass.env" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}

{{/* A map without a key that is written beside it. */}}
{{- define "windlass.without" -}}
{{- $rest := index . 1 | ternary (omit (index . 0) (index . 2)) (index . 0) }}
{{- with $rest }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "windlass.accountAnnotations" -}}
{{- include "windlass.without" (list .Values.rbac.serviceAccount.annotations .Values.components.eksIrsa "eks.amazonaws.com/role-arn") }}
{{- end }}

{{- define "windlass.podAnnotations" -}}
{{- include "windlass.without" (list .Values.podAnnotations .Values.components.kube2iam "iam.amazonaws.com/role") }}
{{- end }}

{{- define "windlass.podLabels" -}}
{{- include "windlass.without" (list .Values.podLabels true "app.kubernetes.io/name") }}
{{- end }}

{{- define "windlass.agentLabels" -}}
{{- include "windlass.without" (list .Values.agent.podLabels true "app.kubernetes.io/name") }}
{{- end }}

{{/* What was said, or three quarters of the memory's limit. */}}
{{- define "windlass.goMemLimit" -}}
{{- $of := index . 1 }}
{{- $limit := dig "limits" "memory" "" $of.resources | toString }}
{{- if $of.goMemLimit }}{{ $of.goMemLimit }}
{{- else if not $limit }}off
{{- else if regexMatch "^[0-9]+Mi$" $limit }}{{ div (mul 3 (trimSuffix "Mi" $limit)) 4 }}MiB
{{- else if regexMatch "^[0-9]+Gi$" $limit }}{{ mul 768 (trimSuffix "Gi" $limit) }}MiB
{{- else }}{{ fail (printf "%sresources.limits.memory is %s: give it in Mi or Gi, or say %sgoMemLimit" (index . 0) $limit (index . 0)) }}
{{- end }}
{{- end }}
