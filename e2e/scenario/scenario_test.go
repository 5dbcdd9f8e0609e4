package scenario_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/e2e/scenario"
)

// What is printed reads back as the same world: printed again it is the same
// text, line for line.
func TestFormatIsReadBack(t *testing.T) {
	const text = `now 10:00:00
group gpu min=0 max=3 desired=1 zones=a type=g4dn.xlarge taints=dedicated=gpu:NoSchedule price=0.526 pool refreshed replaced=AZRebalance suspended=Launch
instance i-7 group=gpu state=Pending
group web min=1 max=10 desired=3 zones=a,b cpu=1500m labels=disk=ssd replaced=MaxInstanceLifetime/09:57:00 template=lt-1:7 mixed hook=windlass/5m0s/1h0m0s failed=09:59:00/InsufficientInstanceCapacity failed=09:58:00/InsufficientInstanceCapacity/b "fault=tag x is malformed" steered threshold=0.4 unneeded=5m0s
daemonset kube-system/proxy cpu=100m tolerates=*
node away reports=8000Mi
node web-1 group=web protected price=0.05
node web-2 group=web zone=b state=Terminating:Wait leaving=09:59:00 exact cordoned age=2m0s labels=tier=hot taints=x=y:NoExecute unneeded=09:50:00 cpu=1 annotate=example.com/hold=true
node web-3 group=web notready
pod app-1 on=web-1 cpu=500m mem=1Gi
pod app-2 on=web-1 unready naked local
pod base claim=data-0 claim=logs
pod big unjudged cpu=2 priority=-5 selector=disk=ssd tolerates=dedicated=gpu,other
pod old on=web-2 ends=10:00:30 succeeded hostport=80
pod shy gated apart affinity=disk=hdd|ssd
pod solo apart=topology.kubernetes.io/zone scheduler=volcano podgroup=train
pod twin together=topology.kubernetes.io/zone
pod wide spread=topology.kubernetes.io/zone
pod kube-system/proxy-1 on=web-1 owner=DaemonSet/proxy annotate=a=b
pdb app allowed=0
pdb wide allowed=1 healthy=1 match=app=wide,tier=hot lenient
buffer away replicas=1 fault=denied
buffer lost replicas=1 missing
buffer odd percentage=20 scalable=Deployment/web has=10 labels=app=web cpu=1 apart
buffer shop/spare replicas=3 limits=cpu=2,memory=4Gi strategy=example.com/cold template=other cpu=500m
quota team hard=requests.cpu=2
quota shop/small hard=cpu=4,requests.memory=8Gi used=cpu=1 scopes=NotBestEffort,Terminating
volume logs
volume pv-7 claim=data-0 zone=b
volume pv-8 claim=other/data-0
request web-1 raw=upgrade
request web-2 kind=asg id=asg-terminate:i-web-2 at=09:59:00 deadline=10:09:00 "reason=it goes"
report web-2 phase=Blocked answers=asg-terminate:i-web-2 kind=asg since=09:59:00 blocked=default/app left=2 deadline=10:09:00
mark web-2 id=asg-terminate:i-web-2
grown web at=09:30:00
heartbeat i-web-2/windlass at=09:58:00
completed i-web-2/windlass at=09:58:30
unjoined i-7 at=09:57:00
unjoined i-8 pooled
deserted i-9 at=09:50:00
awaited web:2 at=09:56:00
recognised web at=08:00:00
launched i-7 at=09:57:00
left i-8 at=09:59:00
graced i-7 at=10:01:00
asked web at=09:30:00 count=2
ended i-9 group=web at=09:55:00 launched
suspending gpu at=09:58:40
suspending web done
held i-web-2/windlass at=09:58:20
held i-web-4/windlass done
cutin web at=09:50:00 instance=i-web-9 hook=windlass
burst web count=2
backoff web until=10:04:00 count=1 cause=InsufficientInstanceCapacity
giveup i-web-3 until=10:15:00 count=2
unsteered gpu until=11:00:00 count=1 "cause=no right to call ec2:CreateFleet"
seen m5.large/ami-1 mem=7600Mi
launch web:a token=0f count=3 desired=2 attempt=1 at=09:59:00
launch web:b token=1f count=2 desired=2 had=1 attempt=4 at=09:58:00 came=0
priorities "{10: [web], 20: [spot]}"
cluster uid-blue
rival team-a/cluster-autoscaler-status status renewed=09:59:40 powerless groups=batch,web
rival kube-system/cluster-autoscaler renewed=09:59:50 holder=ca-0
rival other/windlass-scaler windlass renewed=09:59:50 holder=windlass-scaler-1 younger
machine i-web-1 state=stopped group=web hibernates
nodepool default taints=dedicated=gpu:NoSchedule in=kubernetes.io/arch:amd64|arm64 notin=tier:hot
handler kube-system/aws-node-termination-handler
handler ops/aws-node-termination-handler queue=https://sqs.eu-west-1.amazonaws.com/1/nth
outage 09:10:00 from=09:00:00
outage 09:59:55
leads 09:40:00
`
	s, err := scenario.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, scenario.Format(s)); diff != "" {
		t.Errorf("printed differs from what was read (-read +printed):\n%s", diff)
	}
}

func TestErrorsNameLineAndWord(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"now 10:00:00\nnod web-1", `line 2: unknown verb "nod": want one of agent, `},
		{"now ten", "line 1: now ten: want a time such as 10:00:00"},
		{"node", "line 1: node: what follows is missing"},
		{"node web-1 group=web", `line 1: node web-1: its group "web" is not there`},
		{"group web maxx=3", `line 1: group web: unknown word "maxx=3": want one of cpu, `},
		{"group web max=many", `line 1: group web: word "max=many": want a whole number`},
		{"group web type=m1.tiny", `line 1: group web: unknown instance type "m1.tiny": want one of `},
		{"pod app-3..1", `line 1: pod: "app-3..1" is no range such as app-1..3`},
		{"pod app cpu=much", `line 1: pod app: word "cpu=much": want a quantity such as 500m or 2Gi`},
		{"pod app selector=ssd", `line 1: pod app: word "selector=ssd": "ssd" is no pair such as disk=ssd`},
		{"node n taints=dedicated", `line 1: node n: word "taints=dedicated": "dedicated" is no taint`},
		{"report n phase=Draining", "line 1: report n: there is no such node"},
		{"node n\nreport n phase=Sleeping", `line 2: report n: word "phase=Sleeping": want one of [Waiting`},
		{"node n\nmark n", "line 2: mark n: no request stands on it and no id= is said"},
		{`pod app "owner=x`, "line 1: a quote is not closed"},
		{"gone pod/app", "line 1: gone pod/app: there is no such pod"},
	} {
		_, err := scenario.Parse(tc.text)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%q: got error %v, want %s", tc.text, err, tc.want)
		}
	}
}
