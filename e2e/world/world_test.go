package world

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/script"
	"windlass.dev/windlass/pkg/kube"
)

// asProgram makes the test binary run in the place of agent and scaler: it says
// who it is to the API server, serves, and waits for its end.
const asProgram = "WORLD_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		if err := program(); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func program() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var kubeconfig, listen string
	for _, arg := range os.Args {
		if v, ok := strings.CutPrefix(arg, "--kubeconfig="); ok {
			kubeconfig = v
		}
		if v, ok := strings.CutPrefix(arg, "--metrics-address="); ok {
			listen = v
		}
	}
	config, err := kube.Config(kubeconfig, "program", "test")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	me, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println("user", me.Status.UserInfo.Username, "pod", me.Status.UserInfo.Extra["authentication.kubernetes.io/pod-name"])
	fmt.Println("args", os.Args[1:])
	for _, e := range os.Environ() {
		fmt.Println("env", e)
	}
	if listen != "" {
		go http.ListenAndServe(listen, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "up 1") }))
	}
	<-ctx.Done()
	fmt.Println("asked to end")
	return nil
}

// TestWorld: a group's instance joins and gets an agent with the rights of its
// own pod, the scalers run on the fixed nodes, and all of it ends with its
// machine, or with the world.
func TestWorld(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	programs := supervisorOnly(t)
	programs.Agent, programs.Scaler = os.Args[0], os.Args[0]
	one := 1
	w, err := Start(ctx, Config{
		Programs: programs, Dir: t.TempDir(), Progress: t.Output(),
		Spec: Spec{Environment: []string{asProgram + "=1"}, Cloud: cloud.Spec{Timing: cloud.Timing{Quick: true}, Groups: []cloud.Group{{Name: "web", Max: 3, Desired: &one, Type: "m5.large"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	t.Run("inside", func(t *testing.T) { inside(ctx, t, w) })
	began := time.Now()
	if err := w.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	t.Logf("closed in %s", time.Since(began).Round(time.Millisecond))
	for name, pid := range w.Plane.PIDs {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("%s outlived the world", name)
		}
	}
}

func inside(ctx context.Context, t *testing.T, w *World) {
	asker, err := script.NewAsker(w.Admin)
	if err != nil {
		t.Fatal(err)
	}
	wait := func(query string) script.Answer {
		t.Helper()
		q, err := script.Parse(strings.Fields(query))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := asker.Wait(ctx, q)
		if err != nil {
			t.Fatalf("waiting for %s: %v", query, err)
		}
		return answer
	}
	answer := wait("nodes -l node.kubernetes.io/instance-type=m5.large condition:Ready==True count==1 .spec.taints==")
	node := answer.Names()[0]
	instance, ok := w.Instance(node)
	if !ok {
		t.Fatalf("no instance behind node %s", node)
	}

	wait("pods -n windlass-system -l app.kubernetes.io/name=windlass-scaler count==2 .status.phase==Running")
	wait("pods -n windlass-system -l app.kubernetes.io/name=windlass-agent .status.phase==Running .spec.nodeName==" + node)
	agent := await(ctx, t, func() string { pod, _ := w.AgentOf(node); return pod })
	log := awaitLog(ctx, t, w, agent, "env POD_NAME=")
	for _, want := range []string{
		"user system:serviceaccount:windlass-system:windlass-agent pod [" + agent + "]",
		"env NODE_NAME=" + node,
		"env AWS_EC2_METADATA_SERVICE_ENDPOINT=http://" + instance.IMDSAddr,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the agent's log has no %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, "AWS_SECRET_ACCESS_KEY") {
		t.Error("the agent has AWS credentials")
	}
	scalers := w.Scalers()
	if len(scalers) != 2 {
		t.Fatalf("scalers: %q, want two", scalers)
	}
	log = awaitLog(ctx, t, w, scalers[0], "env POD_NAME=")
	for _, want := range []string{"windlass-scaler pod [" + scalers[0] + "]", "k8s.io/cluster-autoscaler/" + ClusterName + " ", "env AWS_ENDPOINT_URL=" + w.AWS.URL()} {
		if !strings.Contains(log, want) {
			t.Errorf("the scaler's log has no %q:\n%s", want, log)
		}
	}

	// Killed, it stays down and its pod is not Ready; started, it is.
	if err := w.KillProgram(ctx, agent); err != nil {
		t.Fatal(err)
	}
	wait("pods/" + agent + " -n windlass-system condition:Ready==False")
	if err := w.StartProgram(ctx, agent); err != nil {
		t.Fatal(err)
	}
	wait("pods/" + agent + " -n windlass-system condition:Ready==True")
	if exits := w.Exits(); len(exits) != 0 {
		t.Errorf("ends that were asked for are counted as crashes: %v", exits)
	}

	// The API server may be away for a while; the node goes all the same.
	if err := w.Plane.Kill(ctx, APIServer); err != nil {
		t.Fatal(err)
	}
	instance.Gone, instance.OS = true, cloud.OSOff
	w.joiner.observe(instance)
	if err := w.Plane.Start(ctx, APIServer); err != nil {
		t.Fatal(err)
	}
	wait("nodes/" + node + " gone")
	// Its pod is there until the garbage collector has it; the process is not.
	await(ctx, t, func() string {
		for _, p := range w.Processes() {
			if p.Node == node {
				return ""
			}
		}
		return "no program runs on the machine"
	})
}

// await asks until there is an answer.
func await(ctx context.Context, t *testing.T, ask func() string) string {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if answer := ask(); answer != "" {
			return answer
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx))
		}
	}
}

// awaitLog reads the log of a pod until it has some text.
func awaitLog(ctx context.Context, t *testing.T, w *World, pod, text string) string {
	t.Helper()
	return await(ctx, t, func() string {
		content, err := w.Log(pod)
		if err != nil || !strings.Contains(string(content), text) {
			return ""
		}
		return string(content)
	})
}

// supervisorOnly builds what a world needs besides the programs.
func supervisorOnly(t *testing.T) Programs {
	t.Helper()
	p, err := BuildControlPlane(t.Context(), t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return p
}
