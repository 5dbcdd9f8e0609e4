package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/e2e/demo/watch"
	"windlass.dev/windlass/e2e/world"
)

// TestLive: on a terminal the viewer sees the play's captions above the cluster's nodes, may do
// nothing to them, and ends the demo by q; what was seen last stays.
func TestLive(t *testing.T) {
	viewers, programs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer viewers.Close()
	if err := pty.Setsize(programs, &pty.Winsize{Cols: 90, Rows: 28}); err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-0-7"}}
	s := &stage{Watch: watch.New(), world: &world.World{Client: fake.NewClientset(node)}}
	s.Show(story.Act{Number: 2, Of: 5, Title: "A burst", Awaited: []string{"all of it runs"}})
	left := make(chan struct{})
	stop, err := live(s, programs, programs, func() { close(left) })
	if err != nil {
		t.Fatal(err)
	}
	emulator, alternate := vt.NewEmulator(90, 28), false
	emulator.SetCallbacks(vt.Callbacks{AltScreen: func(on bool) { alternate = on }})
	answered := make(chan error, 1)
	go func() { // what a terminal says when it is asked what it is
		_, err := io.Copy(viewers, emulator)
		answered <- err
	}()
	buffer := make([]byte, 4096)
	see := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			for !alternate || !strings.Contains(emulator.String(), text) {
				n, err := viewers.Read(buffer)
				if err != nil {
					t.Fatalf("waiting for %q: %v; it shows\n%s", text, err, emulator.String())
				}
				if _, err := emulator.Write(buffer[:n]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	press := func(keys string) {
		t.Helper()
		if _, err := io.WriteString(viewers, keys); err != nil {
			t.Fatal(err)
		}
	}
	see("act 2 of 5: A burst", "waits for  all of it runs", "> ip-10-0-0-7")
	press("d")
	see("here one can only look")
	press("q")
	<-left
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(stop(), programs.Close()) }()
	for { // until the terminal has no program any more
		n, err := viewers.Read(buffer)
		if _, wrote := emulator.Write(buffer[:n]); wrote != nil {
			t.Fatal(wrote)
		}
		if err != nil {
			break
		}
	}
	if err := errors.Join(<-ended, emulator.InputPipe().(io.Closer).Close(), <-answered); err != nil {
		t.Error(err)
	}
	if last := emulator.String(); alternate || !strings.Contains(last, "waits for  all of it runs") || !strings.Contains(last, "> ip-10-0-0-7") {
		t.Errorf("on the other screen: %v; what is left:\n%s", alternate, last)
	}
}

// TestLiveGivesTheTerminalBack: a fault of the program ends the demo as an error, and not on a raw
// terminal in the alternate screen.
func TestLiveGivesTheTerminalBack(t *testing.T) {
	viewers, programs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer viewers.Close()
	if err := pty.Setsize(programs, &pty.Winsize{Cols: 90, Rows: 28}); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { panic("nobody foresaw it") })
	s := &stage{Watch: watch.New(), world: &world.World{Client: client}}
	left := make(chan struct{})
	stop, err := live(s, programs, programs, func() { close(left) })
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		<-left
		err := stop()
		if wrong := programs.Close(); wrong != nil {
			t.Error(wrong)
		}
		ended <- err
	}()
	all, _ := io.ReadAll(viewers) // until nobody has it open
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "a fault of this program: nobody foresaw it") {
		t.Errorf("error %v", err)
	}
	if text := string(all); strings.LastIndex(text, "\x1b[?1049h") > strings.LastIndex(text, "\x1b[?1049l") {
		t.Errorf("the terminal stays on the other screen: %q", text)
	}
}
