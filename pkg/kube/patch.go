package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ErrChanged means that the Node is not what the patch expects: somebody wrote
// to it in between, or it is gone, or another Node has its name. Nothing was
// written. Look again and decide anew.
var ErrChanged = errors.New("the node changed in between")

// Guard says which changes by others make a patch fail, beside those that
// always do (see NewNodePatch).
type Guard int

const (
	// GuardKeys lets others change whatever this patch does not write.
	GuardKeys Guard = iota
	// GuardVersion lets nobody change anything: for decisions that rest on the
	// Node as a whole, such as the point of no return.
	GuardVersion
)

// Op is one operation of a JSON patch (RFC 6902).
type Op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// MarshalJSON keeps the value of test and add even where it is null or false:
// null is how a test says "must not exist".
func (o Op) MarshalJSON() ([]byte, error) {
	if o.Op == "remove" {
		return json.Marshal(map[string]any{"op": o.Op, "path": o.Path})
	}
	return json.Marshal(map[string]any{"op": o.Op, "path": o.Path, "value": o.Value})
}

// NodePatch is one atomic write to a Node: either all of it happens, or, if
// the Node is not as expected, nothing does.
type NodePatch struct {
	// Name is the Node's.
	Name string
	// Ops begins with what is expected and ends with what is written. It is
	// empty if there is nothing to write.
	Ops []Op
}

// NewNodePatch returns what leads from was to want, guarded so that it is
// written only if
//
//   - the Node is the same one (its UID), not a new one of the same name;
//   - each annotation and label that is written, and spec.unschedulable if that
//     is, still has the value it has in was, or still does not exist;
//   - nothing else was written to the Node either, if guard is GuardVersion,
//     and always if taints are written: they are one list on the server, and
//     writing it would undo what somebody else put there meanwhile.
//
// Name, UID and ResourceVersion are taken from was.
func NewNodePatch(was, want NodeState, guard Guard) NodePatch {
	var d diff
	d.keys("/metadata/annotations", was.Annotations, want.Annotations)
	d.keys("/metadata/labels", was.Labels, want.Labels)
	d.taints(was.Taints, want.Taints)
	d.unschedulable(was.Unschedulable, want.Unschedulable)
	if len(d.writes) == 0 {
		return NodePatch{Name: was.Name}
	}

	ops := []Op{{Op: "test", Path: "/metadata/uid", Value: was.UID}}
	if guard == GuardVersion || d.whole {
		ops = append(ops, Op{Op: "test", Path: "/metadata/resourceVersion", Value: was.ResourceVersion})
	}
	return NodePatch{Name: was.Name, Ops: slices.Concat(ops, d.tests, d.writes)}
}

// Empty reports whether there is nothing to write.
func (p NodePatch) Empty() bool { return len(p.Ops) == 0 }

// diff gathers the operations of a patch.
type diff struct {
	tests, writes []Op
	// whole is set by writes that replace something others may write to.
	whole bool
}

func (d *diff) test(path string, value any)     { d.tests = append(d.tests, Op{"test", path, value}) }
func (d *diff) add(path string, value any)      { d.writes = append(d.writes, Op{"add", path, value}) }
func (d *diff) remove(path string)              { d.writes = append(d.writes, Op{"remove", path, nil}) }
func pointer(parent, key string) string         { return parent + "/" + escape.Replace(key) }
func sameTaints(a, b []corev1.Taint) bool       { return apiequality.Semantic.DeepEqual(a, b) }
func hasKey(m map[string]string, k string) bool { _, ok := m[k]; return ok }

// escape writes a key into a JSON pointer (RFC 6901).
var escape = strings.NewReplacer("~", "~0", "/", "~1")

// keys changes the members of a string map that differ.
func (d *diff) keys(parent string, was, want map[string]string) {
	if maps.Equal(was, want) {
		return
	}
	if len(was) == 0 {
		// The map may not exist, and cannot be told from an empty one. To add
		// it would replace one that came up meanwhile.
		d.add(parent, want)
		d.whole = true
		return
	}
	all := cloneMap(was)
	maps.Copy(all, want)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		d.key(pointer(parent, key), key, was, want)
	}
}

func (d *diff) key(path, key string, was, want map[string]string) {
	had, has := hasKey(was, key), hasKey(want, key)
	if had == has && was[key] == want[key] {
		return
	}
	if !had {
		d.test(path, nil)
		d.add(path, want[key])
		return
	}
	d.test(path, was[key])
	if !has {
		d.remove(path)
		return
	}
	d.add(path, want[key])
}

func (d *diff) taints(was, want []corev1.Taint) {
	const path = "/spec/taints"
	if sameTaints(was, want) {
		return
	}
	d.whole = true
	if len(want) == 0 {
		d.remove(path)
		return
	}
	d.add(path, want)
}

// unschedulable is tested too: if a person cordons the Node just before we do,
// the cordon is theirs, and must not come to bear our mark.
func (d *diff) unschedulable(was, want bool) {
	const path = "/spec/unschedulable"
	if was == want {
		return
	}
	var expected any // false is left out of the Node's JSON
	if was {
		expected = true
	}
	d.test(path, expected)
	d.add(path, want)
}

// NodePatcher sends patches of Nodes. A typed core/v1 NodeInterface is one.
type NodePatcher interface {
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*corev1.Node, error)
}

// Send writes the patch and returns the Node as it is then. The error is
// ErrChanged if the Node is not as the patch expects; it is apierrors'
// IsNotFound too if there is no such Node. An empty patch is not sent: the
// Node returned is nil then.
func Send(ctx context.Context, nodes NodePatcher, patch NodePatch) (*corev1.Node, error) {
	if patch.Empty() {
		return nil, nil
	}
	body, err := json.Marshal(patch.Ops)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch of node %s: %w", patch.Name, err)
	}
	node, err := nodes.Patch(ctx, patch.Name, types.JSONPatchType, body, metav1.PatchOptions{})
	if err == nil {
		return node, nil
	}
	if unexpected(err) {
		return nil, fmt.Errorf("patching node %s: %w: %w", patch.Name, ErrChanged, err)
	}
	return nil, fmt.Errorf("patching node %s: %w", patch.Name, err)
}

// unexpected tells "the Node is not as the patch expects" from other failures.
//
// A failed test, like the removal of what is not there, is answered with 422
// and nothing but that (k8s.io/apiserver, endpoints/handlers/patch.go: the
// reason is dropped). A patch whose outcome is not a valid Node is answered
// with 422 too, but then names the fields; that is a mistake of ours. What an admission
// webhook denies it denies again however often the Node is looked at: whoever reads the
// error is told which one.
func unexpected(err error) bool {
	if Denied(err) {
		return false
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	s := status.Status()
	return s.Code == http.StatusUnprocessableEntity && (s.Details == nil || len(s.Details.Causes) == 0)
}
