package world

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// joiner makes the cluster's Nodes follow the cloud's instances, as kubelets and
// the AWS cloud controller do together: a Node for an instance whose operating
// system is up, NotReady while it is down, none once the instance is gone. It
// looks at the newest snapshot of an instance only, and tries again while the
// API server is away.
type joiner struct {
	client   kubernetes.Interface
	region   string
	groups   func(name string) (cloud.Group, bool)
	disk     func(cloud.Instance) int               // GiB of the root volume
	readyAt  func(group string) time.Time           // of a node that starts now
	powerOff func(node string)                      // ends what really runs there
	powerOn  func(ctx context.Context, node string) // and runs it again
	log      *slog.Logger

	queue workqueue.TypedRateLimitingInterface[string]

	mu     sync.Mutex
	latest map[string]cloud.Instance // by id; until gone
	joined map[string]joined         // by id
}

// joined is what the cluster was told of an instance.
type joined struct {
	node, bootID string
	up           bool
}

// joinWorkers is how many instances are looked after at once.
const joinWorkers = 16

func newJoiner() *joiner {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, 2*time.Second)
	return &joiner{
		queue:  workqueue.NewTypedRateLimitingQueue(limiter),
		latest: map[string]cloud.Instance{},
		joined: map[string]joined{},
	}
}

// observe takes a snapshot of an instance. It does not block.
func (j *joiner) observe(i cloud.Instance) {
	j.mu.Lock()
	j.latest[i.ID] = i
	j.mu.Unlock()
	j.queue.Add(i.ID)
}

// run works until ctx ends.
func (j *joiner) run(ctx context.Context) {
	var workers sync.WaitGroup
	for range joinWorkers {
		workers.Go(func() {
			for {
				id, shutdown := j.queue.Get()
				if shutdown {
					return
				}
				j.follow(ctx, id)
				j.queue.Done(id)
			}
		})
	}
	<-ctx.Done()
	j.queue.ShutDown()
	workers.Wait()
}

func (j *joiner) follow(ctx context.Context, id string) {
	if ctx.Err() != nil {
		return
	}
	if err := j.reconcile(ctx, id); err != nil {
		j.log.Debug("a Node does not follow its instance yet", "instance", id, "error", err)
		j.queue.AddRateLimited(id)
		return
	}
	j.queue.Forget(id)
}

// reconcile makes one Node what its instance's newest snapshot says.
func (j *joiner) reconcile(ctx context.Context, id string) error {
	j.mu.Lock()
	instance := j.latest[id]
	was, known := j.joined[id]
	j.mu.Unlock()
	switch up := instance.OS == cloud.OSUp; {
	case instance.Gone:
		return j.leave(ctx, id, was, known)
	case up && !known:
		return j.join(ctx, instance)
	case up && (!was.up || was.bootID != instance.BootID):
		return j.boot(ctx, instance, was)
	case !up && known && was.up:
		return j.halt(ctx, instance, was)
	}
	return nil
}

func (j *joiner) join(ctx context.Context, i cloud.Instance) error {
	group, _ := j.groups(i.Group)
	m := machine{instance: i, group: group, region: j.region, diskGiB: j.disk(i), readyAt: j.readyAt(i.Group)}
	n, err := m.node()
	if err != nil {
		return err
	}
	if _, err := j.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering node %s: %w", n.Name, err)
	}
	j.remember(i.ID, joined{node: n.Name, bootID: i.BootID, up: true})
	j.powerOn(ctx, n.Name)
	j.log.Debug("node joined", "node", n.Name, "instance", i.ID)
	return nil
}

// leave deletes the Node as the cloud controller does, which finds that there is
// no such instance any more. The pods on it are the pod garbage collector's.
func (j *joiner) leave(ctx context.Context, id string, was joined, known bool) error {
	if known {
		j.powerOff(was.node)
		if err := j.client.CoreV1().Nodes().Delete(ctx, was.node, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting node %s: %w", was.node, err)
		}
		j.log.Debug("node left", "node", was.node, "instance", id)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.latest, id)
	delete(j.joined, id)
	return nil
}

// halt: the machine is off, and nobody reports for the Node any more.
func (j *joiner) halt(ctx context.Context, i cloud.Instance, was joined) error {
	j.powerOff(was.node)
	if err := j.report(ctx, was.node, was.bootID, never, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."); err != nil {
		return err
	}
	was.up = false
	j.remember(i.ID, was)
	return nil
}

// boot: the machine is up again, after a reboot or a stay in a warm pool.
func (j *joiner) boot(ctx context.Context, i cloud.Instance, was joined) error {
	j.powerOff(was.node)
	if err := j.report(ctx, was.node, i.BootID, j.readyAt(i.Group), corev1.ConditionFalse, "KubeletNotReady", "the machine has just booted"); err != nil {
		return err
	}
	j.remember(i.ID, joined{node: was.node, bootID: i.BootID, up: true})
	j.powerOn(ctx, was.node)
	return nil
}

// report writes what the kubelet, or its silence, says about a node; kwok turns
// it Ready at the given time.
func (j *joiner) report(ctx context.Context, node, bootID string, readyAt time.Time, ready corev1.ConditionStatus, reason, message string) error {
	annotations, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		annotationReadyAt: readyAt.UTC().Format(time.RFC3339Nano),
	}}})
	if err != nil {
		return err
	}
	nodes := j.client.CoreV1().Nodes()
	if _, err := nodes.Patch(ctx, node, types.MergePatchType, annotations, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("setting when node %s turns Ready: %w", node, err)
	}
	now := metav1.Now()
	status, err := json.Marshal(map[string]any{"status": map[string]any{
		"nodeInfo": map[string]string{"bootID": bootID},
		"conditions": []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now,
		}},
	}})
	if err != nil {
		return err
	}
	if _, err := nodes.Patch(ctx, node, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("reporting for node %s: %w", node, err)
	}
	return nil
}

func (j *joiner) remember(id string, what joined) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.joined[id] = what
}

// imds returns the address of the metadata service of a node's instance.
func (j *joiner) imds(node string) (address string, ok bool) {
	i, ok := j.instance(node)
	return i.IMDSAddr, ok
}

// instance returns the instance behind a node: one that is up and is about to join too,
// for others see a Node before its creator has the server's answer.
func (j *joiner) instance(node string) (cloud.Instance, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for id, i := range j.latest {
		if _, known := j.joined[id]; i.PrivateDNSName == node && (known || i.OS == cloud.OSUp) {
			return i, true
		}
	}
	return cloud.Instance{}, false
}

// instances returns those that are not gone, by id.
func (j *joiner) instances() []cloud.Instance {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []cloud.Instance
	for _, i := range j.latest {
		if !i.Gone {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b cloud.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
