package fakeaws_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/api"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// Every answer that a test of this package gets through the SDK is walked against the service's model: each element must be one that the model knows, of its
// type, with one of its values, and all that it requires must be there. The model is botocore's, as Debian's package python3-botocore installs it. What is newer
// than that is looked up in the types of the SDK for Go, which alone judge where botocore is not installed; they know no element names of EC2.

// botocore is where Debian's package has its models: data/SERVICE/VERSION/service-2.json, or the same with .gz.
const botocore = "/usr/lib/python3/dist-packages/botocore/data"

// model is a service-2.json, as far as answers go.
type model struct {
	Operations map[string]struct{ Output *member }
	Shapes     map[string]*shape
}

type shape struct {
	Type     string
	Members  map[string]*member
	Required []string
	Enum     []string
	Member   *member // of a list
	Value    *member // of a map
}

type member struct{ Shape, LocationName string }

// clients have a method for each operation, whose output is the SDK's type of the answer.
var clients = map[string]reflect.Type{
	"autoscaling": reflect.TypeFor[*autoscaling.Client](), "ec2": reflect.TypeFor[*ec2.Client](), "eks": reflect.TypeFor[*eks.Client](), "sts": reflect.TypeFor[*sts.Client](),
}

var models = map[string]func() (*model, error){}

func init() {
	for service := range clients {
		models[service] = sync.OnceValues(func() (*model, error) { return readModel(service) })
	}
}

// readModel reads the newest version of a service's model. An error that is fs.ErrNotExist says that botocore is not installed.
func readModel(service string) (*model, error) {
	files, err := filepath.Glob(filepath.Join(botocore, service, "*", "service-2.json*"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, fmt.Errorf("no model of %s below %s: %w", service, botocore, os.ErrNotExist))
	}
	file, err := os.Open(slices.Max(files))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // It was only read.
	var text io.Reader = file
	if strings.HasSuffix(file.Name(), ".gz") {
		if text, err = gzip.NewReader(file); err != nil {
			return nil, err
		}
	}
	var m model
	return &m, json.NewDecoder(text).Decode(&m)
}

// node is an element of an answer, in XML or JSON.
type node struct {
	name string
	text string
	kids []node
	json bool
}

func parseXML(text []byte) (node, error) {
	d := xml.NewDecoder(bytes.NewReader(text))
	stack := []node{{}}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return node{}, err
		}
		top := &stack[len(stack)-1]
		switch t := token.(type) {
		case xml.StartElement:
			stack = append(stack, node{name: t.Name.Local})
		case xml.CharData:
			top.text += string(t)
		case xml.EndElement:
			done := *top
			stack = stack[:len(stack)-1]
			stack[len(stack)-1].kids = append(stack[len(stack)-1].kids, done)
		}
	}
	if len(stack[0].kids) != 1 {
		return node{}, fmt.Errorf("%d elements at the top, want one", len(stack[0].kids))
	}
	return stack[0].kids[0], nil
}

func nodeOf(name string, v any) node {
	n := node{name: name, json: true}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.kids = append(n.kids, nodeOf(key, v[key]))
		}
	case []any:
		for _, e := range v {
			n.kids = append(n.kids, nodeOf("member", e))
		}
	default:
		n.text = fmt.Sprint(v)
	}
	return n
}

// conform lists what is wrong with an answer.
func conform(service, operation string, body []byte) ([]string, error) {
	m, err := models[service]()
	if errors.Is(err, os.ErrNotExist) {
		m, err = &model{}, nil
		if service == "ec2" {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	method, ok := clients[service].MethodByName(operation)
	if !ok {
		return []string{"the SDK knows no operation " + operation}, nil
	}
	root, err := answerOf(service, operation, body)
	if err != nil {
		return nil, err
	}
	j := judge{service: service, model: m}
	j.walk(operation, root, m.Operations[operation].Output, method.Type.Out(0))
	return j.problems, nil
}

// answerOf takes an answer out of what its protocol wraps around it.
func answerOf(service, operation string, body []byte) (node, error) {
	if service == "eks" {
		var v any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		err := d.Decode(&v)
		return nodeOf("", v), err
	}
	root, err := parseXML(body)
	if err != nil || root.name != operation+"Response" {
		return node{}, errors.Join(err, fmt.Errorf("the answer of %s is a %s", operation, root.name))
	}
	if service == "ec2" {
		root.kids = slices.DeleteFunc(root.kids, func(n node) bool { return n.name == "requestId" })
		return root, nil
	}
	if len(root.kids) != 2 || root.kids[0].name != operation+"Result" || root.kids[1].name != "ResponseMetadata" {
		return node{}, fmt.Errorf("%sResponse does not hold %[1]sResult and ResponseMetadata", operation)
	}
	return root.kids[0], nil
}

type judge struct {
	service  string
	model    *model
	problems []string
}

func (j *judge) complain(format string, args ...any) {
	j.problems = append(j.problems, fmt.Sprintf(format, args...))
}

// walk judges a node by its shape in the model, and by its type in the SDK. Either may be missing: the one where the SDK is newer, the other where it has no
// field of the member's name.
func (j *judge) walk(path string, n node, ref *member, t reflect.Type) {
	s := &shape{}
	if ref != nil {
		s = j.model.Shapes[ref.Shape]
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch kind := kindOf(s, t); kind {
	case "":
		if len(n.kids) > 0 {
			j.complain("%s: the operation answers nothing", path)
		}
	case "structure":
		j.structure(path, n, s, t)
	case "list":
		for i, kid := range n.kids {
			if want := j.elementName(s); !n.json && kid.name != want {
				j.complain("%s has a %s, want only %s", path, kid.name, want)
			}
			j.walk(fmt.Sprintf("%s.%d", path, i+1), kid, s.Member, elem(t))
		}
	case "map":
		for _, kid := range n.kids {
			j.walk(path+"."+kid.name, kid, s.Value, elem(t))
		}
	default:
		j.scalar(path, n, kind, slices.Concat(s.Enum, valuesOf(t)))
	}
}

func (j *judge) elementName(s *shape) string {
	switch {
	case s.Member != nil && s.Member.LocationName != "":
		return s.Member.LocationName
	case j.service == "ec2":
		return "item"
	}
	return "member"
}

func (j *judge) structure(path string, n node, s *shape, t reflect.Type) {
	seen := map[string]bool{}
	for _, kid := range n.kids {
		name, ref := s.at(kid.name)
		var of reflect.Type
		if t != nil && t.Kind() == reflect.Struct {
			if f, ok := t.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) && field != "ResultMetadata" }); ok {
				of = f.Type
			}
		}
		switch {
		case ref == nil && of == nil:
			j.complain("%s.%s is an element that the service model does not know", path, kid.name)
			continue
		case seen[kid.name]:
			j.complain("%s.%s comes twice", path, kid.name)
		}
		seen[kid.name] = true
		j.walk(path+"."+kid.name, kid, ref, of)
	}
	for _, name := range s.Required {
		if !seen[s.Members[name].element(name)] {
			j.complain("%s.%s is required and missing", path, name)
		}
	}
}

// at is the member that an element stands for; that of the element's own name, and no reference, where the model has none.
func (s *shape) at(element string) (string, *member) {
	for name, m := range s.Members {
		if m.element(name) == element {
			return name, m
		}
	}
	return element, nil
}

func (m *member) element(name string) string {
	if m.LocationName != "" {
		return m.LocationName
	}
	return name
}

// scalar judges a value by its kind, and by its values where they are counted.
func (j *judge) scalar(path string, n node, kind string, values []string) {
	var err error
	switch kind {
	case "boolean":
		if n.text != "true" && n.text != "false" {
			err = errors.New("neither true nor false")
		}
	case "integer", "long":
		_, err = strconv.ParseInt(n.text, 10, 64)
	case "float", "double":
		_, err = strconv.ParseFloat(n.text, 64)
	case "timestamp":
		if _, err = time.Parse(time.RFC3339, n.text); n.json {
			_, err = strconv.ParseFloat(n.text, 64)
		}
	case "blob":
		_, err = base64.StdEncoding.DecodeString(n.text)
	case "string":
		text := n.text
		if strings.HasSuffix(path, ".platform") && text == "windows" {
			text = "Windows" // EC2 answers it in lower case, as its reference says and its model does not.
		}
		if len(values) > 0 && !slices.Contains(values, text) {
			err = errors.New("none of its values")
		}
	default:
		err = fmt.Errorf("a %s, which this test does not know", kind)
	}
	if len(n.kids) > 0 {
		err = errors.New("a structure")
	}
	if err != nil {
		j.complain("%s, a %s, is %q: %v", path, kind, n.text, err)
	}
}

// kindOf is the type of a shape, or what stands for it in the SDK.
func kindOf(s *shape, t reflect.Type) string {
	switch {
	case s.Type != "":
		return s.Type
	case t == nil:
		return ""
	case t == reflect.TypeFor[time.Time]():
		return "timestamp"
	}
	return map[reflect.Kind]string{
		reflect.Struct: "structure", reflect.Slice: "list", reflect.Map: "map", reflect.String: "string", reflect.Bool: "boolean",
		reflect.Int32: "integer", reflect.Int64: "long", reflect.Float32: "float", reflect.Float64: "double",
	}[t.Kind()]
}

func elem(t reflect.Type) reflect.Type {
	if t == nil || t.Kind() != reflect.Slice && t.Kind() != reflect.Map {
		return nil
	}
	return t.Elem()
}

// valuesOf are the values of an enumeration of the SDK.
func valuesOf(t reflect.Type) []string {
	if t == nil || t.Kind() != reflect.String {
		return nil
	}
	values := reflect.New(t).MethodByName("Values")
	if !values.IsValid() {
		return nil
	}
	var texts []string
	for _, v := range values.Call(nil)[0].Seq2() {
		texts = append(texts, v.String())
	}
	return texts
}

// checkAnswer judges the answer to a request of the SDK.
func checkAnswer(t *testing.T, r *http.Request, body []byte) {
	scope := strings.Split(r.Header.Get("Authorization"), "/") // …Credential=KEY/DATE/REGION/SERVICE/aws4_request, …
	service := "sts"                                           // A web identity is not signed.
	if len(scope) > 4 {
		service = scope[3]
	}
	operation := "DescribeCluster"
	switch {
	case service != "eks":
		root, err := parseXML(body)
		if err != nil {
			t.Errorf("an answer of %s: %v", service, err)
		}
		operation = strings.TrimSuffix(root.name, "Response")
	case strings.Contains(r.URL.Path, "/node-groups/"):
		operation = "DescribeNodegroup"
	}
	problems, err := conform(service, operation, body)
	if err != nil {
		t.Errorf("%s: %v", operation, err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// Every operation of the fake is called, in a world that has of everything, and its answer conforms.
func TestConformance(t *testing.T) {
	two := fakeaws.Requirements{
		VCPUs: fakeaws.Range{Min: ptr(2.)}, MemoryMiB: fakeaws.Range{Min: ptr(1024.), Max: ptr(999999.)}, MemoryGiBPerVCPU: fakeaws.Range{Min: ptr(.5)}, Accelerators: fakeaws.Range{Min: ptr(1.)},
		AcceleratorMemoryMiB: fakeaws.Range{Min: ptr(1.)}, AcceleratorTypes: []string{"gpu"}, AcceleratorManufacturers: []string{"nvidia"}, AcceleratorNames: []string{"t4"},
		NetworkInterfaces: fakeaws.Range{Min: ptr(1.)}, Generations: []string{"current"}, LocalStorageGB: fakeaws.Range{Min: ptr(1.)}, LocalStorageTypes: []string{"ssd"},
		CPUManufacturers: []string{"intel"}, ExcludedTypes: []string{"m5.*"}, Burstable: "included", LocalStorage: "required", BareMetal: "excluded",
	}
	b := startSpec(t, fakeaws.Spec{
		LaunchConfigurations: []fakeaws.LaunchConfiguration{{Name: "old", Type: "m5.large", UserData: "x", SpotPrice: "1", Volumes: []fakeaws.Volume{{Device: "/dev/xvda", SizeGiB: 9, Type: "gp3"}}}},
		Images:               []fakeaws.Image{{ID: "ami-0a1b2c3d4e5f60009", Windows: true}},
		LaunchTemplates: []fakeaws.LaunchTemplate{{Name: "base", ID: "lt-0123456789abcdef0", Versions: []fakeaws.TemplateVersion{
			{Type: "m5.large", Description: "d", UserData: "x", Spot: true, Profile: "p", MetadataTags: true, Tags: map[string]string{"k": "v"}, Volumes: []fakeaws.Volume{{}}}, {Requirements: &two}}}},
		Groups: []fakeaws.Group{
			{Name: "web", Max: 9, Desired: desired(3), Type: "m5.large", Tags: map[string]string{"k": "v"}, Suspended: []string{"AZRebalance"}, CapacityRebalance: true, MaxInstanceLifetimeSec: 86400, RetainOnTerminateHookAbandon: true},
			{Name: "spot", Max: 9, Desired: desired(1), Type: "m5.large", Spot: true},
			{Name: "mixed", Max: 9, Desired: desired(4), MixedInstances: &fakeaws.MixedInstances{LaunchTemplate: fakeaws.TemplateRef{Name: "base"}, Overrides: []fakeaws.Override{{Type: "m5.large", Weight: 2, LaunchTemplate: &fakeaws.TemplateRef{Name: "base"}}, {Requirements: &two}}}},
			{Name: "old", Max: 9, Desired: desired(1), LaunchConfiguration: "old", ProtectNewInstances: true}, // Its refresh waits.
			{Name: "warm", Max: 2, Type: "m5.large", WarmPool: &fakeaws.WarmPool{MinSize: 1, MaxPrepared: ptr(2), ReuseOnScaleIn: true}},
			{Name: "hooked", Max: 2, Desired: desired(1), Type: "m5.large", Hooks: []fakeaws.Hook{{Name: "up", Transition: "launch", Metadata: "m", Target: "arn:aws:sqs:eu-west-1:123456789012:q", Role: "arn:aws:iam::123456789012:role/r"}}},
			{Name: "eks", Max: 2, Desired: desired(1), Type: "m7g.large", VolumeGiB: 9, EKS: &fakeaws.Nodegroup{Cluster: "prod", Name: "n", Labels: map[string]string{"a": "b"}, Taints: []fakeaws.Taint{{Key: "k", Effect: "NO_EXECUTE"}}, Tags: map[string]string{"a": "b"}}},
		},
	})
	web := b.waitStates("web", counts{fakeaws.InService: 3})
	b.waitStates("mixed", counts{fakeaws.InService: 2})
	b.waitStates("old", counts{fakeaws.InService: 1})
	b.waitStates("warm", counts{cloud.WarmedStopped: 2})
	b.waitStates("hooked", counts{fakeaws.PendingWait: 1})
	hooked, one, two2, three := must(b.Group("hooked"))(t).Instances[0].ID, web[0].ID, web[1].ID, web[2].ID
	if err := b.SetShortages(fakeaws.Shortage{Group: "spot"}); err != nil {
		t.Fatal(err)
	}
	steps := []struct{ service, operation, params string }{
		{"autoscaling", "DescribeAutoScalingGroups", ""},
		{"autoscaling", "DescribeAutoScalingInstances", ""},
		{"autoscaling", "DescribeLaunchConfigurations", ""},
		{"autoscaling", "DescribeLifecycleHooks", "AutoScalingGroupName=hooked"},
		{"autoscaling", "DescribeWarmPool", "AutoScalingGroupName=warm"},
		{"autoscaling", "DescribeTags", ""},
		{"autoscaling", "SetDesiredCapacity", "AutoScalingGroupName=spot&DesiredCapacity=2"},
		{"autoscaling", "LaunchInstances", "AutoScalingGroupName=spot&ClientToken=a&RequestedCapacity=1"},
		{"autoscaling", "LaunchInstances", "AutoScalingGroupName=web&ClientToken=a&RequestedCapacity=1"},
		{"autoscaling", "RecordLifecycleActionHeartbeat", "AutoScalingGroupName=hooked&LifecycleHookName=up&InstanceId=" + hooked},
		{"autoscaling", "CompleteLifecycleAction", "AutoScalingGroupName=hooked&LifecycleHookName=up&LifecycleActionResult=CONTINUE&InstanceId=" + hooked},
		{"autoscaling", "PutLifecycleHook", "AutoScalingGroupName=web&LifecycleHookName=down&LifecycleTransition=" + cloud.OnTerminate},
		{"autoscaling", "DeleteLifecycleHook", "AutoScalingGroupName=web&LifecycleHookName=down"},
		{"autoscaling", "CreateOrUpdateTags", "Tags.member.1.ResourceId=web&Tags.member.1.Key=k&Tags.member.1.Value=w"},
		{"autoscaling", "DeleteTags", "Tags.member.1.ResourceId=web&Tags.member.1.Key=k"},
		{"autoscaling", "ResumeProcesses", "AutoScalingGroupName=web"},
		{"autoscaling", "SuspendProcesses", "AutoScalingGroupName=web&ScalingProcesses.member.1=AZRebalance"},
		{"autoscaling", "SetInstanceProtection", "AutoScalingGroupName=web&ProtectedFromScaleIn=true&InstanceIds.member.1=" + one},
		{"autoscaling", "SetInstanceHealth", "HealthStatus=Healthy&InstanceId=" + one},
		{"autoscaling", "EnterStandby", "AutoScalingGroupName=web&ShouldDecrementDesiredCapacity=true&InstanceIds.member.1=" + one},
		{"autoscaling", "DescribeAutoScalingGroups", "AutoScalingGroupNames.member.1=web"},
		{"autoscaling", "ExitStandby", "AutoScalingGroupName=web&InstanceIds.member.1=" + one},
		{"autoscaling", "TerminateInstanceInAutoScalingGroup", "ShouldDecrementDesiredCapacity=false&InstanceId=" + two2},
		{"autoscaling", "DetachInstances", "AutoScalingGroupName=web&ShouldDecrementDesiredCapacity=false&InstanceIds.member.1=" + three},
		{"autoscaling", "StartInstanceRefresh", "AutoScalingGroupName=old&Preferences.MinHealthyPercentage=50"},
		{"autoscaling", "DescribeInstanceRefreshes", "AutoScalingGroupName=old"},
		{"autoscaling", "CancelInstanceRefresh", "AutoScalingGroupName=old"},
		{"autoscaling", "DescribeInstanceRefreshes", "AutoScalingGroupName=old"},
		{"autoscaling", "PutWarmPool", "AutoScalingGroupName=web"},
		{"autoscaling", "DeleteWarmPool", "AutoScalingGroupName=warm&ForceDelete=true"},
		{"autoscaling", "CreateAutoScalingGroup", "AutoScalingGroupName=new&MinSize=0&MaxSize=1&AvailabilityZones.member.1=eu-west-1a&LaunchTemplate.LaunchTemplateName=base"},
		{"autoscaling", "UpdateAutoScalingGroup", "AutoScalingGroupName=new&MaxSize=2"},
		{"autoscaling", "DeleteAutoScalingGroup", "AutoScalingGroupName=mixed&ForceDelete=true"},
		{"autoscaling", "DescribeAutoScalingGroups", ""},
		{"autoscaling", "DescribeScalingActivities", ""},
		{"ec2", "DescribeAvailabilityZones", ""},
		{"ec2", "DescribeSubnets", ""},
		{"ec2", "DescribeInstanceTypes", ""},
		{"ec2", "GetInstanceTypesFromInstanceRequirements", "ArchitectureType.1=x86_64&VirtualizationType.1=hvm&InstanceRequirements.VCpuCount.Min=2&InstanceRequirements.MemoryMiB.Min=1"},
		{"ec2", "DescribeSpotPriceHistory", ""},
		{"ec2", "DescribeImages", ""},
		{"ec2", "DescribeLaunchTemplates", ""},
		{"ec2", "DescribeLaunchTemplateVersions", "LaunchTemplateName=base"},
		{"ec2", "TerminateInstances", "InstanceId.1=" + three},
		{"ec2", "DescribeInstances", ""},
		{"eks", "DescribeCluster", "/clusters/prod"},
		{"eks", "DescribeNodegroup", "/clusters/prod/node-groups/n"},
		{"sts", "GetCallerIdentity", ""},
		{"sts", "AssumeRole", "RoleArn=arn:aws:iam::123456789012:role/r&RoleSessionName=s"},
		{"sts", "AssumeRoleWithWebIdentity", "RoleArn=arn:aws:iam::123456789012:role/r&RoleSessionName=s&WebIdentityToken=jwt"},
	}
	called := map[string]map[string]bool{"autoscaling": {}, "ec2": {}, "eks": {}, "sts": {}}
	for _, s := range steps {
		called[s.service][s.operation] = true
		authorization := "AWS4-HMAC-SHA256 Credential=AKIATEST/20260101/eu-west-1/" + s.service + "/aws4_request"
		var status int
		var body string
		if s.service == "eks" {
			status, body = b.send(b.ctx, http.MethodGet, b.URL()+s.params, "", "Authorization", authorization)
		} else {
			form := "Action=" + s.operation + "&Version=x&" + strings.ReplaceAll(url.PathEscape(s.params), ":", "%3A")
			status, body = b.send(b.ctx, http.MethodPost, b.URL(), form, "Authorization", authorization, "Content-Type", "application/x-www-form-urlencoded")
		}
		if status != http.StatusOK {
			t.Errorf("%s %s: %d %s", s.operation, s.params, status, body)
			continue
		}
		problems, err := conform(s.service, s.operation, []byte(body))
		if err != nil {
			t.Errorf("%s: %v", s.operation, err)
		}
		for _, p := range problems {
			t.Error(p)
		}
	}
	for service, operations := range api.Operations {
		for operation := range operations {
			if !called[service][operation] {
				t.Errorf("%s.%s is not called here", service, operation)
			}
		}
	}
	if _, err := models["ec2"](); errors.Is(err, os.ErrNotExist) {
		t.Skipf("answers of EC2, and what is required, were not judged: python3-botocore of Debian is not installed: %v", err)
	}
}

// The judge of answers sees what is wrong with one.
func TestConformanceJudge(t *testing.T) {
	group := func(inside string) string {
		return "<DescribeAutoScalingGroupsResponse><DescribeAutoScalingGroupsResult><AutoScalingGroups>" + inside + "</AutoScalingGroups></DescribeAutoScalingGroupsResult><ResponseMetadata></ResponseMetadata></DescribeAutoScalingGroupsResponse>"
	}
	instance := func(inside string) string {
		return "<DescribeInstancesResponse><requestId>r</requestId><reservationSet><item><instancesSet><item>" + inside + "</item></instancesSet></item></reservationSet></DescribeInstancesResponse>"
	}
	_, missing := models["ec2"]()
	for _, c := range []struct {
		service, operation, body, want string
		modelled                       bool // by botocore alone
	}{
		{"autoscaling", "DescribeAutoScalingGroups", group("<member><Colour>red</Colour></member>"), "AutoScalingGroups.1.Colour is an element that the service model does not know", false},
		{"autoscaling", "DescribeAutoScalingGroups", group("<item></item>"), "has a item, want only member", false},
		{"autoscaling", "DescribeAutoScalingGroups", group("<member><MinSize>few</MinSize></member>"), `MinSize, a integer, is "few"`, false},
		{"autoscaling", "DescribeAutoScalingGroups", group("<member><MinSize>1</MinSize><MinSize>1</MinSize></member>"), "MinSize comes twice", false},
		{"autoscaling", "DescribeAutoScalingGroups", group("<member><CreatedTime>noon</CreatedTime></member>"), `CreatedTime, a timestamp, is "noon"`, false},
		{"autoscaling", "DescribeAutoScalingGroups", group("<member><Instances><member><LifecycleState>Idle</LifecycleState></member></Instances></member>"), `LifecycleState, a string, is "Idle": none of its values`, false},
		{"autoscaling", "DescribeAutoScalingGroups", group("<member><MinSize>1</MinSize></member>"), "AutoScalingGroups.1.MaxSize is required and missing", true},
		{"autoscaling", "LaunchInstances", "<LaunchInstancesResponse><LaunchInstancesResult><Hosts></Hosts></LaunchInstancesResult><ResponseMetadata></ResponseMetadata></LaunchInstancesResponse>", "LaunchInstances.Hosts is an element", false},
		{"ec2", "DescribeInstances", instance("<networkInterfaceSet><item><availabilityZone>eu-west-1a</availabilityZone></item></networkInterfaceSet>"), "networkInterfaceSet.1.availabilityZone is an element that the service model does not know", true},
		{"ec2", "DescribeInstances", instance("<privateDnsName><x></x></privateDnsName>"), "a structure", true},
		{"eks", "DescribeCluster", `{"cluster":{"status":"FINE"}}`, `status, a string, is "FINE": none of its values`, false},
		{"eks", "DescribeCluster", `{"cluster":{"colour":"red"}}`, "cluster.colour is an element", false},
	} {
		if c.modelled && errors.Is(missing, os.ErrNotExist) {
			t.Logf("not judged without botocore: %s", c.want)
			continue
		}
		problems, err := conform(c.service, c.operation, []byte(c.body))
		if err != nil || !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) }) {
			t.Errorf("%s\ngot  %q, %v\nwant %s", c.body, problems, err, c.want)
		}
	}
}
