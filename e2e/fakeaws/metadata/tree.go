// Package metadata is the instance metadata service, version 2, of one instance: an HTTP server at an address of its own.
//
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-v2-how-it-works.html
package metadata

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// View is what the service shows at one moment.
type View struct {
	Instance cloud.Instance
	Notices  cloud.Notices
	Region   string
	Account  string
}

// meta is where most of the tree hangs.
const meta = "meta-data/"

// Tree is the whole content below /latest/, by path. What is not in it is answered with 404, as AWS does for what does not apply.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-categories.html
func (v View) Tree() map[string]string {
	i := v.Instance
	life := "on-demand"
	if i.Spot {
		life = "spot"
	}
	tree := map[string]string{
		meta + "ami-id":                         i.Image,
		meta + "hostname":                       i.PrivateDNSName,
		meta + "instance-action":                "none",
		meta + "instance-id":                    i.ID,
		meta + "instance-life-cycle":            life,
		meta + "instance-type":                  i.Type,
		meta + "local-hostname":                 i.PrivateDNSName,
		meta + "local-ipv4":                     i.PrivateIP,
		meta + "mac":                            mac(i.PrivateIP),
		meta + "placement/availability-zone":    i.Zone,
		meta + "placement/availability-zone-id": i.ZoneID,
		meta + "placement/region":               v.Region,
		meta + "reservation-id":                 "r-" + strings.TrimPrefix(i.ID, "i-"),
		meta + "services/domain":                "amazonaws.com",
		meta + "services/partition":             "aws",
		"dynamic/instance-identity/document":    v.identity(),
	}
	v.addNotices(tree)
	v.addRole(tree)
	if v.Notices.UserData != "" {
		tree["user-data"] = v.Notices.UserData
	}
	if v.Notices.MetadataTags {
		for key, value := range i.Tags {
			tree[meta+"tags/instance/"+key] = value
		}
	}
	return tree
}

func (v View) addNotices(tree map[string]string) {
	n := v.Notices
	if n.Target != "" {
		tree[meta+"autoscaling/target-lifecycle-state"] = n.Target
	}
	if n.SpotAction != "" {
		// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
		tree[meta+"spot/instance-action"] = jsonOf(spotAction{n.SpotAction, stamp(n.SpotTime)})
		if n.SpotAction == "terminate" {
			tree[meta+"spot/termination-time"] = stamp(n.SpotTime)
		}
	}
	if !n.Rebalance.IsZero() {
		// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html
		tree[meta+"events/recommendations/rebalance"] = jsonOf(rebalance{stamp(n.Rebalance)})
	}
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/viewing_scheduled_events.html
	tree[meta+"events/maintenance/scheduled"] = jsonOf(eventShapes(n.Scheduled))
	tree[meta+"events/maintenance/history"] = jsonOf(eventShapes(n.History))
}

// addRole gives the credentials of the instance profile; nothing checks them.
func (v View) addRole(tree map[string]string) {
	role := v.Notices.Profile
	if role == "" {
		return
	}
	tree[meta+"iam/info"] = jsonOf(map[string]string{
		"Code": "Success", "LastUpdated": stamp(v.Instance.LaunchedAt), "InstanceProfileArn": "arn:aws:iam::" + v.Account + ":instance-profile/" + role,
	})
	tree[meta+"iam/security-credentials/"+role] = jsonOf(map[string]string{
		"Code": "Success", "LastUpdated": stamp(v.Instance.LaunchedAt), "Type": "AWS-HMAC", "AccessKeyId": "ASIA" + strings.ToUpper(v.Instance.ID[3:19]),
		"SecretAccessKey": "fake", "Token": "fake", "Expiration": stamp(v.Instance.LaunchedAt.Add(10 * 365 * 24 * time.Hour)),
	})
}

type spotAction struct {
	Action string `json:"action"`
	Time   string `json:"time"`
}

type rebalance struct {
	NoticeTime string `json:"noticeTime"`
}

// maintenance is a maintenance event in the words of the service.
type maintenance struct {
	NotBefore         string
	Code              string
	Description       string
	EventID           string `json:"EventId"`
	NotAfter          string `json:",omitempty"`
	NotBeforeDeadline string `json:",omitempty"`
	State             string
}

// eventTime is the layout of the times of maintenance events.
const eventTime = "2 Jan 2006 15:04:05 GMT"

func eventShapes(events []cloud.MaintenanceEvent) []maintenance {
	shapes := []maintenance{} // An empty list is written as [].
	for _, e := range events {
		shapes = append(shapes, maintenance{
			NotBefore: eventStamp(e.NotBefore), NotAfter: eventStamp(e.NotAfter), NotBeforeDeadline: eventStamp(e.NotBeforeDeadline),
			Code: e.Code, Description: e.Description, EventID: e.ID, State: e.State,
		})
	}
	return shapes
}

func eventStamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(eventTime)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// identity is the instance identity document.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/retrieve-iid.html
func (v View) identity() string {
	i := v.Instance
	return jsonOf(struct {
		AccountID        string `json:"accountId"`
		Architecture     string `json:"architecture"`
		AvailabilityZone string `json:"availabilityZone"`
		ImageID          string `json:"imageId"`
		InstanceID       string `json:"instanceId"`
		InstanceType     string `json:"instanceType"`
		PendingTime      string `json:"pendingTime"`
		PrivateIP        string `json:"privateIp"`
		Region           string `json:"region"`
		Version          string `json:"version"`
	}{v.Account, string(i.TypeOf().Arch), i.Zone, i.Image, i.ID, i.Type, stamp(i.LaunchedAt), i.PrivateIP, v.Region, "2017-09-30"})
}

// mac is an address made of the IPv4 address.
func mac(ip string) string {
	var a, b, c, d int
	if _, err := fmt.Sscanf(ip, "%d.%d.%d.%d", &a, &b, &c, &d); err != nil {
		return "0a:00:00:00:00:00"
	}
	return fmt.Sprintf("0a:ff:%02x:%02x:%02x:%02x", a, b, c, d)
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "" // Only plain structures come here.
	}
	return string(b)
}

// list is the answer for a directory: the names below it, those of directories with a slash. It is "" where there is none.
func list(tree map[string]string, dir string) string {
	if dir != "" && !strings.HasSuffix(dir, "/") {
		dir += "/"
	}
	var names []string
	for path := range tree {
		rest, ok := strings.CutPrefix(path, dir)
		if !ok {
			continue
		}
		if name, _, deeper := strings.Cut(rest, "/"); deeper {
			rest = name + "/"
		}
		names = append(names, rest)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "\n")
}
