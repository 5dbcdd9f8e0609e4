package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"slices"
	"strings"
)

const (
	// most is how much user data is read, unpacked. EC2 takes 16 KiB, packed.
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-add-user-data.html
	most = 1 << 20
	// deepest is how deep parts may lie in parts.
	deepest = 3
)

// Parse reads user data as a launch template has it, in base64. Nothing in it
// makes Parse fail: what is not understood is left out and named in Faults.
func Parse(encoded string) Settings {
	var s Settings
	text, err := decode([]byte(encoded))
	if err != nil {
		s.fault("%v; what EKS images do by themselves is assumed", err)
		return s
	}
	s.read(text, 0)
	slices.Sort(s.Faults)
	s.Faults = slices.Compact(s.Faults)
	return s
}

// decode undoes base64, and gzip where that was used.
func decode(encoded []byte) ([]byte, error) {
	text, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(encoded)))
	if err != nil {
		return nil, errors.New("it is not base64")
	}
	return unpack(text)
}

var gzipMagic = []byte{0x1f, 0x8b}

func unpack(text []byte) ([]byte, error) {
	if !bytes.HasPrefix(text, gzipMagic) {
		return text, nil
	}
	packed, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("it is damaged gzip: %w", err)
	}
	text, err = io.ReadAll(io.LimitReader(packed, most+1))
	if err != nil {
		return nil, fmt.Errorf("it is damaged gzip: %w", err)
	}
	if len(text) > most {
		return nil, fmt.Errorf("it unpacks to more than %d KiB", most>>10)
	}
	return text, nil
}

// read finds the form of a text and reads it.
func (s *Settings) read(text []byte, depth int) {
	trimmed := strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))
	switch first := firstLine(trimmed); {
	case trimmed == "":
	case strings.HasPrefix(first, "#!"):
		s.script(trimmed)
	case strings.HasPrefix(first, "<powershell>"), strings.HasPrefix(first, "<script>"):
		s.Family = Windows
	case strings.HasPrefix(first, "#cloud-config"):
		s.cloudConfig(trimmed)
	case isHeader(first):
		s.parts(trimmed, depth)
	case isNodeConfig(trimmed):
		s.nodeConfig(trimmed)
	case isBottlerocket(trimmed):
		s.bottlerocket(trimmed)
	default:
		s.fault("its form is not known (it begins %.40q); what EKS images do by themselves is assumed", first)
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimRight(line, "\r")
}

// cloudConfig: cloud-init's own form has no words for the kubelet, but may run
// commands that have.
func (s *Settings) cloudConfig(text string) {
	if strings.Contains(text, bootstrapScript) {
		s.fault("%s in a #cloud-config is not read; what EKS images do by themselves is assumed", bootstrapScript)
	}
}

// isHeader: a MIME document begins with one of these.
func isHeader(line string) bool {
	name, _, ok := strings.Cut(line, ":")
	name = strings.ToLower(name)
	return ok && (name == "content-type" || name == "mime-version")
}

// parts reads each part of a MIME document, in order: cloud-init runs them so, and
// of several NodeConfigs the later wins.
// https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html#launch-template-user-data
func (s *Settings) parts(text string, depth int) {
	if depth == deepest {
		s.fault("MIME parts lie more than %d deep in one another", deepest)
		return
	}
	fields, body := header(text)
	media, params, err := mime.ParseMediaType(fields[contentType])
	if err != nil {
		s.fault("a MIME document has the type %q, which cannot be read", fields[contentType])
		return
	}
	if !strings.HasPrefix(media, "multipart/") {
		s.part(fields, body, depth)
		return
	}
	if params["boundary"] == "" {
		s.fault("a MIME document names no boundary")
		return
	}
	for _, part := range cutParts(body, params["boundary"]) {
		fields, content := header(part)
		s.part(fields, content, depth)
	}
}

// cutParts gives what stands between the boundaries. The last may lack its end.
func cutParts(body, boundary string) []string {
	var parts []string
	var current *strings.Builder
	for line := range strings.SplitAfterSeq(body, "\n") {
		switch strings.TrimRight(line, " \t\n") {
		case "--" + boundary:
			parts = closePart(parts, current)
			current = &strings.Builder{}
		case "--" + boundary + "--":
			return closePart(parts, current)
		default:
			if current != nil {
				current.WriteString(line)
			}
		}
	}
	return closePart(parts, current)
}

func closePart(parts []string, part *strings.Builder) []string {
	if part == nil {
		return parts
	}
	return append(parts, part.String())
}

const (
	contentType = "content-type"
	encoding    = "content-transfer-encoding"
)

// nodeConfigMedia is the media type of a NodeConfig.
// https://awslabs.github.io/amazon-eks-ami/nodeadm/
const nodeConfigMedia = "application/node.eks.aws"

func (s *Settings) part(fields map[string]string, body string, depth int) {
	content := []byte(body)
	var err error
	if strings.EqualFold(fields[encoding], "base64") {
		content, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(body), ""))
	}
	if err == nil {
		content, err = unpack(content)
	}
	media, _, _ := mime.ParseMediaType(fields[contentType]) // what cannot be read is recognised by its content
	switch {
	case err != nil:
		s.fault("a MIME part is left out: %v", err)
	case media == nodeConfigMedia:
		s.nodeConfig(string(content))
	case media == "text/x-shellscript":
		s.script(string(content))
	case media == "text/cloud-boothook": // runs early; what it may do to the kubelet is not for us to know
	default:
		s.read(content, depth+1)
	}
}

// header cuts off a MIME header; its names are in lower case. Like cloud-init, and
// unlike package mime/multipart, it takes a line that is no header for the
// beginning of the content: documents that EKS writes lack the empty line.
func header(text string) (fields map[string]string, body string) {
	fields = map[string]string{}
	last := ""
	for rest := text; rest != ""; {
		line := firstLine(rest)
		folded := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		name, value, ok := strings.Cut(line, ":")
		if line != "" && !folded && (!ok || !isHeaderName(name)) {
			return fields, rest
		}
		_, rest, _ = strings.Cut(rest, "\n")
		switch {
		case line == "":
			return fields, rest
		case folded:
			fields[last] += " " + strings.TrimSpace(line)
		default:
			last = strings.ToLower(name)
			fields[last] = strings.TrimSpace(value)
		}
	}
	return fields, ""
}

// isHeaderName: letters and hyphens, as all that matter are.
func isHeaderName(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz-") == ""
}
