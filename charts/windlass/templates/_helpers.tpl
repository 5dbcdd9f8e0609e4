{{/* The image of a program: in the registry that was named, with the tag that was. */}}
{{- define "windlass.image" -}}
{{- $root := index . 0 }}
{{- with $root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end }}
{{- index . 1 }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}
{{- end }}

{{/* What the cluster says of itself. */}}
{{- define "windlass.settingsData" -}}
{{- $data := dict "CLUSTER_NAME" .Values.autoDiscovery.clusterName }}
{{- with .Values.awsRegion }}{{ $_ := set $data "AWS_REGION" . }}{{ end }}
{{- with .Values.roleArn }}{{ $_ := set $data "SCALER_ROLE_ARN" . }}{{ end }}
{{- toJson $data }}
{{- end }}

{{/*
The ConfigMap of the settings is named for what it has, so that a change of it starts new
scalers. It is the name that kustomize gives it.
*/}}
{{- define "windlass.settings" -}}
{{- $all := dict "kind" "ConfigMap" "name" "" "data" (include "windlass.settingsData" . | fromJson) }}
{{- $hash := toJson $all | sha256sum | trunc 10 }}
{{- printf "windlass-settings-%s" ($hash | replace "0" "g" | replace "1" "h" | replace "3" "k" | replace "a" "m" | replace "e" "t") }}
{{- end }}

{{/* Flags as arguments; a list is a flag that is given several times. */}}
{{- define "windlass.args" -}}
{{- range $flag, $values := . }}
{{- range kindIs "slice" $values | ternary $values (list $values) }}
- {{ printf "--%s=%s" $flag (kindIs "string" . | ternary . (toJson .)) | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "windlass.pullSecrets" -}}
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
