package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
	"time"

	"windlass.dev/windlass/notifier/happening"
)

// mostOutput is the most bytes that a template may make: no service takes more of a text.
const mostOutput = 16 << 10

// Data is what a template sees. The first fields are those that the templates of the AWS Node
// Termination Handler have; what Windlass does not know of them is empty.
// https://github.com/aws/aws-node-termination-handler/blob/main/docs/webhook-template.md
type Data struct {
	EventID, Kind, Monitor, Description, State, AutoScalingGroupName, NodeName string
	InstanceID, ProviderID, StartTime, EndTime                                 string
	InstanceType, InstanceLifeCycle, AccountId, AvailabilityZone, Region       string
	PublicHostname, PublicIP, LocalHostname, LocalIP                           string
	IsManaged, InProgress, NodeProcessed                                       bool
	NodeLabels                                                                 map[string]string
	Pods                                                                       []string

	// Of our own.
	Cluster, Title, Text, Phase, Severity string
	Nodes                                 int
	Ended                                 bool
	Facts                                 []Fact
	// Of are the happenings that the message is about, with all that is known of each.
	Of []happening.Happening
}

// ForSlack writes the three characters that mean something to Slack, such as in <!channel>, as it
// wants them where they are text.
// https://docs.slack.dev/messaging/formatting-message-text#escaping
var ForSlack = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// functions are those that a template has beside Go's: what tenants name stands in messages, and is
// to end neither a JSON string nor a sentence.
var functions = template.FuncMap{
	"json": func(text string) (string, error) {
		quoted, err := json.Marshal(text)
		return string(quoted), err
	},
	"slack": ForSlack.Replace,
}

// Template is one of the user's.
type Template struct{ parsed *template.Template }

// ParseTemplate reads a template, and tries it.
func ParseTemplate(name, text string) (*Template, error) {
	parsed, err := template.New(name).Funcs(functions).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	t := &Template{parsed}
	sample := happening.Happening{ID: "sample", Kind: happening.Interruption, Phase: happening.Draining, Node: "node", Members: map[string]happening.Phase{}}
	if _, err := t.On(Message{Of: []happening.Happening{sample}}, Cluster{}); err != nil {
		return nil, err
	}
	return t, nil
}

// On is a message as a template says it.
func (t *Template) On(m Message, c Cluster) (Message, error) {
	var out limited
	if err := t.parsed.Execute(&out, data(m, c)); err != nil {
		return Message{}, fmt.Errorf("template: %w", err)
	}
	m.Text, m.Own = out.String(), true
	return m, nil
}

// limited takes so much, and no more.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > mostOutput {
		return 0, fmt.Errorf("it makes more than %d bytes", mostOutput)
	}
	return l.Builder.Write(p)
}

// kinds are the Node Termination Handler's words for kinds of notices.
var kinds = map[string]string{"spot": "SPOT_ITN", "asg": "ASG_LIFECYCLE", "maintenance": "SCHEDULED_EVENT", "rebalance": "REBALANCE_RECOMMENDATION"}

func data(m Message, c Cluster) Data {
	d := Data{
		Kind: m.Kind, Monitor: m.Kind, Description: cmp.Or(m.Text, m.Title), EventID: m.ID,
		Cluster: c.Name, Nodes: c.Nodes, Title: m.Title, Text: m.Text, Severity: m.Severity.String(), Ended: m.Ended, Facts: m.Facts, Of: m.Of,
	}
	if len(m.Of) == 0 {
		return d
	}
	h := &m.Of[0]
	d.Phase, d.NodeName, d.InstanceID, d.AutoScalingGroupName = string(h.Phase), h.Node, h.Instance, h.Group
	d.StartTime, d.Pods, d.AvailabilityZone = moment(h.Began), h.For, h.Zone
	d.InProgress, d.NodeProcessed, d.IsManaged = !h.Over(), h.Over(), true
	if h.Kind == happening.Interruption {
		d.EventID, d.Kind = h.NoticeID, cmp.Or(kinds[h.Notice], h.Notice)
		d.Monitor, d.EndTime = d.Kind+"_MONITOR", moment(h.Deadline)
		d.StartTime = cmp.Or(moment(h.Deadline), d.StartTime) // when the instance goes, as there
	}
	return d
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
