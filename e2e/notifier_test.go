package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
)

// notifierOf is the notifier of a script: its process, and the Slack that it posts to.
type notifierOf struct {
	binary, dir string
	log         string
	process     *exec.Cmd
	slack       *slackOf
}

var buildNotifier = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(bin, contract.AppNotifier)
	out, err := exec.Command("go", "build", "-o", binary, "../notifier").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the notifier: %w\n%s", err, out)
	}
	return binary, nil
})

// notifier runs the component notifications, and its program with the rights of its account:
// notifier start CONFIG | kill | await REGEXP | posted REGEXP COUNT.
func (s *session) notifier(ts *testscript.TestScript, neg bool, args []string) error {
	usage := errors.New("usage: notifier start CONFIG | kill | await REGEXP | posted REGEXP COUNT")
	if s.w == nil {
		return errNoWorld
	}
	if neg || len(args) == 0 {
		return usage
	}
	switch {
	case args[0] == "start" && len(args) == 2 && s.tells == nil:
		return s.startNotifier(ts, ts.ReadFile(args[1]))
	case s.tells == nil:
		return errors.New("there is no notifier yet: notifier start CONFIG")
	case args[0] == "kill" && len(args) == 1:
		s.tells.stop()
		return s.tells.start()
	case args[0] == "await" && len(args) == 2:
		pattern, err := regexp.Compile(args[1])
		if err != nil {
			return err
		}
		text, err := s.tells.slack.await(s, pattern)
		fmt.Fprintln(ts.Stdout(), text)
		if err != nil {
			return fmt.Errorf("%w; its log:\n%s", err, world.Tail(s.tells.log, 15))
		}
		return nil
	case args[0] == "posted" && len(args) == 3:
		pattern, err := regexp.Compile(args[1])
		if err != nil {
			return err
		}
		if got := fmt.Sprint(s.tells.slack.posted(pattern)); got != args[2] {
			return fmt.Errorf("%s messages match %s, want %s:\n%s", got, args[1], args[2], strings.Join(s.tells.slack.all(), "\n"))
		}
		return nil
	}
	return usage
}

func (s *session) startNotifier(ts *testscript.TestScript, config string) error {
	binary, err := buildNotifier()
	if err != nil {
		return err
	}
	dir := ts.MkAbs(".notifier")
	n := &notifierOf{binary: binary, dir: dir, log: filepath.Join(s.w.Dir, "logs", contract.AppNotifier+".log"), slack: newSlackOf()}
	if err := os.MkdirAll(filepath.Join(dir, "secrets"), 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"config.yaml": strings.ReplaceAll(config, "$SLACK", n.slack.URL), "secrets/slack-token": slackToken, "secrets/hook": n.slack.URL + "/hook/" + slackToken,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := s.applyNotifications(dir); err != nil {
		return err
	}
	if err := s.kubeconfigOf(contract.AppNotifier, filepath.Join(dir, "kubeconfig")); err != nil {
		return err
	}
	s.tells = n
	ts.Defer(func() {
		n.stop()
		n.slack.Close()
	})
	return n.start()
}

// applyNotifications applies what the component adds to the manifests.
func (s *session) applyNotifications(dir string) error {
	root, err := world.Root(s.ctx)
	if err != nil {
		return err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	manifests, err := filepath.Rel(dir, filepath.Join(root, "manifests"))
	if err != nil {
		return err
	}
	text := fmt.Sprintf("resources: [%s]\ncomponents: [%[1]s/components/notifications]\n", manifests)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	_, err = s.w.Kubectl(s.ctx, nil, "apply", "-k", dir, "-l", contract.LabelAppName+"="+contract.AppNotifier)
	return err
}

// kubeconfigOf writes one with a token of an account.
func (s *session) kubeconfigOf(account, file string) error {
	token, err := s.w.Client.CoreV1().ServiceAccounts(world.Namespace).CreateToken(s.ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking for a token of %s: %w", account, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: s.w.Admin.Host, CertificateAuthority: s.w.Admin.CAFile, CertificateAuthorityData: s.w.Admin.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	return clientcmd.WriteToFile(*config, file)
}

func (n *notifierOf) start() error {
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	n.process = exec.Command(n.binary, "--kubeconfig="+filepath.Join(n.dir, "kubeconfig"), "--config="+filepath.Join(n.dir, "config.yaml"),
		"--secrets="+filepath.Join(n.dir, "secrets"), "--namespace="+world.Namespace, "--leader-elect-identity=one", "--cluster-name=blue", "--metrics-address=")
	n.process.Stdout, n.process.Stderr = log, log
	return n.process.Start()
}

// stop ends it as a node's loss would.
func (n *notifierOf) stop() {
	_ = n.process.Process.Kill() // it may have ended
	_ = n.process.Wait()
}

// slackOf speaks the part of Slack's Web API and of incoming webhooks that is used, and keeps
// each message as it is now.
type slackOf struct {
	*httptest.Server
	mu       sync.Mutex
	messages []string
	news     chan struct{} // closed at the next message
}

const slackToken = "xoxb-000000000000-notasecret"

func newSlackOf() *slackOf {
	s := &slackOf{news: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	return s
}

func (s *slackOf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	form, _ := url.ParseQuery(string(body)) // JSON is none, and has no fields
	at := len(s.messages)
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/hook/" + slackToken:
		var message struct{ Text string }
		if err := json.Unmarshal(body, &message); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.messages = append(s.messages, "hook: "+message.Text)
		fmt.Fprint(w, "ok")
	case "/chat.postMessage":
		s.messages = append(s.messages, "bot: "+plain(form))
		fmt.Fprintf(w, `{"ok":true,"channel":"C1","ts":"%d.0"}`, at)
	case "/chat.update":
		if _, err := fmt.Sscanf(form.Get("ts"), "%d.0", &at); err != nil || at >= len(s.messages) {
			fmt.Fprint(w, `{"ok":false,"error":"message_not_found"}`)
			return
		}
		s.messages[at] = "bot: " + plain(form)
		fmt.Fprintf(w, `{"ok":true,"channel":"C1","ts":"%d.0"}`, at)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
	close(s.news)
	s.news = make(chan struct{})
}

// plain is what a person reads of blocks.
func plain(form url.Values) string {
	var texts []string
	for _, found := range regexp.MustCompile(`"text":("(?:[^"\\]|\\.)*")`).FindAllStringSubmatch(form.Get("blocks"), -1) {
		var text string
		if json.Unmarshal([]byte(found[1]), &text) == nil {
			texts = append(texts, strings.ReplaceAll(text, "\n", " "))
		}
	}
	return strings.Join(texts, "; ")
}

func (s *slackOf) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.messages...)
}

func (s *slackOf) posted(pattern *regexp.Regexp) int {
	count := 0
	for _, m := range s.all() {
		if pattern.MatchString(m) {
			count++
		}
	}
	return count
}

// await waits for a message that matches.
func (s *slackOf) await(of *session, pattern *regexp.Regexp) (string, error) {
	for {
		s.mu.Lock()
		news := s.news
		s.mu.Unlock()
		for _, m := range s.all() {
			if pattern.MatchString(m) {
				return m, nil
			}
		}
		select {
		case <-news:
		case <-of.ctx.Done():
			return "", fmt.Errorf("no message matches %s (%w); there are:\n%s", pattern, of.ctx.Err(), strings.Join(s.all(), "\n"))
		}
	}
}
