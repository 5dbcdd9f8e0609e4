package world

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	hardware hardware
	log      *slog.Logger

	queue workqueue.TypedRateLimitingInterface[string]

	mu     sync.Mutex
	latest map[string]cloud.Instance // by id; until gone
	joined map[string]joined         // by id
	stray  stray
}

// hardware is what the cloud's instances are made of.
type hardware interface {
	// boot starts the machine of an instance: for the first time, or again after a
	// reboot or a stay in a warm pool.
	boot(ctx context.Context, i cloud.Instance, again bool) error
	// halt: the machine is off, and comes back perhaps.
	halt(ctx context.Context, id string, was joined) error
	// end: there is no such instance any more. node is empty if it never joined.
	end(id, node string) error
	// kubelet lets the kubelet of a machine that is on run, or be silent; whatever else
	// runs there runs on.
	kubelet(ctx context.Context, i cloud.Instance, runs bool) error
}

// joined is what the cluster was told of an instance.
type joined struct {
	node, bootID string
	up           bool
}

// joinWorkers is how many instances are looked after at once.
const joinWorkers = 16

func newJoiner(client kubernetes.Interface, log *slog.Logger) *joiner {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, 2*time.Second)
	return &joiner{
		client: client, log: log,
		queue:  workqueue.NewTypedRateLimitingQueue(limiter),
		latest: map[string]cloud.Instance{},
		joined: map[string]joined{},
		stray:  stray{groups: map[string]bool{}, ids: map[string]bool{}, anonymous: map[string]bool{}},
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
	case up && (!known || !was.up || was.bootID != instance.BootID):
		if !known {
			if joins, err := j.mayJoin(instance); err != nil || !joins {
				return err
			}
		}
		if err := j.hardware.boot(ctx, instance, known); err != nil {
			return err
		}
		j.remember(id, joined{node: instance.PrivateDNSName, bootID: instance.BootID, up: true})
	case !up && known && was.up:
		if err := j.hardware.halt(ctx, id, was); err != nil {
			return err
		}
		was.up = false
		j.remember(id, was)
	}
	return nil
}

// leave deletes the Node as the cloud controller does, which finds that there is
// no such instance any more. The pods on it are the pod garbage collector's.
func (j *joiner) leave(ctx context.Context, id string, was joined, known bool) error {
	if err := j.hardware.end(id, was.node); err != nil {
		return err
	}
	if known {
		if err := j.client.CoreV1().Nodes().Delete(ctx, was.node, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting node %s: %w", was.node, err)
		}
		j.log.Debug("node left", "node", was.node, "instance", id)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.latest, id)
	delete(j.joined, id)
	delete(j.stray.ids, id)
	delete(j.stray.anonymous, id)
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
