// Package laws looks at what a world has gone through, in the API server's audit
// log and in the log of AWS calls, and finds what must not have happened. Each
// breach is a sentence for people.
//
// The scripts of e2e are held against it when they end, the soak all the while.
package laws

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/world"
)

// Request is what the laws read of a line of the API server's audit log.
type Request struct {
	Verb, UserAgent, RequestURI string

	User struct {
		Username string
		Extra    map[string][]string
	}

	ObjectRef struct{ Resource, Subresource, Namespace, Name string }

	ResponseStatus struct {
		Message string
		Code    int
		Details struct{ Causes []cause }
	}

	RequestReceivedTimestamp time.Time

	RequestObject requestObject
}

// cause is why a request was refused, in one word of the API.
type cause struct{ Reason metav1.CauseType }

// requestObject is what a request carried. That of a JSON patch is a list, of which the
// annotations are read that it writes; one that it takes away is empty.
type requestObject struct {
	Metadata      struct{ Annotations map[string]string }
	Spec          struct{ ProviderID string }
	DeleteOptions struct {
		Preconditions struct{ UID string }
	}

	// isJSONPatch: it is one, and writes are the other paths that it writes to.
	isJSONPatch bool
	writes      []string
}

func (o *requestObject) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("[")) {
		return o.unmarshalPatch(text)
	}
	type object requestObject // has no UnmarshalJSON
	return json.Unmarshal(text, (*object)(o))
}

func (o *requestObject) unmarshalPatch(text []byte) error {
	var patch []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(text, &patch); err != nil {
		return err
	}
	o.isJSONPatch, o.Metadata.Annotations = true, map[string]string{}
	ofVersion := false // it holds for the version alone that its writer had read
	for _, op := range patch {
		key, annotates := strings.CutPrefix(op.Path, annotationsPath+"/")
		first, _ := op.Value.(map[string]any)
		switch {
		case op.Op == "test":
			ofVersion = ofVersion || op.Path == "/metadata/resourceVersion"
		case annotates && slices.Contains([]string{"add", "replace", "remove"}, op.Op):
			o.annotate(strings.NewReplacer("~1", "/", "~0", "~").Replace(key), op.Value)
		case op.Path == annotationsPath && op.Op == "add" && first != nil && ofVersion: // to an object that had none
			for key, value := range first {
				o.annotate(key, value)
			}
		default:
			o.writes = append(o.writes, op.Path)
		}
	}
	return nil
}

// annotationsPath is where a JSON patch writes annotations.
const annotationsPath = "/metadata/annotations"

func (o *requestObject) annotate(key string, value any) {
	o.Metadata.Annotations[key], _ = value.(string)
}

// ours is how the API server calls the two programs.
const ours = "system:serviceaccount:" + world.Namespace + ":"

// Audit is an audit log that is read as it grows.
type Audit struct {
	file string
	read int64
	all  []Request
}

// NewAudit returns the audit log at that place. It need not be there yet.
func NewAudit(file string) *Audit { return &Audit{file: file} }

// Requests reads what has come and returns everything since the beginning. A line
// that is being written is left for the next time; one that was being written when
// the API server was killed is left out.
func (a *Audit) Requests() ([]Request, error) {
	f, err := os.Open(a.file)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(a.read, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return a.all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		a.read += int64(len(line))
		if !json.Valid(line) {
			continue
		}
		var r Request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		a.all = append(a.all, r)
	}
}
