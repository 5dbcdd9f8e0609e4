package main

import (
	"encoding/json"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// loopback is the one address from which and at which verdicts are served. They name every
// pod of the cluster, so only those get them who may run a program in this pod's network:
// kubectl port-forward does.
//
// A listener of its own keeps service meshes out. They hand connections from elsewhere on
// to the pod's address (Istio since 1.10, with 127.0.0.6 as the source), where nothing
// listens, and those that hand them on to 127.0.0.1 do so for declared ports. This one is
// declared nowhere.
// https://istio.io/latest/blog/2021/upcoming-networking-changes/
const loopback = "127.0.0.1"

// listenForVerdicts is nil where verdicts are not served. That the port is taken, such as
// by a sidecar, stops nothing else.
func (sc *scaler) listenForVerdicts() net.Listener {
	if sc.settings.verdictsPort == 0 {
		return nil
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort(loopback, strconv.Itoa(int(sc.settings.verdictsPort))))
	if err != nil {
		sc.logger.Warn("verdicts not served: set --verdicts-port to a free port, or to 0", "err", err)
		return nil
	}
	return listener
}

// verdictsHandler serves the latest plan, and below /plan answers what would be done now.
func (sc *scaler) verdictsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", sc.verdicts)
	mux.Handle("/plan", &ask{policy: sc.settings.policy, leads: sc.leads, look: lookBetween(sc.asked), now: time.Now})
	return guarded(mux)
}

const (
	// places is how many may be served at once. An answer of a large cluster has tens of
	// megabytes, which are held until they are read.
	places = 4
	// answerTime is how long a caller may take to read an answer.
	answerTime = 30 * time.Second
)

// guarded serves those who may ask, in so many places.
func guarded(handler http.Handler) http.Handler {
	taken := make(chan struct{}, places)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !local(r) {
			http.Error(w, notLocal, http.StatusForbidden)
			return
		}
		if r.Method != http.MethodGet {
			http.Error(w, "want GET", http.StatusMethodNotAllowed)
			return
		}
		select {
		case taken <- struct{}{}:
			defer func() { <-taken }()
			handler.ServeHTTP(w, r)
		default:
			tooMany(time.Second).write(w)
		}
	})
}

// answer writes a plan.
func answer(w http.ResponseWriter, text []byte) {
	// Who does not read keeps no place.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // not of a test's recorder
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a caller that hung up is not worth a log line
}

// refusal is an answer that is none.
type refusal struct {
	status int
	text   string
	again  time.Duration // how long to wait before asking again, if that may help
}

func tooMany(wait time.Duration) *refusal {
	return &refusal{http.StatusTooManyRequests, "few questions at a time: others were asked a moment ago", wait}
}

func (r *refusal) write(w http.ResponseWriter) {
	if r.again > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(r.again.Seconds()))))
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // it may come late
	http.Error(w, r.text, r.status)
}

// leads says who leads, and whether it is this replica.
func (sc *scaler) leads() (leader string, us bool) {
	if known := sc.leader.Load(); known != nil {
		leader = *known
	}
	return leader, sc.leading.Load()
}

// notLocal is said to whoever asks from elsewhere.
const notLocal = "verdicts are served to " + loopback + " alone, and to no web page; use kubectl port-forward"

// verdicts serves the latest plan in full.
func (sc *scaler) verdicts(w http.ResponseWriter, _ *http.Request) {
	sc.mu.Lock()
	latest := sc.latest
	sc.mu.Unlock()
	text, err := latest()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, text)
}

// encodedOnce is the text of a plan, made when it is first asked for: all who read it share it.
func encodedOnce(l evaluation) func() ([]byte, error) {
	return sync.OnceValues(func() ([]byte, error) { return json.Marshal(newPrintout(l.snapshot, l.plan)) })
}

// local reports whether a request comes from the loopback address itself, not from another of
// 127.0.0.0/8, which meshes use, and asks for it by its own name. A web page in the browser of
// somebody who forwards the port comes from there, too: it asks by its own name if it rebinds
// that, and by ours otherwise, where the browser says for whom it asks.
// https://developer.mozilla.org/docs/Web/HTTP/Reference/Headers/Sec-Fetch-Site
func local(r *http.Request) bool {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || from != loopback {
		return false
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return false
	}
	return (host == loopback || host == "localhost") && r.Header.Values("Origin") == nil
}
