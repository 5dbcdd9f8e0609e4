package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/laws"
	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
)

// longOutage takes the API server away for longer than a machine may take to join, right
// after machines were launched. Their kubelets try again some seconds after it is
// back.
func longOutage(s *soak, dice *rand.Rand) (effect, error) {
	if s.away() || s.outage {
		return effect{}, nil
	}
	launched := s.launchSome(dice, 3)
	s.outage = true
	s.w.DelayJoining(time.Now().Add(5 * time.Minute))
	return effect{
		what:  fmt.Sprintf("machines of %s start, and cannot join yet", launched),
		lasts: between(dice, 8*time.Second, 16*time.Second), // the scaler is to see them
		end: func() error {
			if err := s.w.Plane.Stop(s.ctx, world.APIServer); err != nil {
				return err
			}
			s.outages = append(s.outages, laws.Span{From: time.Now(), To: forever})
			s.later(effect{
				what:     "the API server is away for long",
				lasts:    between(dice, provision+5*time.Second, provision+20*time.Second),
				end:      func() error { return s.endLongOutage(between(dice, 4*time.Second, 10*time.Second)) },
				obstacle: true,
			})
			return nil
		},
		obstacle: true,
	}, nil
}

func (s *soak) endLongOutage(again time.Duration) error {
	err := s.w.Plane.Start(s.ctx, world.APIServer)
	s.outages[len(s.outages)-1].To = time.Now()
	if err == nil {
		s.w.DelayJoining(time.Now().Add(again))
		s.outage = false
	}
	return err
}

// launchSome has people start a machine in some groups.
func (s *soak) launchSome(dice *rand.Rand, groups int) []string {
	var launched []string
	for _, at := range dice.Perm(len(mortal))[:groups] {
		g, err := s.w.AWS.Group(mortal[at])
		if err == nil && g.Desired < g.Max && s.scaleOut(mortal[at]) == nil {
			launched = append(launched, mortal[at])
		}
	}
	return launched
}

// clockJump puts the clock of a scaler ahead or back for a while, mostly the leader's,
// while machines boot that take longer than usual.
func clockJump(s *soak, dice *rand.Rand) (effect, error) {
	pod, ok := one(dice, s.w.Scalers())
	if leader := s.leader(); leader != "" && dice.IntN(4) > 0 {
		pod, ok = leader, true
	}
	if !ok || !s.clocks || s.outage {
		return effect{}, nil
	}
	ahead := between(dice, provision+10*time.Second, provision+90*time.Second)
	if dice.IntN(3) == 0 {
		ahead = -between(dice, 20*time.Second, 2*time.Minute)
	}
	ahead = ahead.Truncate(time.Second)
	launched := s.launchSome(dice, 2)
	s.w.DelayJoining(time.Now().Add(between(dice, 20*time.Second, 30*time.Second)))
	over := s.hamper()
	skewed := len(s.skewed)
	s.skewed = append(s.skewed, laws.Span{From: time.Now(), To: forever})
	jump := effect{
		what:  fmt.Sprintf("the clock of %s is off by %s, and machines of %s boot", pod, ahead, launched),
		lasts: between(dice, 15*time.Second, 40*time.Second),
		end: func() error {
			if err := s.w.SetClock(pod, 0); err != nil {
				return err
			}
			s.skewed[skewed].To = time.Now().Add(recovery)
			over()
			return nil
		},
		obstacle: true,
	}
	// The scaler is to see them first.
	return effect{
		what: "the clock of " + pod + " is about to jump", lasts: 10 * time.Second, obstacle: true,
		end: func() error {
			if err := s.w.SetClock(pod, ahead); err != nil {
				return err
			}
			s.later(jump)
			return nil
		},
	}, nil
}

// leader is the pod of the scaler that leads; "" if it cannot be known.
func (s *soak) leader() string {
	ctx, cancel := context.WithTimeout(s.ctx, 2*time.Second)
	defer cancel()
	lease, err := s.w.Client.CoordinationV1().Leases(world.Namespace).Get(ctx, contract.LeaseScaler, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	for _, pod := range s.w.Scalers() {
		if strings.Contains(*lease.Spec.HolderIdentity, pod) {
			return pod
		}
	}
	return ""
}

// flap kills whoever leads, again and again. It ends where kills of scalers do.
func flap(s *soak, dice *rand.Rand) (effect, error) { return s.flapOn(dice, 3+dice.IntN(4)), nil }

func (s *soak) flapOn(dice *rand.Rand, left int) effect {
	leader := s.leader()
	if leader == "" || s.tooLateToKill() || s.w.KillProgram(s.ctx, leader) != nil {
		return effect{}
	}
	over := s.hamper()
	return effect{
		what:  fmt.Sprintf("the leader %s is killed, and %d more to come", leader, left),
		lasts: between(dice, 500*time.Millisecond, 3*time.Second),
		end: func() error {
			_ = s.w.StartProgram(s.ctx, leader) // its pod may be gone by then
			over()
			if left == 0 {
				return nil
			}
			s.later(effect{what: "there is a leader", lasts: between(dice, 2*time.Second, 12*time.Second), end: func() error {
				next := s.flapOn(dice, left-1)
				s.say("  %s", next.what)
				s.later(next)
				return nil
			}})
			return nil
		},
		obstacle: true,
	}
}

// zonePartition keeps the kubelets of a zone from the API server: their nodes are not
// Ready, and pods that are deleted there run on.
func zonePartition(s *soak, dice *rand.Rand) (effect, error) {
	// Most nodes are in zone a: that all of them are unready stops every scaler.
	zone, _ := one(dice, []string{"eu-west-1a", "eu-west-1b", "eu-west-1b", "eu-west-1c", "eu-west-1c"})
	var silent []fakeaws.Instance
	for _, i := range s.serving(append(mortal, steady)...) {
		if i.Zone == zone && !s.w.Elsewhere(i.ID) && s.w.StopKubelet(s.ctx, i.PrivateDNSName) == nil {
			silent = append(silent, i)
		}
	}
	if len(silent) == 0 {
		return effect{}, nil
	}
	stuck, err := s.stickPods(silent)
	s.partitions = append(s.partitions, partition{laws.Span{From: time.Now(), To: forever}, zone, idsOf(silent)})
	at := len(s.partitions) - 1
	return effect{
		what:  fmt.Sprintf("zone %s is cut off with %s, and %d pods that are deleted run on: %v", zone, inOneLine(silent), len(stuck), err),
		lasts: between(dice, unready+45*time.Second, unready+70*time.Second),
		end: func() error {
			var errs []error
			for _, i := range silent {
				if err := s.w.StartKubelet(s.ctx, i.PrivateDNSName); err != nil && !apierrors.IsNotFound(err) {
					errs = append(errs, s.unlessGone(i, err))
				}
			}
			if err := errors.Join(append(errs, s.releasePods(stuck))...); err != nil {
				return err
			}
			s.partitions[at].To = time.Now()
			return nil
		},
		obstacle: true,
	}, nil
}

// partition is a zone whose kubelets are silent.
type partition struct {
	laws.Span
	zone      string
	instances []string
}

func idsOf(all []fakeaws.Instance) []string {
	var ids []string
	for _, i := range all {
		ids = append(ids, i.ID)
	}
	return ids
}

// partitioned finds instances that were ended because their zone was cut off: more than the
// first that may be missed alone, before it shows that the whole zone is. Once enough
// machines have joined in the zone since, those that are still silent are broken.
func (s *soak) partitioned(calls []fakeaws.Call) []string {
	var found []string
	for _, p := range s.partitions {
		var ended []string
		for _, c := range calls {
			// What had begun before goes on; a node may go when it has been unready for long.
			long := laws.Span{From: p.From.Add(unready), To: p.To}
			if c.Operation == "TerminateInstanceInAutoScalingGroup" && c.Error == "" && long.Holds(c.Time) && slices.Contains(p.instances, c.Params["InstanceId"]) && s.book.cutOff(p, c.Params["InstanceId"], c.Time) {
				ended = append(ended, c.Params["InstanceId"])
			}
		}
		if len(ended) > partitionAllowed {
			found = append(found, fmt.Sprintf("%d instances of zone %s were ended while it was cut off: %s", len(ended), p.zone, strings.Join(ended, " ")))
		}
	}
	return found
}

// partitionAllowed is how many instances of a zone may be ended while its kubelets are
// silent: those that were being retired when that began.
const partitionAllowed = 2

// unreadyPercent is the share above which a zone counts as partitioned, by default.
const unreadyPercent = 45

// finalizerKubelet stands for a kubelet that has not ended a pod yet.
const finalizerKubelet = "soak.example/kubelet"

// stickPods deletes every other pod of the workloads on nodes whose kubelets are silent,
// which run on.
func (s *soak) stickPods(on []fakeaws.Instance) ([]corev1.Pod, error) {
	pods, err := s.w.Client.CoreV1().Pods(metav1.NamespaceDefault).List(s.ctx, metav1.ListOptions{LabelSelector: "app"})
	if err != nil {
		return nil, err
	}
	var stuck []corev1.Pod
	var errs []error
	for at, p := range pods.Items {
		there := slices.ContainsFunc(on, func(i fakeaws.Instance) bool { return i.PrivateDNSName == p.Spec.NodeName })
		if at%2 == 0 || p.DeletionTimestamp != nil || !there {
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"finalizers":[%q]}}`, p.UID, finalizerKubelet)
		if _, err := s.w.Client.CoreV1().Pods(p.Namespace).Patch(s.ctx, p.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			errs = append(errs, err)
			continue
		}
		stuck = append(stuck, p)
	}
	s.watch.stick(uidsOf(stuck), time.Now())
	for _, p := range stuck {
		errs = append(errs, s.w.Client.CoreV1().Pods(p.Namespace).Delete(s.ctx, p.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))}))
	}
	return stuck, errors.Join(errs...)
}

// releasePods has the kubelets hear what was to end.
func (s *soak) releasePods(stuck []corev1.Pod) error {
	var errs []error
	for _, p := range stuck {
		pods := s.w.Client.CoreV1().Pods(p.Namespace)
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"finalizers":null}}`, p.UID)
		if _, err := pods.Patch(s.ctx, p.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, err)
			continue
		}
		err := pods.Delete(s.ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, err)
		}
	}
	s.watch.unstick(uidsOf(stuck), time.Now())
	return errors.Join(errs...)
}

func uidsOf(pods []corev1.Pod) []types.UID {
	var uids []types.UID
	for _, p := range pods {
		uids = append(uids, p.UID)
	}
	return uids
}
