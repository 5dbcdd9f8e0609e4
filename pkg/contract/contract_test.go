package contract

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func moments() *rapid.Generator[Time] {
	return rapid.Custom(func(t *rapid.T) Time {
		seconds := rapid.Int64Range(0, 4e9).Draw(t, "seconds")
		if seconds == 0 {
			return Time{}
		}
		return At(time.Unix(seconds, rapid.Int64Range(0, 999999999).Draw(t, "nanos")))
	})
}

// TestRoundTrip: what is printed is read back unchanged, for every value that
// stands in an annotation.
// Of too many served notices those are forgotten first that were withdrawn.
func TestServedKept(t *testing.T) {
	var list ServedList
	for i := range MostServed {
		list = list.Add(Served{ID: fmt.Sprint("stands-", i)})
	}
	list[5].Withdrawn = true
	list = list.Add(Served{ID: "new"})
	_, withdrawn := list.Find("stands-5")
	if _, oldest := list.Find("stands-0"); withdrawn || !oldest || len(list) != MostServed {
		t.Errorf("left are %s", list)
	}
	list = list.Add(Served{ID: "newer"})
	if _, oldest := list.Find("stands-0"); oldest || len(list) != MostServed {
		t.Errorf("left are %s", list)
	}
}

func TestRoundTrip(t *testing.T) {
	text := rapid.String()
	kind := rapid.SampledFrom(Kinds)
	t.Run("request", rapid.MakeCheck(func(t *rapid.T) {
		want := Request{
			ID: rapid.StringN(1, 20, -1).Draw(t, "id"), Kind: kind.Draw(t, "kind"), Reason: text.Draw(t, "reason"),
			By: text.Draw(t, "by"), At: moments().Draw(t, "at"), Deadline: moments().Draw(t, "deadline"),
		}
		got, err := ParseRequest(want.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}))
	t.Run("facts", rapid.MakeCheck(func(t *rapid.T) {
		want := Facts{
			Group: text.Draw(t, "group"), Zone: text.Draw(t, "zone"), From: rapid.Int().Draw(t, "from"), To: rapid.Int().Draw(t, "to"),
			ID: text.Draw(t, "id"), Instance: text.Draw(t, "instance"), Cause: text.Draw(t, "cause"), Failures: rapid.Int().Draw(t, "failures"), Until: moments().Draw(t, "until"),
		}
		for i := range rapid.IntRange(0, 30).Draw(t, "pods") {
			want = want.Waiting(fmt.Sprint("n", i), "p")
		}
		if len(want.For) > mostFor || len(want.Namespaces) > mostNamespaces {
			t.Fatalf("%d pods and %d namespaces are named", len(want.For), len(want.Namespaces))
		}
		got, err := ParseFacts(want.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}))
	t.Run("report", rapid.MakeCheck(func(t *rapid.T) {
		want := Report{
			Answers: rapid.SliceOfN(text, 1, 4).Draw(t, "answers"), Phase: rapid.SampledFrom(Phases).Draw(t, "phase"),
			Kind: kind.Draw(t, "kind"), Reason: text.Draw(t, "reason"), Left: rapid.IntRange(0, 200).Draw(t, "left"),
			Since: moments().Draw(t, "since"), Renewed: moments().Draw(t, "renewed"), Deadline: moments().Draw(t, "deadline"),
			Version: text.Draw(t, "version"), Message: text.Draw(t, "message"), Crowded: rapid.Bool().Draw(t, "crowded"),
		}
		for range rapid.IntRange(0, 2*MostLastCalls).Draw(t, "last calls") {
			id, deadline := text.Draw(t, "of"), moments().Draw(t, "before")
			want.LastCalls = want.LastCalls.Add(id, deadline)
			if last := want.LastCalls.Of(id); last.After(deadline.Time) || len(want.LastCalls) > MostLastCalls {
				t.Fatalf("%d last calls, that of %q before %s", len(want.LastCalls), id, last)
			}
		}
		got, err := ParseReport(want.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}))
	t.Run("dry run", rapid.MakeCheck(func(t *rapid.T) {
		want := DryRun{Would: rapid.SliceOfN(text, 1, 4).Draw(t, "would")}
		if rapid.Bool().Draw(t, "drains") {
			want.Report = &Report{Answers: rapid.SliceOfN(text, 1, 4).Draw(t, "answers"), Phase: rapid.SampledFrom(Phases).Draw(t, "phase")}
		}
		for range rapid.IntRange(0, 3).Draw(t, "notices") {
			want.Notices = append(want.Notices, Noticed{ID: text.Draw(t, "id"), Kind: kind.Draw(t, "kind"), At: moments().Draw(t, "at")})
			want.Served = want.Served.Add(Served{ID: text.Draw(t, "id"), Kind: kind.Draw(t, "kind"), At: moments().Draw(t, "at")})
		}
		got, err := ParseDryRun(want.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}))
	t.Run("served", rapid.MakeCheck(func(t *rapid.T) {
		var want ServedList
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			want = want.Add(Served{ID: text.Draw(t, "id"), Kind: kind.Draw(t, "kind"), At: moments().Draw(t, "at"), Withdrawn: rapid.Bool().Draw(t, "withdrawn")})
		}
		if len(want) > MostServed {
			t.Fatalf("%d served notices are remembered, want at most %d", len(want), MostServed)
		}
		got, err := ParseServed(want.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}))
	t.Run("not yet", rapid.MakeCheck(func(t *rapid.T) {
		want := NotYet{ID: text.Draw(t, "id"), At: moments().Draw(t, "at"), Why: text.Draw(t, "why")}
		got, err := ParseNotYet(want.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}))
	t.Run("cordon", rapid.MakeCheck(func(t *rapid.T) {
		want := Cordon{By: text.Draw(t, "by"), Notice: text.Draw(t, "notice"), Boot: text.Draw(t, "boot"), At: moments().Draw(t, "at")}
		got, err := ParseCordon(want.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}))
	t.Run("fill turn", rapid.MakeCheck(func(t *rapid.T) {
		others := []corev1.Taint{{Key: "pool", Effect: corev1.TaintEffectNoSchedule}, UnneededTaint(time.Unix(1_700_000_000, 0))}
		turns := rapid.SampledFrom([]FillTurn{FillFirst, FillLater, FillLast})
		before, want := turns.Draw(t, "before"), turns.Draw(t, "turn")
		odd := WithFillTurn(others, before)
		if rapid.Bool().Draw(t, "one alone") {
			odd = WithoutTaint(odd, TaintFillLater)
		}
		got := WithFillTurn(odd, want)
		if FillTurnOf(got) != want || len(got) != len(others)+int(want) {
			t.Fatalf("from %v: got %v, want turn %d by as many taints", odd, got, want)
		}
		if both := len(odd) == len(others)+2; (FillTurnOf(odd) == FillLast) != both {
			t.Fatalf("filled last is %t with %v", !both, odd)
		}
	}))
	t.Run("unneeded", rapid.MakeCheck(func(t *rapid.T) {
		want := time.Unix(rapid.Int64Range(1, 4e9).Draw(t, "seconds"), 0).UTC()
		got, ok, err := Unneeded([]corev1.Taint{UnneededTaint(want)})
		if err != nil || !ok || !got.Equal(want) {
			t.Fatalf("got %v, %v, %v, want %v", got, ok, err, want)
		}
	}))
}

func TestParseRequest(t *testing.T) {
	for _, c := range []struct {
		reason, value string
		want          Request
		err           string
	}{
		{reason: "a bare word is the reason, and makes the id", value: "upgrade", want: Request{ID: "request:upgrade", Kind: KindRequest, Reason: "upgrade"}},
		{reason: "JSON without a kind is somebody's request", value: `{"id":"x"}`, want: Request{ID: "x", Kind: KindRequest}},
		{reason: "JSON without an id gets one from its reason", value: `{"reason":"disk"}`, want: Request{ID: "request:disk", Kind: KindRequest, Reason: "disk"}},
		{reason: "an empty object is a request without a reason", value: `{}`, want: Request{ID: "request:", Kind: KindRequest, Reason: "no reason was given"}},
		{reason: "so is one with spaces", value: " { } ", want: Request{ID: "request:", Kind: KindRequest, Reason: "no reason was given"}},
		{reason: "so is one of nothing but nulls", value: `{"id":null,"reason":null}`, want: Request{ID: "request:", Kind: KindRequest, Reason: "no reason was given"}},
		{reason: "true is a word like any other", value: "true", want: Request{ID: "request:true", Kind: KindRequest, Reason: "true"}},
		{reason: "null asks for nothing", value: "null", err: `is "null", which asks for no drain: remove the annotation to take a request back`},
		{reason: "neither does false", value: "false", err: `is "false", which asks for no drain`},
		{reason: "in any case", value: "False", err: `is "False", which asks for no drain`},
		{reason: "a list is no request", value: `[]`, err: `"[]" is neither JSON`},
		{reason: "a long kind is cut in the message", value: `{"id":"x","kind":"` + strings.Repeat("k", 4000) + `"}`, err: `kkk"…: want one of`},
		{reason: "a later version's field is ignored", value: `{"id":"x","colour":"red"}`, want: Request{ID: "x", Kind: KindRequest}},
		{reason: "several words are neither", value: "please go", err: `"please go" is neither JSON nor a single word`},
		{reason: "an empty value is neither", value: "", err: `"" is neither JSON nor a single word`},
		{reason: "broken JSON is quoted", value: `{"id":`, err: `"{\"id\":" is not valid JSON`},
		{reason: "a time of another form names what is wanted", value: `{"id":"x","deadline":"tomorrow"}`, err: "not RFC 3339"},
		{reason: "an unknown kind lists the known ones", value: `{"id":"x","kind":"whim"}`, err: `unknown kind of drain "whim"`},
		{reason: "a long value is cut in the message", value: strings.Repeat("no ", 100), err: `no no"…`},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got, err := ParseRequest(c.value)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got error %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseReportRefusesUnknownPhase(t *testing.T) {
	if _, err := ParseReport(`{"phase":"Resting"}`); err == nil || !strings.Contains(err.Error(), `"Resting"`) {
		t.Fatalf("got %v, want an error that quotes the phase", err)
	}
}

func TestUnneededRefusesOtherValues(t *testing.T) {
	if _, _, err := Unneeded([]corev1.Taint{{Key: TaintUnneeded, Value: "yesterday"}}); err == nil || !strings.Contains(err.Error(), `"yesterday"`) {
		t.Fatalf("got %v, want an error that quotes the value", err)
	}
	if _, ok, err := Unneeded(nil); ok || err != nil {
		t.Fatalf("got %v, %v for no taint, want none", ok, err)
	}
}

func TestSafeToEvictOf(t *testing.T) {
	for _, c := range []struct {
		reason      string
		annotations map[string]string
		want        SafeToEvict
	}{
		{"nothing said", nil, SafeUnsaid},
		{"ours wins over Cluster Autoscaler's", map[string]string{AnnotationSafeToEvict: "true", AnnotationForeignSafeToEvict: "false"}, SafeYes},
		{"Cluster Autoscaler's alone counts", map[string]string{AnnotationForeignSafeToEvict: "on-completion"}, SafeOnCompletion},
		{"a value of ours that nobody knows leaves the word to the other", map[string]string{AnnotationSafeToEvict: "yes", AnnotationForeignSafeToEvict: "false"}, SafeNo},
		{"Karpenter's is a no", map[string]string{AnnotationDoNotDisrupt: "true"}, SafeNo},
		{"either of the first two wins over Karpenter's", map[string]string{AnnotationDoNotDisrupt: "true", AnnotationSafeToEvict: "true"}, SafeYes},
	} {
		if got := SafeToEvictOf(c.annotations); got != c.want {
			t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
		}
	}
}

func TestHeld(t *testing.T) {
	for _, c := range []struct {
		reason      string
		annotations map[string]string
		by          string
	}{
		{"free", nil, ""},
		{"our hold with any value", map[string]string{AnnotationHold: "until friday"}, AnnotationHold},
		{"our hold taken back in words", map[string]string{AnnotationHold: "false"}, ""},
		{"Cluster Autoscaler's word", map[string]string{AnnotationScaleDownDisabled: "true"}, AnnotationScaleDownDisabled},
		{"only true counts there", map[string]string{AnnotationScaleDownDisabled: "1"}, ""},
	} {
		by, held := Held(c.annotations)
		if by != c.by || held != (c.by != "") {
			t.Errorf("%s: got %q, %v, want %q", c.reason, by, held, c.by)
		}
	}
}

// TestPassingTaints: what passes is never part of a shape, what a user chose is; and
// of what passes, some taints say that a node is still coming.
func TestPassingTaints(t *testing.T) {
	for key, want := range map[string]struct{ startup, transient bool }{
		TaintDraining:                                           {false, true},
		TaintUnneeded:                                           {false, true},
		"node.kubernetes.io/not-ready":                          {true, true},
		"node.kubernetes.io/disk-pressure":                      {false, true},
		"node.cloudprovider.kubernetes.io/uninitialized":        {true, true},
		"startup-taint.cluster-autoscaler.kubernetes.io/cilium": {true, true},
		"ignore-taint.cluster-autoscaler.kubernetes.io/cilium":  {true, true},
		"status-taint.cluster-autoscaler.kubernetes.io/disk":    {false, true},
		"ebs.csi.aws.com/agent-not-ready":                       {true, true},
		"node.cilium.io/agent-not-ready":                        {true, true},
		"readiness.k8s.io/NetworkReady":                         {true, true},
		"cni.istio.io/not-ready":                                {true, true},
		"nidhogg.uswitch.com/kube-system.node-local-dns":        {true, true},
		"aws-node-termination-handler/spot-itn":                 {false, true},
		"dedicated":                                             {false, false},
		"nvidia.com/gpu":                                        {false, false},
		"example.com/not-ready":                                 {false, false},
	} {
		taint := corev1.Taint{Key: key}
		if got := Startup(taint); got != want.startup {
			t.Errorf("Startup(%s) = %v, want %v", key, got, want.startup)
		}
		if got := Transient(taint); got != want.transient {
			t.Errorf("Transient(%s) = %v, want %v", key, got, want.transient)
		}
	}
}

func TestStrengthOrdersKinds(t *testing.T) {
	for i := 1; i < len(Kinds); i++ {
		if Kinds[i-1].Strength() <= Kinds[i].Strength() {
			t.Errorf("%s is not stronger than %s", Kinds[i-1], Kinds[i])
		}
	}
	if Kind("whim").Strength() != 0 {
		t.Error("an unknown kind has strength")
	}
}

// TestRetireID: the same retirement has the same id, the next one another.
func TestRetireID(t *testing.T) {
	since := time.Unix(1700000000, 0)
	if ScaleDownID("i-1", since) != ScaleDownID("i-1", since.Add(400*time.Millisecond)) {
		t.Error("the id changes within the second that the taint can hold")
	}
	if ScaleDownID("i-1", since) == ScaleDownID("i-1", since.Add(time.Second)) {
		t.Error("two retirements have one id")
	}
}

func TestRetires(t *testing.T) {
	for id, want := range map[string]bool{
		ScaleDownID("i-1", time.Unix(1_700_000_000, 0)): true, TerminateID("i-1"): false, "spot:1": false, "": false,
	} {
		if got := IsScaleDown(id); got != want {
			t.Errorf("%q retires: %v, want %v", id, got, want)
		}
	}
}

func TestPodScaleUpDelay(t *testing.T) {
	for _, tc := range []struct {
		value string
		want  time.Duration
		bad   bool
	}{
		{"", 30 * time.Second, false},
		{"90s", 90 * time.Second, false},
		{"10s", 30 * time.Second, false}, // it only makes the delay longer
		{"-1h", 30 * time.Second, false},
		{"soon", 30 * time.Second, true},
		{"90", 30 * time.Second, true},
	} {
		annotations := map[string]string{}
		if tc.value != "" {
			annotations[AnnotationPodScaleUpDelay] = tc.value
		}
		got, err := PodScaleUpDelay(annotations, 30*time.Second)
		if got != tc.want || (err != nil) != tc.bad {
			t.Errorf("%q: %s, %v; want %s, bad %v", tc.value, got, err, tc.want, tc.bad)
		}
	}
}
