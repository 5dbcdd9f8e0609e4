package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/e2e/fakeaws"
)

// crowd is an API server with many nodes and pods, which it makes up as it is
// asked for them: a real one with as many needs gigabytes, and minutes to fill.
// It speaks what the scaler asks for: streamed lists in protobuf. Of all other
// kinds it has none, and what is written to it is dropped.
type crowd struct {
	nodes, podsPerNode int
	// grouped: the nodes are machines, see runBeside.
	grouped  bool
	machines []fakeaws.Instance
	// pods, if not nil, are sent to who watches pods after those that there are.
	pods <-chan watched
	// wrote, if not nil, is told of each Event.
	wrote func(*corev1.Event)
}

// watched is an event of a watch.
type watched struct {
	kind watch.EventType
	pod  *corev1.Pod
}

func (c crowd) start(b *testing.B) *httptest.Server {
	server := httptest.NewServer(c)
	b.Cleanup(func() {
		server.CloseClientConnections() // watches never end by themselves
		server.Close()
	})
	return server
}

func (c crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/version":
		fmt.Fprint(w, `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`)
	case r.Method != http.MethodGet:
		sent, err := io.ReadAll(r.Body) // all of it: nothing can be read after the first write
		if err != nil {
			return // the client went away
		}
		c.note(sent)
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(sent)
	case r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1":
		c.watch(w, r)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}

// watch reports every object that there is, then that the list is complete, and then what comes.
func (c crowd) watch(w http.ResponseWriter, r *http.Request) {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	w.Header().Set("Content-Type", info.MediaType+";stream=watch")
	events := streaming.NewEncoder(info.StreamSerializer.NewFrameWriter(w), scheme.Codecs.EncoderForVersion(info.StreamSerializer, corev1.SchemeGroupVersion))
	codecs := serializer.NewCodecFactory(crowdScheme)
	send := func(kind watch.EventType, o runtime.Object) bool {
		kinds, _, err := crowdScheme.ObjectKinds(o)
		if err != nil {
			return false
		}
		raw, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, kinds[0].GroupVersion()), o)
		return err == nil && events.Encode(&metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: raw}}) == nil
	}
	var end runtime.Object = &corev1.ConfigMap{}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		switch {
		case strings.HasSuffix(r.URL.Path, "/nodes"):
			for i := range c.nodes {
				if !send(watch.Added, c.node(i)) {
					return
				}
			}
			end = &corev1.Node{}
		case strings.HasSuffix(r.URL.Path, "/pods"):
			for i := range c.nodes * c.podsPerNode {
				if !send(watch.Added, crowdPod(i, i/c.podsPerNode, i%c.podsPerNode)) {
					return
				}
			}
			end = &corev1.Pod{}
		case strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"):
			end = &metav1.PartialObjectMetadata{}
		default:
			end = nothingOf(r.URL.Path)
		}
		end.(metav1.Object).SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		end.(metav1.Object).SetResourceVersion("1")
		if !send(watch.Bookmark, end) {
			return
		}
	}
	w.(http.Flusher).Flush()
	for strings.HasSuffix(r.URL.Path, "/pods") {
		select {
		case e := <-c.pods:
			if !send(e.kind, e.pod) {
				return
			}
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
	<-r.Context().Done()
}

// crowdScheme has what is sent: what clients know, and metadata alone.
var crowdScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	utilruntime.Must(metav1.AddMetaToScheme(s))
	return s
}()

// note tells of what was written, if it is an Event.
func (c crowd) note(sent []byte) {
	if c.wrote == nil {
		return
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(sent, nil, nil)
	if event, is := o.(*corev1.Event); err == nil && is {
		c.wrote(event)
	}
}

// nothingOf is an empty object of the kind that a path lists.
func nothingOf(path string) runtime.Object {
	plural := path[strings.LastIndexByte(path, '/')+1:]
	for kind := range scheme.Scheme.AllKnownTypes() {
		at := "/api/" + kind.Version + "/"
		if kind.Group != "" {
			at = "/apis/" + kind.Group + "/" + kind.Version + "/"
		}
		if name := strings.ToLower(kind.Kind); at+plural == path && (name+"s" == plural || name+"es" == plural || strings.TrimSuffix(name, "y")+"ies" == plural) {
			if o, err := scheme.Scheme.New(kind); err == nil {
				return o
			}
		}
	}
	return &corev1.ConfigMap{}
}

// node is one as crowdNode, of a machine where the crowd has them.
func (c crowd) node(i int) *corev1.Node {
	n := crowdNode(i)
	if len(c.machines) > 0 {
		m := c.machines[i]
		n.Spec.ProviderID = "aws:///" + m.Zone + "/" + m.ID
		n.Labels[corev1.LabelTopologyZone], n.Labels["failure-domain.beta.kubernetes.io/zone"], n.Labels["topology.ebs.csi.aws.com/zone"] = m.Zone, m.Zone, m.Zone
	}
	return n
}

var crowdBorn = metav1.NewTime(time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC))

func crowdNodeName(i int) string {
	return fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", i>>16, i>>8&255, i&255)
}

// crowdNode is a node as EKS makes them, with what makes them large.
func crowdNode(i int) *corev1.Node {
	zone := string("abc"[i%3])
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("7910m"), corev1.ResourceMemory: resource.MustParse("31482284Ki"), corev1.ResourcePods: resource.MustParse("58"),
		corev1.ResourceEphemeralStorage: resource.MustParse("76224326324"), "hugepages-1Gi": resource.MustParse("0"), "hugepages-2Mi": resource.MustParse("0"),
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: crowdNodeName(i), UID: types.UID(fmt.Sprintf("7b0c1bcb-9a1f-4a7e-b4e4-%012d", i)), CreationTimestamp: crowdBorn, ResourceVersion: "1",
			Annotations: map[string]string{
				"alpha.kubernetes.io/provided-node-ip": "10.0.0.1", "csi.volume.kubernetes.io/nodeid": fmt.Sprintf(`{"ebs.csi.aws.com":"i-%017d"}`, i),
				"node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed-attach-detach": "true",
			},
			Labels: map[string]string{
				corev1.LabelHostname: crowdNodeName(i), corev1.LabelTopologyZone: "eu-west-1" + zone, corev1.LabelTopologyRegion: "eu-west-1", corev1.LabelInstanceTypeStable: "m5.2xlarge",
				corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/instance-type": "m5.2xlarge",
				"failure-domain.beta.kubernetes.io/region": "eu-west-1", "failure-domain.beta.kubernetes.io/zone": "eu-west-1" + zone, "k8s.io/cloud-provider-aws": "0123456789abcdef0123456789abcdef",
				"eks.amazonaws.com/nodegroup": "web", "eks.amazonaws.com/capacityType": "ON_DEMAND", "eks.amazonaws.com/nodegroup-image": "ami-0123456789abcdef0", "topology.ebs.csi.aws.com/zone": "eu-west-1" + zone,
				"topology.k8s.aws/zone-id": "euw1-az1", "team": "shop",
			}},
		Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///eu-west-1%s/i-%017d", zone, i)},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room, NodeInfo: corev1.NodeSystemInfo{BootID: fmt.Sprintf("5f0c1bcb-9a1f-4a7e-b4e4-%012d", i)},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: crowdBorn}}},
	}
	for image := range 50 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry/team/image-%d@sha256:%064d", image, image)}})
	}
	return n
}

// crowdPod is the pod at a place of a node: the first three are of DaemonSets,
// the others of 500 ReplicaSets.
func crowdPod(number, node, place int) *corev1.Pod {
	app, kind := fmt.Sprintf("app-%03d", (number*7919)%500), "ReplicaSet"
	if place < 3 {
		app, kind = fmt.Sprintf("daemon-%d", place), "DaemonSet"
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-" + app[len(app)-1:], Name: fmt.Sprintf("%s-7d4b9c6f5d-%06d", app, number), UID: types.UID(fmt.Sprintf("1b9d6bcd-bbfd-4b2d-9b5d-%012d", number)), ResourceVersion: "1",
			CreationTimestamp: crowdBorn, Labels: map[string]string{"app.kubernetes.io/name": app, "app.kubernetes.io/version": "1.2.3", "pod-template-hash": "7d4b9c6f5d", "team": "shop"},
			Annotations:     map[string]string{"prometheus.io/scrape": "true", "checksum/config": strings.Repeat("0123456789abcdef", 4)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: app + "-7d4b9c6f5d", UID: types.UID("2c9d6bcd-bbfd-4b2d-9b5d-" + app), Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName: crowdNodeName(node), ServiceAccountName: app, Priority: ptr.To[int32](0), SchedulerName: "default-scheduler", RestartPolicy: corev1.RestartPolicyAlways,
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists}, {Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists}},
			Volumes:     []corev1.Volume{{Name: fmt.Sprintf("kube-api-access-%05d", number), VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.2.3", QOSClass: corev1.PodQOSBurstable},
	}
	for c := range 2 {
		request := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")}}
		name := fmt.Sprintf("c%d", c)
		env := []corev1.EnvVar{{Name: "CONFIG", Value: strings.Repeat("x", 200)}}
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Image: "registry/team/" + app, Env: env, Resources: request})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, Ready: true, AllocatedResources: request.Requests, Resources: &request})
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: crowdBorn})
	}
	if kind == "DaemonSet" {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{p.Spec.NodeName}}}}}}}}
	}
	return p
}
