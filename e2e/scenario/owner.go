package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/fleet"
)

// owner KIND/[NAMESPACE/]NAME: replicas=1. Where no line says of any that it is there,
// nobody knows which are.
func owner(w *World, l line) error {
	kind, name, err := kindAndName(l.name)
	if err != nil {
		return err
	}
	namespace, name, _ := strings.Cut(podKey(name), "/")
	o := fleet.Owner{Replicas: 1}
	words := table[fleet.Owner]{"replicas": setter(integer, func(o *fleet.Owner, n int) { o.Replicas = int32(n) })}
	if err := words.apply(&o, l.words); err != nil {
		return err
	}
	if w.Owners == nil {
		w.Owners = map[types.UID]fleet.Owner{}
	}
	w.Owners[ownerUID(kind, namespace, name)] = o
	return nil
}

// ownerReference is a pod's to its controller, in the usual API group of that kind.
func ownerReference(kind, namespace, name string) *metav1.OwnerReference {
	versions := map[string]string{"ReplicationController": "v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1"}
	version, usual := versions[kind]
	if !usual {
		version = "example.com/v1"
	}
	return &metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: ownerUID(kind, namespace, name)}
}

func ownerUID(kind, namespace, name string) types.UID {
	return types.UID(fmt.Sprintf("uid-%s/%s/%s", kind, namespace, name))
}

func (p *printer) owners(owners map[types.UID]fleet.Owner) {
	for _, uid := range slices.Sorted(maps.Keys(owners)) {
		kind, key, _ := strings.Cut(strings.TrimPrefix(string(uid), "uid-"), "/")
		p.line("owner", kind+"/"+strings.TrimPrefix(key, metav1.NamespaceDefault+"/"), fmt.Sprintf("replicas=%d", owners[uid].Replicas))
	}
}
