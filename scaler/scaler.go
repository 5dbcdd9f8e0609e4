package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/pkg/kube/lease"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/pkg/telemetry"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/observe"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/status"
	"windlass.dev/windlass/scaler/status/cas"
)

const program = contract.AppScaler

// scaler holds the parts together. All of them run from the start, so that a
// replica that comes to lead knows the cluster already; only the groups are
// read, and only the loop runs, while it leads.
type scaler struct {
	settings settings
	logger   *slog.Logger
	client   kubernetes.Interface
	clock    *kube.Clock // nil in tests
	cloud    cloud

	observer  *observe.Observer
	reader    groupReader
	actor     *act.Actor
	announcer *act.Announcer
	events    *kube.EventWriter
	board     *status.Board
	casBoard  *status.CASBoard // nil where no such status is wanted
	metrics   *metrics
	troubles  troubles // the loop's
	beside    *beside
	shed      string // what was dropped of the state the last time; the loop's
	lean      bool   // the pages that only the start used are given up; the loop's
	health    *telemetry.Health

	apiServer, aws, turning *telemetry.Check
	leading                 atomic.Bool

	asked  chan chan<- seen       // for snapshots between evaluations
	leader atomic.Pointer[string] // as the lease last said; nil before

	mu     sync.Mutex
	latest func() ([]byte, error) // the latest plan, for verdicts
}

// How long each part may be silent or failing before it counts as unhealthy.
const (
	apiPatience  = 15 * time.Second
	awsPatience  = time.Minute
	loopPatience = time.Minute
	loopSilence  = 3 * time.Minute
)

// eventQueue is how many Events may wait. Those of pods and groups wait elsewhere; this is
// for all nodes of a large cluster at once.
const eventQueue = 10_000

const (
	// rereadTime is how long the loop waits for a reading after it changed a
	// group. Each change reads the group first, so an old reading costs no more than time.
	rereadTime = 3 * time.Second
	// newsTime is how long a new leader waits to read what the one before announced.
	newsTime = 3 * time.Second
)

// readingTrouble returns what is wrong with the groups that were read: the latest
// attempt failed, or none has ended for long.
func readingTrouble(age time.Duration, err error) error {
	if err == nil && age > asg.OldReading {
		return fmt.Errorf("the groups were last read %s ago", age.Round(time.Second))
	}
	return err
}

// Run runs the scaler until ctx ends. It fails at once on what waiting does not
// mend, such as missing credentials; an API server that is away is waited for.
func Run(ctx context.Context, s settings, logger *slog.Logger) error {
	build := telemetry.ThisBuild()
	config, err := kube.Config(s.kubeconfig, program, build.Version)
	if err != nil {
		return err
	}
	clock := kube.NewClock()
	clock.Follow(config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	custom, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for custom resources: %w", err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for metadata: %w", err)
	}
	m := newMetrics()
	cloud, err := dialCloud(ctx, s, m.call)
	if err != nil {
		return err
	}
	small := rest.CopyConfig(config)
	kube.Bound(small)
	bounded, err := kubernetes.NewForConfig(small)
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	sc := newScaler(s, client, custom, meta, cloud, m, logger)
	sc.clock = clock
	if sc.actor != nil {
		sc.actor.Pods = bounded.CoreV1()
	}
	listener, err := sc.listen()
	if err != nil {
		return err
	}
	logger.Info("starting", "version", build.Version, "revision", build.Revision, "go", build.Go, "namespace", s.namespace, "identity", s.identity, "cloud", cloud.name(), "at", cloud.where())
	return sc.run(ctx, listener)
}

func newScaler(s settings, client kubernetes.Interface, custom dynamic.Interface, meta metadata.Interface, cloud cloud, m *metrics, logger *slog.Logger) *scaler {
	sc := &scaler{settings: s, logger: logger, client: client, cloud: cloud, metrics: m, health: &telemetry.Health{}, troubles: troubles{logger: logger}, asked: make(chan chan<- seen), beside: newBeside(), latest: encodedOnce(evaluation{})}
	sc.apiServer = sc.health.Add(telemetry.Part{Name: "api-server", Patience: apiPatience})
	sc.aws = sc.health.Add(telemetry.Part{Name: cloud.name(), Patience: awsPatience})
	sc.turning = sc.health.Add(telemetry.Part{Name: "loop", Patience: loopPatience, Within: loopSilence, Vital: true})
	sc.aws.OK() // there are credentials; more is not known before it leads

	sc.reader = cloud.reader(s, logger, func(expected bool) { sc.observer.GroupsChanged(expected) })
	sc.observer = observe.New(observe.Config{
		Client: client, Custom: custom, Metadata: meta, AutoscalerLeases: s.autoscalerLeases, Groups: sc.reader, Machines: sc.reader.Machines, GroupsFault: sc.reader.Fault, OutOfService: s.policy.OutOfService, Namespace: s.namespace, Priorities: s.policy.AsksForPriorities(), Owners: s.policy.AsksForOwners(), Logger: logger, Report: sc.apiServer.Report, Now: sc.now,
	})
	sc.events = kube.NewEventWriter(client.CoreV1().Events(""), program, s.identity, logger, kube.EventLimits{Queue: eventQueue})
	m.countDropped(sc.events.Dropped)
	m.money.bill = sc.bill
	sc.announcer = &act.Announcer{Events: sc.events, Page: sc.statusPage, Now: sc.now}
	if !s.dryRun { // which has no hands
		sc.actor = sc.newActor(custom)
	}
	sc.board = status.NewBoard(client.CoreV1().ConfigMaps(s.namespace), s.identity, logger)
	if s.writeCASStatus && !s.dryRun {
		sc.casBoard = status.NewCASBoard(client.CoreV1().ConfigMaps(s.namespace), s.casStatusName, logger)
	}
	return sc
}

func (sc *scaler) newActor(custom dynamic.Interface) *act.Actor {
	actor := &act.Actor{
		Nodes: sc.client.CoreV1().Nodes(), Pods: sc.client.CoreV1(), Groups: sc.cloud.verbs(sc.observer), EndsAtOnce: sc.cloud.endsAtOnce(),
		Events: sc.events, Logger: sc.logger, Await: sc.observer.AwaitNode, AwaitBuffer: sc.observer.AwaitBuffer, Alive: sc.turning.OK, Now: sc.now,
	}
	if custom != nil {
		actor.Buffers = custom.Resource(observe.BufferResource)
	}
	return actor
}

// bill is what nodes cost by what is known now.
func (sc *scaler) bill() status.Bill { return sc.settings.bill(sc.reader.Spot()) }

// now is the time by the API server's clock, see kube.Clock.
func (sc *scaler) now() time.Time { return sc.clock.Now() }

// run starts everything and waits for its end.
func (sc *scaler) run(ctx context.Context, listener net.Listener) error {
	var parts sync.WaitGroup
	defer parts.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer sc.serve(ctx, &parts, listener, sc.handler())()
	defer sc.serve(ctx, &parts, sc.listenForVerdicts(), sc.verdictsHandler())()
	parts.Go(func() { sc.observer.Run(ctx) })
	writing, written := context.WithCancel(context.WithoutCancel(ctx))
	defer written() // what the loop did last is told by Events
	parts.Go(func() { sc.events.Run(writing) })
	parts.Go(func() { sc.waitingIsWell(ctx) })
	parts.Go(func() { kube.CheckAccount(ctx, program, sc.userName, sc.logger, sc.notConfined) })

	if !sc.settings.leaderElect {
		return sc.lead(ctx)
	}
	return sc.compete(ctx)
}

// serve answers on a listener, if there is one, until ctx ends or what it returns is called.
func (sc *scaler) serve(ctx context.Context, parts *sync.WaitGroup, listener net.Listener, handler http.Handler) (stop func()) {
	if listener == nil {
		return func() {}
	}
	server := telemetry.NewServer(handler)
	sc.logger.Info("serving", "address", listener.Addr().String())
	parts.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			sc.logger.Error("serving failed", "address", listener.Addr().String(), "err", err)
		}
	})
	closeServer := func() { _ = server.Close() } // no caller is left for the error
	context.AfterFunc(ctx, closeServer)
	return closeServer
}

// userName asks the API server by what name it knows us.
func (sc *scaler) userName(ctx context.Context) (string, error) {
	review, err := sc.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking by what name the API server knows us: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}

func (sc *scaler) notConfined(message string) {
	page := kube.ConfigMapReference(sc.settings.namespace, contract.ConfigMapStatus, "")
	sc.events.Write(kube.Event{Object: page, Warning: true, Reason: contract.EventNotConfined, Message: message})
}

// afterOthers is how long a replica lets go of the lease after somebody else has written the state: to
// lead is to read everything anew, and whoever writes without the lease may do so all the time.
const afterOthers = 10 * time.Second

// compete leads whenever it can, until ctx ends.
func (sc *scaler) compete(ctx context.Context) error {
	for ctx.Err() == nil {
		err := lease.Lead(ctx, lease.Config{
			Namespace: sc.settings.namespace, Name: contract.LeaseScaler, Identity: sc.settings.identity,
			Client: sc.client.CoordinationV1(), Logger: sc.logger,
			OnNewLeader: func(identity string) {
				sc.leader.Store(&identity)
				sc.logger.Info("new leader", "identity", identity)
			},
		}, sc.lead)
		if err == nil {
			continue
		}
		if !errors.Is(err, lease.ErrLost) && !errors.Is(err, status.ErrOthers) {
			return err
		}
		sc.logger.Warn("leadership lost", "err", err)
		if errors.Is(err, status.ErrOthers) {
			select {
			case <-ctx.Done():
			case <-time.After(afterOthers):
			}
		}
	}
	return nil
}

// waitingIsWell keeps a replica alive that does not lead: its loop stands still.
func (sc *scaler) waitingIsWell(ctx context.Context) {
	tick := time.NewTicker(loopSilence / 6)
	defer tick.Stop()
	for {
		if !sc.leading.Load() {
			sc.turning.OK()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// lead runs the loop until ctx ends.
func (sc *scaler) lead(ctx context.Context) error {
	sc.leading.Store(true)
	sc.metrics.begin()
	sc.metrics.leader.Set(1)
	defer sc.metrics.leader.Set(0)
	defer collectEvery(garbage)
	defer sc.leading.Store(false)
	defer sc.aws.OK() // a replica that waits asks nothing of AWS
	defer sc.forgetLatest()
	if sc.settings.dryRun {
		return sc.leadShadow(ctx)
	}

	sc.reader.Forget()
	sc.board.Drop()
	memory := status.NewMemory(sc.client.CoreV1().ConfigMaps(sc.settings.namespace))
	if err := sc.load(ctx, memory, sc.waits); err != nil {
		return err
	}
	sc.takeOverNews(ctx)
	leading, stop := context.WithCancel(ctx)
	var parts sync.WaitGroup
	if sc.casBoard != nil {
		defer sc.removeCASStatus(ctx)
		parts.Go(func() { sc.casBoard.Run(leading) })
	}
	parts.Go(func() { sc.board.Run(leading) })
	parts.Go(func() { sc.reader.Run(leading) })
	parts.Go(func() { sc.announcer.Run(leading) })
	parts.Go(func() { sc.beside.run(leading, sc) })
	defer parts.Wait()
	defer stop()

	beats := newPulse(sc.now, sc.actor.Beat)
	parts.Go(func() { beats.run(leading) })

	planner, since := plan.NewPlanner(), sc.now().UTC()
	l := &loop{
		now: sc.now,
		observe: func(now time.Time) (fleet.Snapshot, uint64, error) {
			snapshot, version, err := sc.observer.Snapshot(now, memory.State())
			snapshot.Leads = since
			sc.aws.Report(readingTrouble(sc.reader.Reading()))
			return snapshot, version, err
		},
		decide: func(s fleet.Snapshot) (plan.Urgent, func() plan.Plan) {
			return planner.Begin(s, sc.settings.policy)
		},
		policy:   sc.settings.policy,
		remember: func(ctx context.Context, state fleet.State) error { return sc.remember(ctx, memory, state) },
		keep:     memory.Keep,
		paused:   sc.actor.BackedOff,
		awaits:   sc.observer.Awaits,
		act:      sc.act,
		due:      sc.actor.Due,
		pulse:    beats,
		reread:   sc.reread,
		judge:    func(s fleet.Snapshot) { sc.judge(planner.Judge(s, sc.settings.policy)) },
		tell:     sc.tell,
		changed:  sc.observer.Changed(),
		asked:    sc.asked,
		logger:   sc.logger,
		alive:    sc.turned,
	}
	return l.run(ctx)
}

// judge reports that what the planner keeps makes a difference, which is a bug; empty for none. The
// planner has forgotten it by then.
func (sc *scaler) judge(difference string) {
	if difference != "" {
		sc.metrics.keptDiffers.Inc()
		sc.logger.Warn("kept evaluation differs", "difference", difference, "remedy", "none is needed: all that was kept is forgotten; report it with this line, it is a bug")
	}
}

// removeCASStatus takes Cluster Autoscaler's status away where this process ends. Whoever
// has taken the lease from us goes on with it.
func (sc *scaler) removeCASStatus(ctx context.Context) {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), lease.ErrLost) {
		sc.casBoard.Remove()
	}
}

// waits reports that the loop stands still for want of the API server, which a restart would not mend,
// or, where err is nil, that it goes on.
func (sc *scaler) waits(err error) {
	sc.apiServer.Report(err)
	sc.turning.OK()
}

// load reads the persisted state, however long the API server takes to answer.
func (sc *scaler) load(ctx context.Context, memory *status.Memory, waits func(error)) error {
	for {
		err := memory.Load(ctx)
		if err == nil {
			waits(nil)
			return nil
		}
		if ctx.Err() != nil {
			return nil // the loop ends at once
		}
		if errors.Is(err, status.ErrUnreadable) {
			waits(nil)
			sc.logger.Error("persisted state unreadable, starting with an empty one", "err", err)
			return nil
		}
		waits(err)
		sc.logger.Warn("persisted state not read, retrying", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(tryAgain):
		}
	}
}

// takeOverNews gives the announcer the reasons of nodes that are known already. If those
// cannot be read, what the first evaluation finds is taken for known.
func (sc *scaler) takeOverNews(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, newsTime)
	defer cancel()
	reasons, err := status.ReasonsOfNodes(ctx, sc.client.CoreV1().ConfigMaps(sc.settings.namespace))
	if err != nil {
		sc.logger.Warn("earlier reasons of nodes not read, changes since then get no Event", "err", err)
	}
	sc.announcer.TakeOver(reasons)
}

// isFatal reports whether the loop must stop: another process leads too.
func isFatal(err error) bool { return errors.Is(err, status.ErrOthers) }

// isUnwritten reports whether all went on but what the state guards, which is not written.
func isUnwritten(err error) bool {
	var unwritten *status.UnwrittenError
	return errors.As(err, &unwritten)
}

// turned reports on the loop. What keeps it from deciding is the trouble of
// another part; that it turns is what a restart could mend.
func (sc *scaler) turned(err error) {
	sc.turning.OK()
	sc.metrics.money.pass(sc.now())
	if isUnwritten(err) {
		err = nil // it has decided, and its page shows that as a fault
	}
	if err != nil {
		sc.metrics.faults.Set(1) // what was seen before tells nothing of now
		sc.board.Post(func() statuspage.Status {
			return statuspage.Status{Page: statuspage.Page{DryRun: sc.settings.dryRun, Trouble: err.Error(), Groups: []statuspage.GroupLine{}}}
		})
	}
	if err == nil && sc.casBoard != nil {
		sc.casBoard.Evaluated(time.Now())
	}
	collectEvery(percentOf(livingBytes()))
	if err == nil && !sc.lean {
		sc.lean = true
		if err := dropStartPages(); err != nil {
			sc.logger.Debug("pages that only the start used stay mapped", "err", err)
		}
	}
}

// remember writes the state, and records what became of it.
func (sc *scaler) remember(ctx context.Context, memory *status.Memory, state fleet.State) error {
	written, err := memory.Remember(ctx, state)
	sc.metrics.remembered(written, err)
	if text := written.Shed.String(); text != sc.shed {
		sc.shed = text
		if text != "" {
			sc.logger.Warn("persisted state near its limit, entries dropped", "entries", text)
			sc.events.Write(kube.Event{Object: kube.ConfigMapReference(sc.settings.namespace, contract.ConfigMapState, memory.UID()), Reason: contract.EventStateShed, Message: "the persisted state was near its limit, so entries that cost least to lose were dropped: " + text, Warning: true})
		}
	}
	return err
}

// act carries actions out.
func (sc *scaler) act(ctx context.Context, actions []action.Action) []act.Result {
	for retire := range action.Only[action.RequestDrain](actions) {
		sc.reader.Recheck(retire.Group) // an instance refresh that began meanwhile, say
	}
	return sc.actor.Do(ctx, actions)
}

// reread sees to it that the next evaluation knows what actions have changed about groups: what AWS has
// confirmed is known, and all else is read.
func (sc *scaler) reread(ctx context.Context, results []act.Result) {
	results = slices.DeleteFunc(slices.Clone(results), func(r act.Result) bool {
		return r.Outcome == act.Paused || !action.TraitsOf(r.Action).ChangesGroup
	})
	switch {
	case slices.ContainsFunc(results, unsure):
		sc.reader.Nudge() // and again in a moment: not all of it shows at once
		sc.reader.ReadFor(ctx, rereadTime)
	case len(results) > 0:
		if slices.ContainsFunc(results, crowdedOut) {
			sc.reader.Nudge() // one reading tells of all of them, when there is an allowance for it
		}
		sc.reader.Follow(ctx, rereadTime)
	}
}

// unsure reports whether a group may be otherwise than AWS has confirmed.
func unsure(r act.Result) bool {
	switch x := r.Action.(type) {
	case action.Grow, action.Lower, action.Terminate:
		return r.Outcome != act.Done && r.Outcome != act.Begun
	case action.Complete: // what does not wait yet has not changed
		return r.Outcome != act.Done && !(x.Early && errors.Is(r.Err, asg.ErrTooEarly)) && !crowdedOut(r)
	}
	return true
}

// crowdedOut reports whether a completion was early, and not tried because many are.
func crowdedOut(r act.Result) bool {
	x, completes := r.Action.(action.Complete)
	return completes && x.Early && errors.Is(r.Err, asg.ErrBusy)
}

// tell publishes an evaluation: status, metrics, log, Events.
func (sc *scaler) tell(l evaluation) {
	began := time.Now()
	defer func() { sc.observer.Rest(l.took + time.Since(began)) }()
	sc.metrics.record(l)
	sc.announcer.Announce(l.snapshot, l.plan, l.results)
	sc.board.Post(func() statuspage.Status { return sc.status(l) })
	sc.postCASStatus(l)
	sc.beside.post(l.snapshot)
	sc.publish(l)
}

// publish has the latest plan be served, and the troubles of groups in the log.
func (sc *scaler) publish(l evaluation) {
	if sc.reader.Err() == nil { // which is logged, and then a fault of each group
		sc.troubles.tell(l.snapshot.Groups, sc.whyNone())
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.latest = encodedOnce(l)
}

// forgetLatest lets go of the last evaluation, which holds the cluster of then: another leads now.
func (sc *scaler) forgetLatest() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.latest = encodedOnce(evaluation{})
}

// postCASStatus posts the status that Cluster Autoscaler would write, unless a Cluster
// Autoscaler writes its own.
func (sc *scaler) postCASStatus(l evaluation) {
	switch {
	case sc.casBoard == nil:
	case l.plan.Stopped:
		sc.casBoard.Post(nil)
	default:
		sc.casBoard.Post(func(last cas.Status) cas.Status { return cas.Of(l.snapshot, l.plan, sc.settings.policy, last) })
	}
}

// statusPage is the object on which news of groups stand, once there is one.
func (sc *scaler) statusPage() (corev1.ObjectReference, bool) {
	uid := sc.board.UID()
	return kube.ConfigMapReference(sc.settings.namespace, contract.ConfigMapStatus, uid), uid != ""
}

// status draws what stands in the ConfigMap of an evaluation.
func (sc *scaler) status(l evaluation) statuspage.Status {
	page := status.NewPage(l.snapshot, l.plan, l.results)
	if len(page.Groups) == 0 {
		page.Trouble = sc.whyNone()
	}
	return statuspage.Status{Page: page, Verdicts: status.NewVerdicts(l.snapshot, l.plan, sc.bill())}
}

func (sc *scaler) whyNone() string { return sc.cloud.whyNone(sc.settings) }

// listen opens the address for metrics; nil where there is none.
func (sc *scaler) listen() (net.Listener, error) {
	if sc.settings.address == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", sc.settings.address)
	if err != nil {
		return nil, fmt.Errorf("serving metrics on --metrics-address=%s: %w", sc.settings.address, err)
	}
	return listener, nil
}

func (sc *scaler) handler() http.Handler {
	mux := http.NewServeMux()
	sc.health.Register(mux)
	mux.Handle("GET /metrics", promhttp.HandlerFor(sc.metrics.registry, promhttp.HandlerOpts{Registry: sc.metrics.registry, MaxRequestsInFlight: telemetry.ScrapesAtOnce}))
	return mux
}
