package asg

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/asg/template"
)

// Reader keeps a reading of all our groups. Reading and asking for the result
// are apart: Groups never calls AWS, so a decision never waits for it.
type Reader struct {
	account   *Account
	selection Selection
	logger    *slog.Logger
	// changed is called after a reading that differs from the one before. expected: by nothing but what
	// calls of ours have changed.
	changed func(expected bool)
	now     func() time.Time

	books  *template.Books
	states *machineBook
	spots  *spotBook // nil where EC2 is not asked for spot prices

	nudge     chan struct{} // somebody asks for a reading
	moved     chan struct{} // something has begun to move, so that the next one may be due sooner
	allowance *rate.Limiter

	reading chan struct{} // full while somebody reads; guards what follows up to mu
	waiting singleflight.Group
	known   map[string]*known
	missing []Named // that no group has
	// apartUntil: the activities of all groups together could not be read.
	apartUntil time.Time

	mu     sync.Mutex // guards what follows
	latest reading
	said   string        // the last trouble that was logged
	drawn  []fleet.Group // latest, with the node templates of seen
	seen   map[string]resource.Quantity
	// forgotten: what is known is of an earlier term.
	forgotten bool
	recheck   map[string]bool // groups of which to read all anew
	// leaving are instances that somebody has seen leave since then, and no reading has.
	leaving map[string]time.Time
}

// reading is the outcome of Read.
type reading struct {
	groups     []fleet.Group        // without node templates
	blueprints []template.Blueprint // of the same index
	at         time.Time
	err        error
	moving     time.Time
	surprised  time.Time
	moves      []string  // the names of the groups in which something does
	owed       time.Time // since when Auto Scaling owes instances, the latest of all groups; zero where it owes none
	spot       Spot
}

// OldReading is how old a reading may be and be gone by. After that nothing is begun: whose a group is, how
// small it may be and what runs there may be otherwise by now.
const OldReading = 2 * time.Minute

// NewReader returns a Reader that has read nothing yet. changed may be nil.
func NewReader(account *Account, selection Selection, assume template.Assumptions, logger *slog.Logger, changed func(expected bool)) *Reader {
	if changed == nil {
		changed = func(bool) {}
	}
	r := &Reader{
		account: account, selection: selection, logger: logger, changed: changed, now: time.Now,
		nudge: make(chan struct{}, 1), moved: make(chan struct{}, 1), allowance: rate.NewLimiter(rate.Every(readEvery), readBurst),
		reading: make(chan struct{}, 1),
		known:   map[string]*known{},
		recheck: map[string]bool{},
		leaving: map[string]time.Time{},
	}
	r.books = template.NewBooks(describer{account}, account.Region, assume, logger, func() time.Time { return r.now() })
	r.states = &machineBook{ec2: account.compute, logger: logger}
	if assume.AskSpot {
		r.spots = &spotBook{ec2: account.compute, region: account.Region, assume: assume, logger: logger}
	}
	return r
}

// Run reads again and again until ctx ends: at once when nudged, often while something comes or leaves,
// else every 40 seconds, or as often as the shortest hook asks for; see pace, and how much that may
// be at the most.
func (r *Reader) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	asked, last := true, time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-r.moved:
		case <-r.nudge:
			asked = true
		}
		next := r.next(last, asked)
		if next <= 0 {
			_ = r.Read(ctx) // it logs
			asked, last = false, r.now()
			next = r.next(last, false)
		}
		timer.Reset(next)
	}
}

// Forget is for whoever begins to lead, before anything decides: in an earlier term the groups and their tags
// may have been others. Until they are read it is as if they never were.
func (r *Reader) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest, r.drawn, r.forgotten = reading{}, nil, true
}

// begin has what an earlier term knew of groups read anew, as far as their descriptions do not show it. Only who
// reads calls it.
func (r *Reader) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.forgotten {
		return
	}
	r.forgotten = false
	for _, k := range r.known {
		k.forgetFacts()
	}
}

// Nudge asks for a reading soon.
func (r *Reader) Nudge() {
	r.ask()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest.moving, r.latest.surprised = r.now(), r.now() // what was nudged for may take a moment to show
}

func (r *Reader) ask() {
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

// Look asks for a reading soon if the latest one lacks an instance or, where that leaves, does not say so:
// then at once, whatever the allowance says, as its hook is to be completed when its node is drained.
func (r *Reader) Look(instance string, leaves bool) {
	r.mu.Lock()
	known := fleet.Lists(r.latest.groups, instance, leaves)
	if leaves && fleet.Lists(r.latest.groups, instance, false) {
		r.leaving[instance] = r.now()
	}
	r.mu.Unlock()
	if !known {
		r.Nudge()
	}
}

// Recheck has the next reading read all anew that shows no trace on a group when it
// changes, such as its hooks and an instance refresh, for a group of which much will
// be asked from now on.
func (r *Reader) Recheck(group string) {
	r.mu.Lock()
	r.recheck[group] = true
	r.mu.Unlock()
	r.ask()
}

// rechecked hands over the groups that Recheck named.
func (r *Reader) rechecked() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	named := r.recheck
	r.recheck = map[string]bool{}
	return named
}

// Groups returns the latest reading, in the order of names, when it was taken,
// and why a later one failed. seen is the memory that nodes were seen to
// report, by fleet.SeenKey. The result is shared: do not change it.
func (r *Reader) Groups(seen map[string]resource.Quantity) ([]fleet.Group, time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drawn == nil || !maps.EqualFunc(seen, r.seen, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }) {
		r.drawn = slices.Clone(r.latest.groups)
		for i, b := range r.latest.blueprints {
			r.drawn[i].NodeTemplates = b.NodeTemplates(seen)
		}
		r.seen = maps.Clone(seen)
	}
	return r.drawn, r.latest.at, r.latest.err
}

// Err returns why the latest attempt to read failed; nil if it did not.
func (r *Reader) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest.err
}

// Reading returns how old the latest reading is, zero before the first one, and why
// a later attempt failed.
func (r *Reader) Reading() (age time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest.at.IsZero() {
		return 0, r.latest.err
	}
	return r.now().Sub(r.latest.at), r.latest.err
}

// next is how long to wait for the next reading. One that is asked for comes at once, others at their pace;
// both only as far as the allowance goes. But what has not been read for so long that something could be
// missed is read, and so is what becomes of a growth or of an instance that leaves, where only a reading
// tells.
func (r *Reader) next(last time.Time, asked bool) time.Duration {
	if last.IsZero() {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	latest := slowest(r.latest.groups)
	due := pace(now, r.latest.moving, r.latest.surprised, latest)
	if r.states.wants() {
		latest = min(latest, machinesEvery)
	}
	if r.latest.err != nil {
		due, latest = retryFailed, retryFailed
	}
	for _, since := range r.leaving {
		if now.Sub(since) < leavingFor {
			latest = min(latest, leavingEvery)
		}
	}
	if now.Sub(r.latest.owed) < owedFor {
		latest = quick
	}
	age := now.Sub(last)
	due -= min(age, now.Sub(r.account.latest.oldest(r.latest.moves))) // the verbs may have read what moves since
	if asked {
		due = nudgeGap - age
	}
	return min(max(due, untilAllowed(r.allowance, now, asked)), latest-age)
}

// log logs trouble when it begins, changes and ends.
func (r *Reader) log(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.mu.Lock()
	news := text != r.said
	r.said = text
	r.mu.Unlock()
	switch {
	case !news:
	case err != nil:
		r.logger.Warn("groups not read", "err", err)
	default:
		r.logger.Info("groups are read again")
	}
}

// Read reads now. If the groups cannot be described at all it logs and returns
// why, and keeps what it knew; everything else that fails is a fault of one group.
// A reading ends after readTime, whatever AWS does; where ctx ends first that is
// no failure of AWS.
func (r *Reader) Read(ctx context.Context) error { return r.read(ctx, func() {}) }

// read calls begun when it is its turn.
func (r *Reader) read(ctx context.Context, begun func()) error {
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	begun()
	whole := ctx
	ctx, cancel := context.WithTimeout(whole, readTime)
	defer cancel()
	r.begin()
	asked := r.now()
	described, missing, err := r.describe(ctx)
	if whole.Err() != nil {
		return whole.Err()
	}
	r.log(err)
	now := r.now()
	spend(r.allowance, now) // also where it fails: a throttled account has no more room for us
	if err != nil {
		r.stale(err)
		return err
	}
	r.match(described, asked)
	r.missing = missing
	r.study(ctx, now)
	told := r.states.read(ctx, now)
	told = r.readSpot(ctx, now) || told
	if r.keep(r.assemble(now)) || told {
		r.changed(false)
	}
	return nil
}

// ReadFor reads now and returns when that is done, but after wait at the latest:
// the reading goes on then. One that waits for its turn is that of all who come meanwhile.
func (r *Reader) ReadFor(ctx context.Context, wait time.Duration) {
	done := r.waiting.DoChan("", func() (any, error) {
		return nil, r.read(ctx, func() { r.waiting.Forget("") }) // it logs, and the old reading stands
	})
	select {
	case <-done:
	case <-time.After(wait):
	}
}

// Follow has the latest reading show what our own calls have changed since, and what was read right before
// them. Where one is under way for longer than wait, that one will.
func (r *Reader) Follow(ctx context.Context, wait time.Duration) {
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
	case <-ctx.Done():
		return
	case <-time.After(wait):
		return
	}
	if r.Err() != nil {
		return // what is shown is old, and says so
	}
	now, expected := r.now(), true
	for name, k := range r.known {
		newer, asked, found := r.account.latest.since(name, k.asked)
		r.account.told.complete(k.raw, now)
		if found {
			r.account.told.complete(&newer, now)
			expected = expected && reflect.DeepEqual(*k.raw, newer)
			k.raw, k.asked = &newer, asked
		}
		k.settle(now, r.account.told.recent(name, now))
	}
	next := r.assemble(now)
	next.at = r.latestAt()
	if r.keep(next) {
		r.changed(expected)
	}
	select {
	case r.moved <- struct{}{}:
	default:
	}
}

// describe asks for our groups: one paged call for those that are discovered,
// one for those that are named. missing are names that no group has.
func (r *Reader) describe(ctx context.Context) (found []astypes.AutoScalingGroup, missing []Named, err error) {
	if len(r.selection.Tags) > 0 {
		found, err = pages(ctx, r.account.scaling, &autoscaling.DescribeAutoScalingGroupsInput{Filters: filters(r.selection.Tags)})
		if err != nil {
			return nil, nil, err
		}
	}
	wanted := r.selection.Named
	for chunk := range slices.Chunk(wanted, groupsPerPage) {
		in := &autoscaling.DescribeAutoScalingGroupsInput{}
		for _, n := range chunk {
			in.AutoScalingGroupNames = append(in.AutoScalingGroupNames, n.Name)
		}
		more, err := pages(ctx, r.account.scaling, in)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, more...)
	}
	for _, n := range wanted {
		if !slices.ContainsFunc(found, func(g astypes.AutoScalingGroup) bool { return aws.ToString(g.AutoScalingGroupName) == n.Name }) {
			missing = append(missing, n)
		}
	}
	return found, missing, nil
}

// groupsPerPage is the most that AWS gives at once.
const groupsPerPage = 100

// pages describes groups, page by page.
func pages(ctx context.Context, scaling autoScaling, in *autoscaling.DescribeAutoScalingGroupsInput) ([]astypes.AutoScalingGroup, error) {
	in.MaxRecords = aws.Int32(groupsPerPage)
	var found []astypes.AutoScalingGroup
	for {
		out, err := scaling.DescribeAutoScalingGroups(ctx, in)
		if err != nil {
			return nil, explain("autoscaling:DescribeAutoScalingGroups", err)
		}
		found = append(found, out.AutoScalingGroups...)
		if aws.ToString(out.NextToken) == "" {
			return found, nil
		}
		in.NextToken = out.NextToken
	}
}

// match makes known agree with what was described.
func (r *Reader) match(described []astypes.AutoScalingGroup, asked time.Time) {
	r.account.latest.note(described, asked)
	before := r.known
	r.known = make(map[string]*known, len(described))
	for i := range described {
		name := aws.ToString(described[i].AutoScalingGroupName)
		k := before[name]
		if k == nil {
			k = &known{leaving: map[string]time.Time{}, exact: map[string]bool{}}
		}
		k.raw, k.asked = &described[i], asked
		if newer, at, found := r.account.latest.since(name, asked); found { // the verbs have read it meanwhile
			k.raw, k.asked = &newer, at
		}
		r.account.told.complete(k.raw, r.now())
		for n := range r.selection.Named {
			if r.selection.Named[n].Name == name {
				k.named = &r.selection.Named[n]
			}
		}
		r.known[name] = k
	}
}

// assemble makes a reading of all that is known now.
func (r *Reader) assemble(now time.Time) reading {
	next := reading{at: now, spot: r.spots.latest(now)}
	for _, name := range slices.Sorted(maps.Keys(r.known)) {
		k := r.known[name]
		k.blueprint.Spot = next.spot.Prices
		next.groups = append(next.groups, k.group(""))
		next.blueprints = append(next.blueprints, k.blueprint)
		if !k.moving.IsZero() {
			next.moves = append(next.moves, name)
			next.moving, next.surprised = laterOf(next.moving, k.moving), laterOf(next.surprised, k.surprised)
		}
		if missing(k.raw) > 0 && k.moving.After(next.owed) {
			next.owed = k.moving
		}
	}
	for _, n := range r.missing {
		next.groups = append(next.groups, fleet.Group{Name: n.Name, Min: n.Min, Max: n.Max,
			Faults: []string{fmt.Sprintf("there is no Auto Scaling group %s in %s, but %s names it", n.Name, r.account.Region, FlagNodes)}})
		next.blueprints = append(next.blueprints, template.Blueprint{})
	}
	return next
}

// stale keeps the old reading, and has each group report how old it is.
func (r *Reader) stale(err error) {
	next := reading{at: r.latestAt(), err: err, spot: r.spots.latest(r.now())}
	sentence := fmt.Sprintf("as it was at %s, because since then: %v", next.at.UTC().Format(time.TimeOnly), err)
	for _, name := range slices.Sorted(maps.Keys(r.known)) {
		k := r.known[name]
		k.blueprint.Spot = next.spot.Prices
		g := k.group(sentence)
		if r.now().Sub(next.at) > OldReading {
			g.Held, g.Unread = sentence, true
		}
		next.groups = append(next.groups, g)
		next.blueprints = append(next.blueprints, k.blueprint)
	}
	if r.keep(next) {
		r.changed(false)
	}
}

func (r *Reader) latestAt() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest.at
}

// keep makes a reading the latest, and reports whether it differs from the one before.
func (r *Reader) keep(next reading) (news bool) {
	r.mu.Lock()
	// A nudge that came meanwhile still wants quick readings.
	if nudged := r.latest.surprised; nudged.After(next.surprised) && r.now().Sub(nudged) < nudgeFor {
		next.moving, next.surprised = laterOf(next.moving, nudged), nudged
	}
	same := fleet.Equal(r.latest.groups, next.groups) && r.latest.at.IsZero() == next.at.IsZero()
	r.latest, r.drawn = next, nil
	maps.DeleteFunc(r.leaving, func(instance string, since time.Time) bool {
		return r.now().Sub(since) >= leavingFor || !fleet.Lists(next.groups, instance, false)
	})
	r.mu.Unlock()
	return !same
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nudgeFor is how long quick readings go on after a nudge though nothing
// shows.
const nudgeFor = 3 * time.Second
