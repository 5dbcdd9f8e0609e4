package fakeaws

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/api"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	s.addControl(mux)
	mux.HandleFunc("/", s.serveAWS)
	return mux
}

// request is an AWS request that has been read.
type request struct {
	service   wire.Service
	operation string
	values    wire.Values
	accessKey string
}

// serveAWS answers one call of an AWS service.
func (s *Server) serveAWS(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	req, problem := read(r)
	call := Call{
		Time: started, Service: req.service.Name, Operation: req.operation, Params: req.values.Flat(), AccessKey: req.accessKey,
		UserAgent: r.UserAgent(), RequestID: requestID(), Status: http.StatusOK,
	}
	verdict := verdict{err: problem}
	if problem == nil {
		var forbidden *cloud.Error
		forbidden, call.Lacks = s.forbidden(call)
		verdict = s.faults.judge(call, forbidden, started)
	}
	answer, err := s.carryOut(r, req, verdict)
	if err != nil {
		e := wire.ErrorOf(err)
		call.Status, call.Error, call.Message = e.Status, e.Code, e.Message
	}
	// A caller that has gone away is not waited for; the call is logged all the same.
	_ = s.Sleep(r.Context(), s.cfg.Latency-time.Since(started))
	call.Took = time.Since(started)
	s.log.Debug("call", "call", call)
	s.calls.add(call)
	if verdict.lose {
		panic(http.ErrAbortHandler)
	}
	if err := reply(w, req, call, answer); err != nil {
		s.log.Debug("answering a call", "operation", req.operation, "error", err)
	}
}

func reply(w http.ResponseWriter, req request, call Call, answer any) error {
	if call.Error != "" {
		return req.service.WriteError(w, call.RequestID, &cloud.Error{Status: call.Status, Code: call.Error, Message: call.Message})
	}
	return req.service.WriteAnswer(w, req.operation, call.RequestID, answer)
}

// carryOut does what the verdict says, and the operation if it lets it.
func (s *Server) carryOut(r *http.Request, req request, v verdict) (any, error) {
	if err := s.Sleep(r.Context(), v.wait); err != nil {
		return nil, fmt.Errorf("the caller went away: %w", err)
	}
	if v.err != nil {
		return nil, v.err
	}
	handle := api.Operations[req.service.Name][req.operation]
	if handle == nil {
		return nil, unknownOperation(req)
	}
	if v.age > 0 {
		return handle(r.Context(), past{s, v.age}, req.values)
	}
	return handle(r.Context(), s, req.values)
}

// past is the cloud as it was a while ago, for calls that describe.
type past struct {
	*Server
	age time.Duration
}

func (p past) With(f func(c *cloud.Cloud, now time.Time) error) error {
	return p.live.At(time.Now().Add(-p.age), f)
}

func unknownOperation(req request) error {
	if req.service.Protocol == wire.JSON {
		return cloud.Errorf(http.StatusNotFound, "UnknownOperationException", "The fake does not know this operation")
	}
	return cloud.Errorf(http.StatusBadRequest, "InvalidAction", "Could not find operation %s for version %s", req.operation, req.service.Version)
}

// credential is the part of the Authorization header that tells who calls which service.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
var credential = regexp.MustCompile(`Credential=([^/]+)/[0-9]{8}/[^/]+/([^/]+)/aws4_request`)

// read reads a request. The signature is not checked; its credential scope decides the service.
func read(r *http.Request) (request, *cloud.Error) {
	req := request{service: wire.AutoScaling, values: wire.Values{}}
	if err := r.ParseForm(); err != nil {
		return req, cloud.Errorf(http.StatusBadRequest, "MalformedQueryString", "The query string contains a syntax error: %v", err)
	}
	req.values = wire.Values(r.Form)
	req.operation = r.Form.Get("Action")
	m := credential.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil {
		return unsigned(req, r.Form)
	}
	service, ok := wire.ServiceNamed(m[2])
	if !ok {
		return req, cloud.Errorf(http.StatusBadRequest, "SignatureDoesNotMatch", "Credential should be scoped to a service that the fake knows, not: %s", m[2])
	}
	req.accessKey, req.service = m[1], service
	if service.Protocol == wire.JSON {
		readPath(&req, r)
		return req, nil
	}
	if req.operation == "" {
		return req, cloud.Errorf(http.StatusBadRequest, "MissingAction", "The request is missing an action or a required parameter.")
	}
	return req, nil
}

// unsigned lets those requests pass that AWS takes without a signature: credentials for a web identity.
func unsigned(req request, form url.Values) (request, *cloud.Error) {
	if form.Get("Version") == wire.EC2Service.Version {
		req.service = wire.EC2Service
	}
	if form.Get("Version") == wire.STS.Version {
		req.service = wire.STS
		if req.operation == "AssumeRoleWithWebIdentity" {
			return req, nil
		}
	}
	return req, cloud.Errorf(http.StatusForbidden, "MissingAuthenticationToken", "Request is missing Authentication Token")
}

// readPath takes operation and parameters of EKS from the path: GET /clusters/{name} and GET /clusters/{name}/node-groups/{nodegroupName}.
func readPath(req *request, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.EscapedPath(), "/"), "/")
	params := map[string]string{}
	switch {
	case r.Method == http.MethodGet && len(parts) == 2 && parts[0] == "clusters":
		req.operation, params["name"] = "DescribeCluster", parts[1]
	case r.Method == http.MethodGet && len(parts) == 4 && parts[0] == "clusters" && parts[2] == "node-groups":
		req.operation, params["clusterName"], params["nodegroupName"] = "DescribeNodegroup", parts[1], parts[3]
	default:
		req.operation = r.Method + " " + r.URL.Path
	}
	for name, part := range params {
		text, err := url.PathUnescape(part)
		if err != nil {
			text = part
		}
		req.values[name] = []string{text}
	}
}

// requestID makes an id such as each answer of AWS carries.
func requestID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
