package metadata

import (
	"context"
	"net"
	"net/http"

	"golang.org/x/net/ipv4"
)

// hops is how far the answers on one connection go: the service sends the answer to the token PUT with an IP time to live of the instance's hop limit, so
// that a router on the way, such as a node between the service and a pod, drops it.
//
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
type hops struct {
	conn  *ipv4.Conn
	usual int // the time to live that the system gave the connection
}

type hopsKey struct{}

// withHops notes for the requests on a connection how its answers can be limited.
func withHops(ctx context.Context, c net.Conn) context.Context {
	conn := ipv4.NewConn(c)
	usual, err := conn.TTL()
	if err != nil {
		return ctx // The client has gone already.
	}
	return context.WithValue(ctx, hopsKey{}, &hops{conn, usual})
}

func hopsOf(r *http.Request) *hops {
	h, _ := r.Context().Value(hopsKey{}).(*hops)
	return h
}

// limit makes what is sent from now on go so many hops.
func (h *hops) limit(n int) {
	if h == nil {
		return
	}
	_ = h.conn.SetTTL(n) // It fails if the client has gone.
}

func (h *hops) unlimited() {
	if h != nil {
		h.limit(h.usual)
	}
}
