package fit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/fit/oracle"
)

// special is a case that rules like these are known to get wrong. Where the pod
// fits is written by hand; kube-scheduler's framework and fit both have to agree.
type special struct {
	closes string // the node that is to go, if one is
	name   string
	nodes  []string
	pods   []string
	pod    string
	fits   string
}

var (
	// Two zones with two nodes each, one of them in two racks.
	square = []string{"a1 zone=a rack=1", "a2 zone=a rack=2", "b1 zone=b", "b2 zone=b"}
	small  = []string{"n cpu=2 memory=1Gi pods=2 storage=1Gi fpga=2 hugepages=4Mi"}
	single = []string{"n"}
)

var specialCases = map[string][]special{
	"NodeResourcesFit": {
		{name: "nothing asked, nothing left", nodes: small, pods: []string{"on=n cpu=2 memory=1Gi"}, pod: "", fits: "n"},
		{name: "nothing asked, and no pod more", nodes: small, pods: []string{"on=n", "on=n"}, pod: "", fits: ""},
		{name: "the last bit", nodes: small, pods: []string{"on=n cpu=1500m"}, pod: "cpu=500m memory=1Gi", fits: "n"},
		{name: "a bit more", nodes: small, pods: []string{"on=n cpu=1500m"}, pod: "cpu=501m", fits: ""},
		{name: "the largest of init and main", nodes: small, pod: "cpu=1 init.cpu=2", fits: "n"},
		{name: "an init container alone is too large", nodes: small, pod: "cpu=1 init.cpu=2001m", fits: ""},
		{name: "a sidecar runs beside main", nodes: small, pod: "cpu=1500m sidecar.cpu=600m", fits: ""},
		{name: "a sidecar that starts after init does not run beside it", nodes: small, pod: "cpu=1 init.cpu=2 sidecar.cpu=1", fits: "n"},
		{name: "overhead counts", nodes: small, pod: "cpu=1500m overhead.cpu=501m", fits: ""},
		{name: "what pods on the node have over counts", nodes: small, pods: []string{"on=n cpu=1 overhead.cpu=500m"}, pod: "cpu=501m", fits: ""},
		{name: "more cpu in use than there is, and none asked", nodes: small, pods: []string{"on=n cpu=3"}, pod: "memory=1Gi", fits: "n"},
		{name: "more cpu in use than there is, and 0 asked", nodes: small, pods: []string{"on=n cpu=3"}, pod: "cpu=0", fits: "n"},
		{name: "pods that leave use their share", nodes: small, pods: []string{"on=n cpu=2 leaving"}, pod: "cpu=1", fits: ""},
		{name: "an extended resource", nodes: small, pods: []string{"on=n fpga=1"}, pod: "fpga=1", fits: "n"},
		{name: "an extended resource in use", nodes: small, pods: []string{"on=n fpga=1"}, pod: "fpga=2", fits: ""},
		{name: "an extended resource for init in use", nodes: small, pods: []string{"on=n fpga=1"}, pod: "init.fpga=2", fits: ""},
		{name: "an extended resource that nobody has", nodes: single, pod: "fpga=1", fits: ""},
		{name: "none of what nobody has", nodes: single, pod: "fpga=0", fits: "n"},
		{name: "huge pages in use", nodes: small, pods: []string{"on=n hugepages=2Mi"}, pod: "hugepages=4Mi", fits: ""},
		{name: "ephemeral storage", nodes: small, pods: []string{"on=n storage=512Mi"}, pod: "storage=513Mi", fits: ""},
		{name: "the pod's own figure counts, more than its containers'", nodes: small, pod: "cpu=1 pod.cpu=2001m", fits: ""},
		{name: "the pod's own figure counts, less than init's", nodes: small, pod: "init.cpu=3 pod.cpu=2", fits: "n"},
		{name: "the pod's own figure for one resource only", nodes: small, pod: "memory=2Gi pod.cpu=1", fits: ""},
		{name: "overhead comes on top of the pod's own figure", nodes: small, pod: "pod.cpu=1500m overhead.cpu=501m", fits: ""},
		{name: "the pod's own figure on the node", nodes: small, pods: []string{"on=n cpu=100m pod.cpu=1500m"}, pod: "cpu=501m", fits: ""},
	},
	"NodePorts": {
		{name: "another port", nodes: single, pods: []string{"on=n port=80"}, pod: "port=81", fits: "n"},
		{name: "the same port", nodes: single, pods: []string{"on=n port=80"}, pod: "port=80", fits: ""},
		{name: "no protocol is TCP", nodes: single, pods: []string{"on=n port=80"}, pod: "port=TCP/80", fits: ""},
		{name: "another protocol", nodes: single, pods: []string{"on=n port=80"}, pod: "port=UDP/80", fits: "n"},
		{name: "another address", nodes: single, pods: []string{"on=n port=TCP/127.0.0.1/80"}, pod: "port=TCP/10.0.0.1/80", fits: "n"},
		{name: "any address against one", nodes: single, pods: []string{"on=n port=TCP/127.0.0.1/80"}, pod: "port=TCP/0.0.0.0/80", fits: ""},
		{name: "one address against any", nodes: single, pods: []string{"on=n port=TCP/0.0.0.0/80"}, pod: "port=TCP/127.0.0.1/80", fits: ""},
		{name: "no address is any", nodes: single, pods: []string{"on=n port=80"}, pod: "port=TCP/127.0.0.1/80", fits: ""},
		{name: "any address, another protocol", nodes: single, pods: []string{"on=n port=TCP/0.0.0.0/80"}, pod: "port=UDP/127.0.0.1/80", fits: "n"},
		{name: "one of two", nodes: single, pods: []string{"on=n port=80 port=81"}, pod: "port=UDP/80 port=81", fits: ""},
		{name: "a port that is not on the host", nodes: single, pods: []string{"on=n port=0"}, pod: "port=0", fits: "n"},
		{name: "an init container's port is free again", nodes: single, pods: []string{"on=n init.port=80"}, pod: "port=80", fits: "n"},
		{name: "a sidecar keeps its port", nodes: single, pods: []string{"on=n sidecar.port=80"}, pod: "port=80", fits: ""},
		{name: "a sidecar wants its port", nodes: single, pods: []string{"on=n port=80"}, pod: "sidecar.port=80", fits: ""},
		{name: "a pod that leaves keeps its port", nodes: single, pods: []string{"on=n port=80 leaving"}, pod: "port=80", fits: ""},
	},
	"InterPodAffinity": {
		{name: "near one", nodes: square, pods: []string{"on=a1 app=db"}, pod: "near=zone(app=db)", fits: "a1 a2"},
		{name: "near nobody", nodes: square, pod: "near=zone(app=db)", fits: ""},
		{name: "near whom another namespace has", nodes: square, pods: []string{"on=a1 in=red app=db"}, pod: "near=zone(app=db)", fits: ""},
		{name: "near whom a named namespace has", nodes: square, pods: []string{"on=a1 in=red app=db"}, pod: "near=zone(app=db)@red", fits: "a1 a2"},
		{name: "near, and its own namespace is not among those named", nodes: square, pods: []string{"on=a1 app=db"}, pod: "near=zone(app=db)@red", fits: ""},
		{name: "near whom a namespace like that has", nodes: square, pods: []string{"on=a1 in=red app=db", "on=b1 in=green app=db"}, pod: "near=zone(app=db)@{warm=yes}", fits: "a1 a2"},
		{name: "near whom any namespace has", nodes: square, pods: []string{"on=a1 in=red app=db", "on=b1 in=green app=db"}, pod: "near=zone(app=db)@{*}", fits: "a1 a2 b1 b2"},
		{name: "near one of its own, and there is none", nodes: square, pod: "app=web near=zone(app=web)", fits: "a1 a2 b1 b2"},
		{name: "the first of its own needs the label though", nodes: square, pod: "app=web near=rack(app=web)", fits: "a1 a2"},
		{name: "the first of its own, but it is of the wrong namespace", nodes: square, pod: "app=web near=zone(app=web)@red", fits: ""},
		{name: "the first that matches both terms", nodes: square, pod: "app=web tier=front near=zone(app=web) near=rack(tier=front)", fits: "a1 a2"},
		{name: "the first that matches one of two terms", nodes: square, pod: "app=web near=zone(app=web) near=rack(tier=front)", fits: ""},
		{name: "one of its own is elsewhere", nodes: square, pods: []string{"on=b1 app=web"}, pod: "app=web near=zone(app=web)", fits: "b1 b2"},
		{name: "one of its own that leaves counts", nodes: square, pods: []string{"on=b1 app=web leaving"}, pod: "app=web near=zone(app=web)", fits: "b1 b2"},
		{name: "one of its own is on a node without the label", nodes: square, pods: []string{"on=b1 app=web"}, pod: "app=web near=rack(app=web)", fits: "a1 a2"},
		{name: "both terms on the same pod", nodes: square, pods: []string{"on=a1 app=db", "on=a2 tier=back"}, pod: "near=zone(app=db) near=zone(tier=back)", fits: ""},
		{name: "both terms on one pod", nodes: square, pods: []string{"on=a1 app=db tier=back"}, pod: "near=zone(app=db) near=rack(tier=back)", fits: "a1"},
		{name: "apart from one", nodes: square, pods: []string{"on=a1 app=db"}, pod: "apart=zone(app=db)", fits: "b1 b2"},
		{name: "apart by a label that the other's node lacks", nodes: square, pods: []string{"on=b1 app=db"}, pod: "apart=rack(app=db)", fits: "a1 a2 b1 b2"},
		{name: "apart from any of two", nodes: square, pods: []string{"on=a1 app=db", "on=b1 tier=back"}, pod: "apart=host(app=db) apart=host(tier=back)", fits: "a2 b2"},
		{name: "apart from nobody", nodes: square, pods: []string{"on=a1 app=db"}, pod: "apart=zone(-)", fits: "a1 a2 b1 b2"},
		{name: "apart from everybody", nodes: square, pods: []string{"on=a1 app=db"}, pod: "apart=zone(*)", fits: "b1 b2"},
		{name: "others keep apart from it", nodes: square, pods: []string{"on=a1 apart=zone(app=web)"}, pod: "app=web", fits: "b1 b2"},
		{name: "others keep apart from somebody else", nodes: square, pods: []string{"on=a1 apart=zone(app=db)"}, pod: "app=web", fits: "a1 a2 b1 b2"},
		{name: "others keep apart in their own namespace", nodes: square, pods: []string{"on=a1 in=red apart=zone(app=web)"}, pod: "app=web", fits: "a1 a2 b1 b2"},
		{name: "others keep apart from its namespace", nodes: square, pods: []string{"on=a1 in=red apart=zone(app=web)@blue"}, pod: "app=web", fits: "b1 b2"},
		{name: "others keep apart from namespaces like its own", nodes: square, pods: []string{"on=a1 apart=zone(app=web)@{warm=yes}"}, pod: "in=red app=web", fits: "b1 b2"},
		{name: "others keep apart from other namespaces", nodes: square, pods: []string{"on=a1 apart=zone(app=web)@{warm=yes}"}, pod: "in=green app=web", fits: "a1 a2 b1 b2"},
		{name: "a pod that leaves keeps others apart", nodes: square, pods: []string{"on=a1 apart=zone(app=web) leaving"}, pod: "app=web", fits: "b1 b2"},
		{name: "near and apart at once", nodes: square, pods: []string{"on=a1 app=db", "on=b1 app=db", "on=b2 tier=back"}, pod: "near=zone(app=db) apart=zone(tier=back)", fits: "a1 a2"},
		{name: "near, but it keeps apart itself", nodes: square, pods: []string{"on=a1 app=db apart=host(app=web)"}, pod: "app=web near=zone(app=db)", fits: "a2"},
		{name: "pods without a node repel nobody", nodes: square, pods: []string{"apart=zone(app=web)"}, pod: "app=web", fits: "a1 a2 b1 b2"},
		{name: "a host name that is missing", nodes: []string{"a1 zone=a nohost", "b1 zone=b"}, pods: []string{"on=a1 app=web"}, pod: "app=web apart=host(app=web)", fits: "a1 b1"},
	},
	"PodTopologySpread": {
		{name: "nobody yet", nodes: square, pod: "app=web spread=zone/1(app=web)", fits: "a1 a2 b1 b2"},
		{name: "one zone ahead", nodes: square, pods: []string{"on=a1 app=web"}, pod: "app=web spread=zone/1(app=web)", fits: "b1 b2"},
		{name: "the pod itself does not count", nodes: square, pods: []string{"on=a1 app=web"}, pod: "spread=zone/1(app=web)", fits: "a1 a2 b1 b2"},
		{name: "it does not count itself, and two are ahead", nodes: square, pods: []string{"on=a1 app=web", "on=a2 app=web"}, pod: "spread=zone/1(app=web)", fits: "b1 b2"},
		{name: "skew of two", nodes: square, pods: []string{"on=a1 app=web"}, pod: "app=web spread=zone/2(app=web)", fits: "a1 a2 b1 b2"},
		{name: "pods that leave do not count", nodes: square, pods: []string{"on=a1 app=web leaving"}, pod: "app=web spread=zone/1(app=web)", fits: "a1 a2 b1 b2"},
		{name: "pods of other namespaces do not count", nodes: square, pods: []string{"on=a1 in=red app=web"}, pod: "app=web spread=zone/1(app=web)", fits: "a1 a2 b1 b2"},
		{name: "no selector counts nobody", nodes: square, pods: []string{"on=a1 app=web"}, pod: "app=web spread=zone/1(-)", fits: "a1 a2 b1 b2"},
		{name: "a node without the label", nodes: []string{"a1 zone=a", "b1 zone=b", "x1"}, pod: "app=web spread=zone/1(app=web)", fits: "a1 b1"},
		{name: "pods on a node without the label do not count", nodes: []string{"a1 zone=a", "b1 zone=b", "x1"}, pods: []string{"on=x1 app=web"}, pod: "app=web spread=zone/1(app=web)", fits: "a1 b1"},
		{name: "a wish", nodes: square, pods: []string{"on=a1 app=web"}, pod: "app=web spread=zone/1(app=web),soft", fits: "a1 a2 b1 b2"},
		{name: "zone and host", nodes: square, pods: []string{"on=a1 app=web", "on=b1 app=web", "on=b2 app=web"}, pod: "app=web spread=zone/1(app=web) spread=host/1(app=web)", fits: "a2"},
		{name: "zone and host cannot both be", nodes: square, pods: []string{"on=a1 app=web", "on=a2 app=web", "on=b1 app=web", "on=b1 app=web", "on=b1 app=web", "on=b2 app=web"}, pod: "app=web spread=zone/1(app=web) spread=host/1(app=web)", fits: "a1 a2"},
		{name: "nodes with all labels only count, for every constraint", nodes: square, pods: []string{"on=b1 app=web"}, pod: "app=web spread=zone/1(app=web) spread=rack/1(app=web)", fits: "a1 a2"},
		{name: "two of one key", nodes: square, pods: []string{"on=a1 app=web", "on=b1 tier=front"}, pod: "app=web tier=front spread=zone/1(app=web) spread=zone/1(tier=front)", fits: ""},
		{name: "fewer domains than wanted", nodes: square, pods: []string{"on=a1 app=web", "on=b1 app=web"}, pod: "app=web spread=zone/1(app=web),min=3", fits: ""},
		{name: "as many domains as wanted", nodes: square, pods: []string{"on=a1 app=web", "on=b1 app=web"}, pod: "app=web spread=zone/1(app=web),min=2", fits: "a1 a2 b1 b2"},
		{name: "fewer domains, and there is room in one", nodes: square, pods: []string{"on=a1 app=web"}, pod: "app=web spread=zone/1(app=web),min=3", fits: "b1 b2"},
		{name: "zones that the pod cannot go to do not count", nodes: square, pods: []string{"on=a1 app=web"}, pod: "app=web zones=a spread=zone/1(app=web)", fits: "a1 a2"},
		{name: "zones that it cannot go to count if it says so", nodes: square, pods: []string{"on=a1 app=web"}, pod: "app=web zones=a spread=zone/1(app=web),affinity=Ignore", fits: ""},
		{name: "selectors keep nodes out of the count", nodes: square, pods: []string{"on=a1 app=web"}, pod: "app=web selector=rack=1 spread=zone/1(app=web)", fits: "a1"},
		{name: "tainted nodes count", nodes: []string{"a1 zone=a", "b1 zone=b taint=dedicated"}, pods: []string{"on=a1 app=web"}, pod: "app=web spread=zone/1(app=web)", fits: ""},
		{name: "tainted nodes do not count if it says so", nodes: []string{"a1 zone=a", "b1 zone=b taint=dedicated"}, pods: []string{"on=a1 app=web"}, pod: "app=web spread=zone/1(app=web),taints=Honor", fits: "a1"},
		{name: "a node that goes counts no more if it says so", nodes: []string{"a1 zone=a", "b1 zone=b", "c1 zone=c"}, closes: "c1", pods: []string{"on=a1 app=web", "on=b1 app=web"}, pod: "app=web spread=zone/1(app=web),taints=Honor", fits: "a1 b1"},
		{name: "nor do the pods that are left there", nodes: []string{"a1 zone=a", "b1 zone=b", "c1 zone=b"}, closes: "c1", pods: []string{"on=a1 app=web", "on=c1 app=web", "on=c1 app=web"}, pod: "app=web spread=zone/1(app=web),taints=Honor", fits: "b1"},
		{name: "a node that goes counts otherwise", nodes: []string{"a1 zone=a", "b1 zone=b", "c1 zone=c"}, closes: "c1", pods: []string{"on=a1 app=web", "on=b1 app=web"}, pod: "app=web spread=zone/1(app=web)", fits: ""},
		{name: "tolerated taints are none", nodes: []string{"a1 zone=a", "b1 zone=b taint=dedicated"}, pods: []string{"on=a1 app=web"}, pod: "app=web tolerates=dedicated spread=zone/1(app=web),taints=Honor", fits: "b1"},
		{name: "by the value of its label", nodes: square, pods: []string{"on=a1 app=web tier=old"}, pod: "app=web tier=new spread=zone/1(app=web),keys=tier", fits: "a1 a2 b1 b2"},
		{name: "by a label that it lacks", nodes: square, pods: []string{"on=a1 app=web tier=old"}, pod: "app=web spread=zone/1(app=web),keys=tier", fits: "b1 b2"},
		{name: "by the value of its label alone", nodes: square, pods: []string{"on=a1 tier=new"}, pod: "tier=new spread=zone/1(*),keys=tier", fits: "b1 b2"},
		{name: "one honors taints and no other, the other affinity and no taints", nodes: []string{"a1 zone=a", "b1 zone=b taint=dedicated"}, pods: []string{"on=a1 app=web"}, pod: "app=web spread=zone/1(app=db) spread=zone/1(app=web),affinity=Ignore,taints=Honor", fits: "a1"},
		{name: "one policy for each constraint", nodes: []string{"a1 zone=a", "a2 zone=a taint=dedicated", "b1 zone=b"}, pods: []string{"on=a1 app=web", "on=b1 app=web"}, pod: "app=web spread=host/1(app=web),taints=Honor spread=zone/1(app=web),taints=Ignore", fits: "a1 b1"},
	},
}

// The cases that the tests of kube-scheduler's own plugins are about, in our words.
func TestSpecialCases(t *testing.T) {
	judge, err := oracle.New(t.Context(), "1.36")
	if err != nil {
		t.Fatal(err)
	}
	for plugin, cases := range specialCases {
		if !follows(plugin) {
			continue
		}
		for _, tc := range cases {
			t.Run(plugin+"/"+tc.name, func(t *testing.T) { tc.run(t, plugin, judge) })
		}
	}
}

// follows reports whether fit follows the rules of a plugin already.
func follows(plugin string) bool {
	return plugin != "InterPodAffinity" && plugin != "PodTopologySpread" ||
		plugin == "InterPodAffinity" && modelled&podTerms != 0 || plugin == "PodTopologySpread" && modelled&spread != 0
}

func (s special) run(t *testing.T, plugin string, judge *oracle.Oracle) {
	w := world{World: oracle.World{Namespaces: map[string]map[string]string{"red": {"warm": "yes"}, "green": {}, "blue": {}}}}
	for _, line := range s.nodes {
		w.Nodes = append(w.Nodes, lineNode(line))
	}
	for i, line := range s.pods {
		w.Pods = append(w.Pods, linePod(t, fmt.Sprint("other-", i), line))
	}
	w.Pods = append(w.Pods, linePod(t, "asked", s.pod))
	c := newComparison(36, judge)
	b := &bench{comparison: &c, t: t, world: w, shown: c.show(w.Pods), seated: map[*pod]int{}, closed: map[*fit.Place]bool{}}
	b.begin()

	asked := b.waiting[len(b.waiting)-1]
	if at := slices.Index(b.nodes, s.closes); at >= 0 {
		b.cluster.Fits(asked.tenant.Class, b.places[at]) // it is known who counts
		b.close(at)
	}
	question := judge.Ask(asked.Pod)
	var theirs, ours []string
	for i, node := range b.nodes {
		if node == s.closes {
			continue
		}
		verdict, reasons := question.On(node), b.cluster.Fits(asked.tenant.Class, b.places[i])
		if why := differ(verdict, reasons); why != "" {
			t.Errorf("%s: %s", node, why)
		}
		if verdict.Plugin == "" {
			theirs = append(theirs, node)
		} else if verdict.Plugin != plugin && verdict.Plugin != "NodeAffinity" && verdict.Plugin != "TaintToleration" { // which spread looks at
			t.Errorf("%s is refused by %s %q: the case is about something else", node, verdict.Plugin, verdict.Reasons)
		}
		if len(reasons) == 0 {
			ours = append(ours, node)
		}
	}
	if got := strings.Join(theirs, " "); got != s.fits {
		t.Errorf("kube-scheduler: it fits [%s], want [%s]", got, s.fits)
	}
	if got := strings.Join(ours, " "); got != s.fits {
		t.Errorf("fit: it fits [%s], want [%s]", got, s.fits)
	}
}

// An extended resource that a device class serves is for DynamicResources, also
// where the pod is judged by itself for another reason.
func TestServedResourceOfAPodWithVolumes(t *testing.T) {
	judge, err := oracle.New(t.Context(), "1.36")
	if err != nil {
		t.Fatal(err)
	}
	g := &generator{dice: newDice(1), minor: 36}
	w := world{World: oracle.World{Nodes: []*corev1.Node{lineNode("n")}}}
	w.Devices.Classes = []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: ptr.To(string(served))}}}
	w.Devices.Slices = []*resourcev1.ResourceSlice{g.slice("n")}
	asked := linePod(t, "asked", "")
	demand(&asked.Spec.Containers[0].Resources, served, "1")
	asked.Spec.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}}}
	w.Pods = []*corev1.Pod{asked}

	c := newComparison(36, judge)
	b := &bench{comparison: &c, t: t, world: w, shown: c.show(w.Pods), seated: map[*pod]int{}}
	b.begin()
	if b.compare(); b.found != nil {
		t.Error(b.found.describe(36, 0))
	}
	if b.answers[""] != 1 {
		t.Errorf("kube-scheduler: %s", b.answers)
	}
}
