package main

import (
	"encoding/json"
	"net"
	"net/http"
	"strconv"
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

// verdicts serves the latest plan in full.
func (sc *scaler) verdicts(w http.ResponseWriter, r *http.Request) {
	if !local(r) {
		http.Error(w, "verdicts are served to "+loopback+" alone; use kubectl port-forward", http.StatusForbidden)
		return
	}
	sc.mu.Lock()
	l := sc.latest
	sc.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	// A caller that hung up is not worth a log line.
	_ = json.NewEncoder(w).Encode(newPrintout(l.snapshot, l.plan))
}

// local reports whether a request comes from the loopback address itself, not from another of
// 127.0.0.0/8, which meshes use, and asks for it by its own name: a web page in the browser
// of somebody who forwards the port asks by the page's.
func local(r *http.Request) bool {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || from != loopback {
		return false
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return host == loopback || host == "localhost"
}
