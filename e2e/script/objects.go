package script

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Objects are all objects of a cluster that people or programs have written, by their kind,
// namespace and name.
type Objects map[string]map[string]any

// passing are kinds that come and go by themselves: what happens, who is alive, and what
// controllers make of others' objects.
var passing = map[string]bool{
	"events": true, "leases": true, "leasecandidates": true, "pods": true, "endpoints": true, "endpointslices": true, "replicasets": true, "controllerrevisions": true, "componentstatuses": true, "apiservices": true,
}

// own is what of an object's metadata the API server writes.
var own = []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"}

// Dump reads the objects of all kinds that the API server has now. Of none it has the status, or what
// the API server keeps for itself.
func (a *Asker) Dump(ctx context.Context) (Objects, error) {
	a.reread()
	lists, err := a.kinds()
	if err != nil {
		return nil, fmt.Errorf("asking which kinds there are: %w", err)
	}
	objects := Objects{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading the kinds: %w", err)
		}
		for _, r := range list.APIResources {
			if passing[r.Name] || strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") {
				continue
			}
			if err := a.dump(ctx, version.WithResource(r.Name), objects); err != nil {
				return nil, err
			}
		}
	}
	return objects, nil
}

func (a *Asker) dump(ctx context.Context, kind schema.GroupVersionResource, into Objects) error {
	list, err := a.client.Resource(kind).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing %s: %w", kind.Resource, err)
	}
	return meta.EachListItem(list, func(o runtime.Object) error {
		u := o.(*unstructured.Unstructured)
		delete(u.Object, "status")
		metadata := u.Object["metadata"].(map[string]any)
		for _, field := range own {
			delete(metadata, field)
		}
		for _, field := range []string{"annotations", "labels"} { // an empty one is none
			if values, has := metadata[field].(map[string]any); has && len(values) == 0 {
				delete(metadata, field)
			}
		}
		into[fmt.Sprintf("%s %s/%s", kind.GroupResource(), u.GetNamespace(), u.GetName())] = u.Object
		return nil
	})
}

// perNode are kinds of which each node has one.
var perNode = []string{"nodes ", "csinodes.storage.k8s.io "}

// Common are the objects of both, but for nodes that are only in one.
func (o Objects) Common(other Objects) Objects {
	common := maps.Clone(o)
	maps.DeleteFunc(common, func(key string, _ map[string]any) bool {
		_, has := other[key]
		return !has && slices.ContainsFunc(perNode, func(kind string) bool { return strings.HasPrefix(key, kind) })
	})
	return common
}
