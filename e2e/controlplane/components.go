package main

import (
	"fmt"
	"path/filepath"
)

// component is one program of the control plane.
type component struct {
	name   string
	health string // URL that answers 200 when it is ready
	args   []string
}

// loopback is where everything listens that only this machine's programs ask.
const loopback = "127.0.0.1"

// kubeletClient is what the API server calls itself when it asks a kubelet, as kubeadm
// has it: for logs, exec and port-forward.
const kubeletClient = "kube-apiserver-kubelet-client"

// tokenFile names the users of the API that are no service accounts, by a token each.
const tokenFile = "tokens.csv"

// ports are the loopback ports of one control plane.
type ports struct {
	etcd, etcdPeer, apiserver, kcm, scheduler, kwok int
}

// components returns the programs in the order in which they are started; they
// end in the opposite order. What differs from a production cluster is said
// beside each flag; whatever no line speaks of is as upstream has it.
func components(dir string, p ports, o options) []component {
	pki := func(file string) string { return filepath.Join(dir, "pki", file) }
	file := func(name string) string { return filepath.Join(dir, name) }
	serving := []string{
		"--tls-cert-file=" + pki("server.crt"),
		"--tls-private-key-file=" + pki("server.key"),
	}
	etcd := fmt.Sprintf("http://%s:%d", loopback, p.etcd)
	etcdPeer := fmt.Sprintf("http://%s:%d", loopback, p.etcdPeer)
	host := o.apiServerHost()

	all := []component{{
		name:   "etcd",
		health: etcd + "/health",
		args: []string{
			"--name=default",
			"--data-dir=" + file("etcd"),
			"--listen-client-urls=" + etcd,
			"--advertise-client-urls=" + etcd,
			"--listen-peer-urls=" + etcdPeer,
			"--initial-advertise-peer-urls=" + etcdPeer,
			"--initial-cluster=default=" + etcdPeer,
			"--quota-backend-bytes=8589934592",
			"--unsafe-no-fsync", // nothing here outlives the machine
			// It is alone: an election is no more than a pause of a second at its start.
			"--heartbeat-interval=20",
			"--election-timeout=200",
			"--log-level=warn",
		},
	}, {
		name:   apiServer,
		health: fmt.Sprintf("https://%s:%d/readyz", host, p.apiserver),
		args: append([]string{
			"--etcd-servers=" + etcd,
			"--bind-address=" + host,
			"--advertise-address=" + host,
			fmt.Sprintf("--secure-port=%d", p.apiserver),
			"--endpoint-reconciler-type=" + o.endpointReconciler(),
			"--kubelet-client-certificate=" + pki(kubeletClient+".crt"),
			"--kubelet-client-key=" + pki(kubeletClient+".key"),
			// Names of nodes are not in any DNS.
			"--kubelet-preferred-address-types=InternalIP",
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			"--client-ca-file=" + pki("ca.crt"),
			"--token-auth-file=" + pki(tokenFile),
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + pki("service-account.pub"),
			"--service-account-signing-key-file=" + pki("service-account.key"),
			"--service-cluster-ip-range=10.96.0.0/16",
			// Nobody proxies; without an authority for it KCM and scheduler complain
			// every few seconds.
			"--requestheader-client-ca-file=" + pki("ca.crt"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--allow-privileged=true",
			// One client, kwok, speaks for thousands of kubelets: no fair queues.
			"--enable-priority-and-fairness=false",
			"--max-requests-inflight=3000",
			"--max-mutating-requests-inflight=1000",
			"--profiling=false",
		}, serving...),
	}, {
		name:   "kube-controller-manager",
		health: fmt.Sprintf("https://%s:%d/healthz", loopback, p.kcm),
		args: append([]string{
			"--kubeconfig=" + file("kube-controller-manager.kubeconfig"),
			"--authentication-kubeconfig=" + file("kube-controller-manager.kubeconfig"),
			"--authorization-kubeconfig=" + file("kube-controller-manager.kubeconfig"),
			"--bind-address=" + loopback,
			fmt.Sprintf("--secure-port=%d", p.kcm),
			"--leader-elect=false", // it is alone; see elected
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + pki("service-account.key"),
			"--root-ca-file=" + pki("ca.crt"),
			"--cluster-signing-cert-file=" + pki("ca.crt"),
			"--cluster-signing-key-file=" + pki("ca.key"),
			"--kube-api-qps=500",
			"--kube-api-burst=1000",
			"--concurrent-deployment-syncs=20",
			"--concurrent-replicaset-syncs=20",
			"--concurrent-statefulset-syncs=20",
			"--concurrent-job-syncs=20",
			"--concurrent-gc-syncs=20",
			"--profiling=false",
		}, serving...),
	}, {
		name:   "kube-scheduler",
		health: fmt.Sprintf("https://%s:%d/healthz", loopback, p.scheduler),
		args: append([]string{
			"--config=" + file("kube-scheduler.yaml"),
			"--authentication-kubeconfig=" + file("kube-scheduler.kubeconfig"),
			"--authorization-kubeconfig=" + file("kube-scheduler.kubeconfig"),
			"--bind-address=" + loopback,
			fmt.Sprintf("--secure-port=%d", p.scheduler),
		}, serving...),
	}, {
		name:   "kwok",
		health: fmt.Sprintf("http://%s:%d/healthz", loopback, p.kwok),
		args: []string{
			"--kubeconfig=" + file("kwok.kubeconfig"),
			"--config=" + file("kwok.yaml"),
			fmt.Sprintf("--server-address=%s:%d", loopback, p.kwok),
		},
	}}
	for i := range all {
		all[i].args = append(all[i].args, o.argsOf(all[i].name, dir)...)
	}
	return all
}

// endpointReconciler is who writes the endpoints of the kubernetes Service: nobody can
// where the API server listens on loopback, which the Service must not lead to.
func (o options) endpointReconciler() string {
	if o.address.IsValid() {
		return "lease"
	}
	return "none"
}

// argsOf returns what the flags of "up" add to a program's arguments.
func (o options) argsOf(name, dir string) []string {
	var args []string
	switch name {
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler":
		if o.featureGates != "" {
			args = append(args, "--feature-gates="+o.featureGates)
		}
	}
	if name == "kube-controller-manager" && o.simulated() {
		args = append(args,
			// It tells kubelets for how long to keep Secrets, and simulated nodes have no kubelet. Where
			// thousands of nodes come at once it patches them for minutes.
			"--controllers=*,-ttl-controller",
			// Simulated nodes hold no leases and report every five minutes.
			"--node-monitor-grace-period=24h",
			// Takes the NoExecute taint off a node that turned Ready; 5 s in production.
			"--node-monitor-period=1s")
	}
	if name == "kube-apiserver" && o.audit {
		args = append(args,
			"--audit-policy-file="+filepath.Join(dir, "audit-policy.yaml"),
			"--audit-log-path="+filepath.Join(dir, "logs", "audit.log"))
	}
	return append(args, o.args[name]...)
}

// schedulerConfigFormat takes the kubeconfig. Whatever --scheduler-config names
// (profiles, extenders, back-offs) is appended.
const schedulerConfigFormat = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: %s
  qps: 500
  burst: 1000
`

// auditPolicy logs who changed pods and nodes, and when: enough to count
// evictions and cordons after the fact, to tell when kube-scheduler judged a pod,
// when a program in a pod read all nodes, and all that our own programs have written.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [create, update, patch, delete]
  resources:
  - group: ""
    resources: [nodes, pods/eviction]
- level: Metadata
  verbs: [create, delete, deletecollection]
  resources:
  - group: ""
    resources: [pods]
- level: Metadata
  userGroups: ["system:serviceaccounts"]
  verbs: [list]
  resources:
  - group: ""
    resources: [nodes]
- level: Metadata
  userGroups: ["system:serviceaccounts:windlass-system"]
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
  users: ["system:kube-scheduler"]
  verbs: [patch]
  resources:
  - group: ""
    resources: [pods/status]
- level: None
`
