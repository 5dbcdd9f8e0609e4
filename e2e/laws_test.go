package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/world"
)

// audited is what the laws read of a line of the API server's audit log.
type audited struct {
	Verb string
	User struct {
		Username string
		Extra    map[string][]string
	}

	ObjectRef struct{ Resource, Subresource, Namespace, Name string }

	ResponseStatus struct{ Code int }

	RequestReceivedTimestamp time.Time

	RequestObject requestObject
}

// requestObject is what a request carried. That of a JSON patch is a list, and
// nothing of it is read.
type requestObject struct {
	Spec          struct{ ProviderID string }
	DeleteOptions struct {
		Preconditions struct{ UID string }
	}
}

func (o *requestObject) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("[")) {
		return nil
	}
	type object requestObject // has no UnmarshalJSON
	return json.Unmarshal(text, (*object)(o))
}

// ours is how the API server calls the two programs.
const ours = "system:serviceaccount:" + world.Namespace + ":"

// checkLaws returns what must not have happened in any script, whatever it was
// about. Each line is a breach.
func (s *session) checkLaws() ([]string, error) {
	var breaches []string
	for _, exit := range s.w.Exits() {
		breaches = append(breaches, fmt.Sprintf("%s ended by itself at %s: %v", exit.Pod, exit.At.Format("15:04:05.000"), exit.Err))
	}
	for _, c := range s.callLog() {
		switch {
		case c.Params["LifecycleActionResult"] == "ABANDON":
			breaches = append(breaches, fmt.Sprintf("ABANDON was sent: %v", c.Params))
		case c.Operation == "SetDesiredCapacity" && c.Error == "ValidationError":
			breaches = append(breaches, fmt.Sprintf("desired was to be set outside min..max: %v", c.Params))
		case c.Operation == "LaunchInstances" && strings.Contains(c.Message, "above max"):
			breaches = append(breaches, fmt.Sprintf("more was to be launched than max allows: %v", c.Params))
		}
	}
	audit, err := s.auditLog()
	breaches = append(breaches, auditBreaches(audit)...)
	breaches = append(breaches, missingRights(audit, s.away)...)
	return append(breaches, earlyCompletions(audit, s.callLog())...), err
}

// auditBreaches looks at what the programs did to pods and nodes.
func auditBreaches(audit []audited) []string {
	var breaches []string
	evicted := map[string]int{}
	for _, a := range audit {
		if !strings.HasPrefix(a.User.Username, ours) {
			continue
		}
		who, what := strings.TrimPrefix(a.User.Username, ours), a.ObjectRef.Namespace+"/"+a.ObjectRef.Name
		switch {
		case a.ObjectRef.Resource == "pods" && strings.HasPrefix(a.Verb, "delete"):
			breaches = append(breaches, fmt.Sprintf("%s deleted pod %s; eviction is the only way", who, what))
		case a.ObjectRef.Subresource == "eviction":
			uid := a.RequestObject.DeleteOptions.Preconditions.UID
			if uid == "" {
				breaches = append(breaches, fmt.Sprintf("%s evicted pod %s without saying which UID", who, what))
			}
			if a.ResponseStatus.Code == 201 {
				evicted[what+" "+uid]++
			}
		}
	}
	for pod, times := range evicted {
		if times > 1 {
			breaches = append(breaches, fmt.Sprintf("pod %s was evicted %d times", pod, times))
		}
	}
	return breaches
}

// missingRights finds what our programs were forbidden. An API server that is not
// ready forbids what it has not read the rules of yet: that is no breach, if the
// same right was granted at another time.
func missingRights(audit []audited, away []span) []string {
	granted := map[string]bool{}
	for _, a := range audit {
		if a.ResponseStatus.Code/100 == 2 {
			granted[a.right()] = true
		}
	}
	var breaches []string
	for _, a := range audit {
		if !strings.HasPrefix(a.User.Username, ours) || a.ResponseStatus.Code != 403 {
			continue
		}
		unready := slices.ContainsFunc(away, func(s span) bool { return s.holds(a.RequestReceivedTimestamp) })
		if unready && granted[a.right()] {
			continue
		}
		breaches = append(breaches, fmt.Sprintf("%s, which it tried at %s", a.right(), a.RequestReceivedTimestamp.Format("15:04:05.000")))
	}
	return breaches
}

// right is what a request needed, in words that say it is missing.
func (a audited) right() string {
	what := a.ObjectRef.Resource
	if a.ObjectRef.Subresource != "" {
		what += "/" + a.ObjectRef.Subresource
	}
	if a.ObjectRef.Namespace != "" {
		what += " in " + a.ObjectRef.Namespace
	}
	return fmt.Sprintf("%s has no right to %s %s", strings.TrimPrefix(a.User.Username, ours), a.Verb, what)
}

func (s *session) auditLog() ([]audited, error) {
	f, err := os.Open(filepath.Join(s.w.Dir, "cluster", "logs", "audit.log"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []audited
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var a audited
		if !json.Valid(lines.Bytes()) {
			continue // the line that the API server was writing when it was killed
		}
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return nil, fmt.Errorf("the audit log: %w", err)
		}
		all = append(all, a)
	}
	return all, lines.Err()
}
