package action

import "fmt"

// Pods with volumes on a machine that is switched off do not come back by themselves: their kubelet
// can end no pod, so a StatefulSet makes no successor, and no volume is detached that may be in
// use. The taint node.kubernetes.io/out-of-service says that the machine is down: Kubernetes
// deletes the pods by force then and detaches their volumes at once. A machine that runs after all
// would lose what it writes. So only EC2's word counts, a fresh one, and only "stopped" and
// "terminated". Every other state may run, and so may what EC2 does not know: it forgets terminated
// instances after an hour, and forgets none that runs.
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-storage/2268-non-graceful-shutdown

// OutOfService puts the taint of that name on a node, if it still is not Ready, has volumes,
// is the only Node of the instance, and EC2 says at that moment that the instance is down.
type OutOfService struct {
	Group    string
	Node     NodeRef
	Instance string
	// Why is a sentence for people.
	Why string
}

func (a OutOfService) String() string {
	return fmt.Sprintf("mark %s out of service: %s", a.Node, a.Why)
}

// InServiceAgain takes that taint off, if it is ours, and our annotation with it.
type InServiceAgain struct {
	Group string
	Node  NodeRef
	Why   string
}

func (a InServiceAgain) String() string {
	return fmt.Sprintf("mark %s in service again: %s", a.Node, a.Why)
}
