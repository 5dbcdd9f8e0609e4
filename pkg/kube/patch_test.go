package kube

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	webhook "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"pgregory.net/rapid"
)

// server holds one Node and applies patches as the API server does: with the
// same library, and with the same words when that fails.
type server struct {
	node *corev1.Node
	err  error // answered in place of anything else
}

var _ NodePatcher = (*server)(nil)

func (s *server) Patch(_ context.Context, name string, kind types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Node, error) {
	if s.err != nil {
		return nil, s.err
	}
	nodes := schema.GroupResource{Resource: "nodes"}
	if s.node == nil || s.node.Name != name {
		return nil, apierrors.NewNotFound(nodes, name)
	}
	if kind != types.JSONPatchType {
		return nil, apierrors.NewBadRequest("unexpected patch type " + string(kind))
	}
	before, err := json.Marshal(s.node)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	after, err := patch.Apply(before)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	node := new(corev1.Node)
	if err := json.Unmarshal(after, node); err != nil {
		return nil, err
	}
	s.touch(node)
	return node.DeepCopy(), nil
}

// touch stores the Node under the next resourceVersion.
func (s *server) touch(node *corev1.Node) {
	version, err := strconv.Atoi(s.node.ResourceVersion)
	if err != nil {
		panic(err)
	}
	node.ResourceVersion = strconv.Itoa(version + 1)
	s.node = node
}

// change is somebody else's write.
func (s *server) change(f func(*corev1.Node)) {
	node := s.node.DeepCopy()
	f(node)
	s.touch(node)
}

func newServer() *server {
	return &server{node: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n1", UID: "u1", ResourceVersion: "7",
			Annotations: map[string]string{"example.com/old": "1", "example.com/kept": "k"},
			Labels:      map[string]string{"zone": "a"},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}},
	}}
}

var draining = corev1.Taint{Key: "example.com/draining", Value: "spot", Effect: corev1.TaintEffectNoSchedule}

// The bytes that go over the wire, for each part of a Node alone.
func TestNewNodePatch(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*NodeState)
		guard  Guard
		want   string
	}{
		"nothing": {func(*NodeState) {}, GuardVersion, `null`},
		"a new annotation": {
			func(s *NodeState) { s.Annotations["example.com/new"] = "a/b~c" }, GuardKeys,
			`[{"op":"test","path":"/metadata/uid","value":"u1"},` +
				`{"op":"test","path":"/metadata/annotations/example.com~1new","value":null},` +
				`{"op":"add","path":"/metadata/annotations/example.com~1new","value":"a/b~c"}]`,
		},
		"an annotation changed and one removed": {
			func(s *NodeState) { s.Annotations["example.com/kept"] = ""; delete(s.Annotations, "example.com/old") }, GuardKeys,
			`[{"op":"test","path":"/metadata/uid","value":"u1"},` +
				`{"op":"test","path":"/metadata/annotations/example.com~1kept","value":"k"},` +
				`{"op":"test","path":"/metadata/annotations/example.com~1old","value":"1"},` +
				`{"op":"add","path":"/metadata/annotations/example.com~1kept","value":""},` +
				`{"op":"remove","path":"/metadata/annotations/example.com~1old"}]`,
		},
		"a label, guarded by version": {
			func(s *NodeState) { s.Labels["a~b"] = "x" }, GuardVersion,
			`[{"op":"test","path":"/metadata/uid","value":"u1"},` +
				`{"op":"test","path":"/metadata/resourceVersion","value":"7"},` +
				`{"op":"test","path":"/metadata/labels/a~0b","value":null},` +
				`{"op":"add","path":"/metadata/labels/a~0b","value":"x"}]`,
		},
		"taints are always guarded by version": {
			func(s *NodeState) { s.Taints = append(s.Taints, draining) }, GuardKeys,
			`[{"op":"test","path":"/metadata/uid","value":"u1"},` +
				`{"op":"test","path":"/metadata/resourceVersion","value":"7"},` +
				`{"op":"add","path":"/spec/taints","value":[` +
				`{"key":"dedicated","value":"gpu","effect":"NoSchedule"},` +
				`{"key":"example.com/draining","value":"spot","effect":"NoSchedule"}]}]`,
		},
		"the last taint goes": {
			func(s *NodeState) { s.Taints = nil }, GuardKeys,
			`[{"op":"test","path":"/metadata/uid","value":"u1"},` +
				`{"op":"test","path":"/metadata/resourceVersion","value":"7"},` +
				`{"op":"remove","path":"/spec/taints"}]`,
		},
		"cordon": {
			func(s *NodeState) { s.Unschedulable = true }, GuardKeys,
			`[{"op":"test","path":"/metadata/uid","value":"u1"},` +
				`{"op":"test","path":"/spec/unschedulable","value":null},` +
				`{"op":"add","path":"/spec/unschedulable","value":true}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			was := StateOf(newServer().node)
			want := was.Clone()
			tc.change(&want)
			patch := NewNodePatch(was, want, tc.guard)
			body, err := json.Marshal(patch.Ops)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(body)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if patch.Empty() != (tc.want == "null") {
				t.Errorf("Empty() = %v", patch.Empty())
			}
		})
	}
}

// What others may write between our look and our patch, and what they may not.
func TestSendAfterAChangeByOthers(t *testing.T) {
	ours := func(s *NodeState) {
		s.Annotations["example.com/new"] = "1"
		delete(s.Annotations, "example.com/old")
		s.Unschedulable = true
	}
	for name, tc := range map[string]struct {
		ours   func(*NodeState)
		guard  Guard
		others func(*corev1.Node)
		fails  bool
	}{
		"nobody":                       {ours, GuardVersion, nil, false},
		"an annotation that we leave":  {ours, GuardKeys, func(n *corev1.Node) { n.Annotations["example.com/kept"] = "x" }, false},
		"the same, guarded by version": {ours, GuardVersion, func(n *corev1.Node) { n.Annotations["example.com/kept"] = "x" }, true},
		"the annotation that we add":   {ours, GuardKeys, func(n *corev1.Node) { n.Annotations["example.com/new"] = "1" }, true},
		"the annotation that we take":  {ours, GuardKeys, func(n *corev1.Node) { n.Annotations["example.com/old"] = "2" }, true},
		"took it before us":            {ours, GuardKeys, func(n *corev1.Node) { delete(n.Annotations, "example.com/old") }, true},
		"took all annotations":         {ours, GuardKeys, func(n *corev1.Node) { n.Annotations = nil }, true},
		"a person's cordon":            {ours, GuardKeys, func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"taints, which we leave":       {ours, GuardKeys, func(n *corev1.Node) { n.Spec.Taints = nil }, false},
		"another node of that name":    {ours, GuardKeys, func(n *corev1.Node) { n.UID = "u2" }, true},
		"a label while we write taints": {
			func(s *NodeState) { s.Taints = append(s.Taints, draining) }, GuardKeys,
			func(n *corev1.Node) { n.Labels["x"] = "y" }, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			was := StateOf(s.node)
			want := was.Clone()
			tc.ours(&want)
			if tc.others != nil {
				s.change(tc.others)
			}
			before := s.node

			_, err := Send(t.Context(), s, NewNodePatch(was, want, tc.guard))
			if errors.Is(err, ErrChanged) != tc.fails || (err == nil) == tc.fails {
				t.Fatalf("error %v, want ErrChanged: %v", err, tc.fails)
			}
			if tc.fails && s.node != before {
				t.Errorf("a part was written: %v", s.node)
			}
		})
	}
}

// Without interference a patch makes exactly the state that was asked for,
// from any state, and asking for it again is nothing.
func TestPatchLeadsToWhatIsWanted(t *testing.T) {
	key := rapid.SampledFrom([]string{"a", "b/c", "d~e", "f/~g", "h"})
	value := rapid.SampledFrom([]string{"", "1", "2"})
	values := rapid.MapOf(key, value)
	taints := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) corev1.Taint {
		return corev1.Taint{Key: key.Draw(t, "key"), Value: value.Draw(t, "value"), Effect: corev1.TaintEffectNoSchedule}
	}), 0, 3, func(taint corev1.Taint) string { return taint.Key })
	state := func(t *rapid.T, name string) NodeState {
		return NodeState{
			Name: "n", UID: "u", ResourceVersion: "1",
			Annotations: values.Draw(t, name+" annotations"), Labels: values.Draw(t, name+" labels"),
			Taints: taints.Draw(t, name+" taints"), Unschedulable: rapid.Bool().Draw(t, name+" unschedulable"),
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		was, want := state(t, "was"), state(t, "want")
		s := &server{node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "1", Annotations: maps.Clone(was.Annotations), Labels: maps.Clone(was.Labels)},
			Spec:       corev1.NodeSpec{Taints: was.Taints, Unschedulable: was.Unschedulable},
		}}
		patch := NewNodePatch(StateOf(s.node), want, GuardKeys)
		if _, err := Send(context.Background(), s, patch); err != nil {
			t.Fatalf("%v\n%s", err, patch)
		}
		got := StateOf(s.node)
		want.ResourceVersion = got.ResourceVersion
		if again := NewNodePatch(got, want, GuardVersion); !again.Empty() {
			t.Fatalf("still to do after %s:\n%s", patch, again)
		}
	})
}

func TestSendErrors(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	for name, tc := range map[string]struct {
		err     error
		changed bool
	}{
		"gone":      {apierrors.NewNotFound(nodes, "n1"), true},
		"conflict":  {apierrors.NewConflict(nodes, "n1", errors.New("busy")), true},
		"forbidden": {apierrors.NewForbidden(nodes, "n1", errors.New("no")), false},
		"invalid":   {apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "n1", field.ErrorList{field.Required(field.NewPath("spec"), "")}), false},
		"overload":  {apierrors.NewTooManyRequests("later", 1), false},
		"network":   {errors.New("connection refused"), false},

		"a webhook's not found": {deniedBy(http.StatusNotFound, metav1.StatusReasonNotFound), false},
		"a webhook's conflict":  {deniedBy(http.StatusConflict, metav1.StatusReasonConflict), false},
		"a webhook's 422":       {deniedBy(http.StatusUnprocessableEntity, ""), false},
		"a policy's 422":        {deniedByPolicy(), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			s.err = tc.err
			was := StateOf(s.node)
			want := was.Clone()
			want.Unschedulable = true
			_, err := Send(t.Context(), s, NewNodePatch(was, want, GuardKeys))
			if errors.Is(err, ErrChanged) != tc.changed {
				t.Errorf("%v is ErrChanged: %v, want %v", err, !tc.changed, tc.changed)
			}
			if !errors.Is(err, tc.err) || !strings.Contains(err.Error(), tc.err.Error()) {
				t.Errorf("%v does not wrap its cause", err)
			}
		})
	}
}

// deniedBy is what the API server makes of a webhook's answer.
func deniedBy(code int32, reason metav1.StatusReason) error {
	return webhook.ToStatusErr("guard.example.com", &metav1.Status{Code: code, Reason: reason, Message: "not now"})
}

// deniedByPolicy is what a ValidatingAdmissionPolicy answers that gives no reason
// (k8s.io/apiserver, pkg/admission/plugin/policy/validating).
func deniedByPolicy() error {
	message := "ValidatingAdmissionPolicy 'guard' with binding 'guard' denied request: not now"
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n1", errors.New(message))
	err.ErrStatus.Reason, err.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Message: message})
	return err
}

func TestEmptyPatchIsNotSent(t *testing.T) {
	s := newServer()
	was := StateOf(s.node)
	s.err = errors.New("was sent")
	if _, err := Send(t.Context(), s, NewNodePatch(was, was.Clone(), GuardVersion)); err != nil {
		t.Error(err)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	s := newServer()
	now := metav1.Now()
	s.node.Spec.Taints[0].TimeAdded = &now
	was := StateOf(s.node)
	clone := was.Clone()
	clone.Annotations["example.com/old"] = "changed"
	clone.Labels["zone"] = "changed"
	clone.Taints[0].Value = "changed"
	clone.Taints[0].TimeAdded.Time = now.Add(1)
	if diff := cmp.Diff(StateOf(s.node), was); diff != "" {
		t.Errorf("changing the clone changed the original (-want +got):\n%s", diff)
	}
}
