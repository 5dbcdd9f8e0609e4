package fakeaws

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/e2e/fakeaws/catalog"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/metadata"
)

// The words of the cloud, so that users need one import.
type (
	Spec                = cloud.Spec
	Timing              = cloud.Timing
	Duration            = cloud.Duration
	Group               = cloud.Group
	GroupStatus         = cloud.GroupStatus
	TemplateRef         = cloud.TemplateRef
	MixedInstances      = cloud.MixedInstances
	Override            = cloud.Override
	Requirements        = cloud.Requirements
	Range               = cloud.Range
	LaunchTemplate      = cloud.LaunchTemplate
	TemplateVersion     = cloud.TemplateVersion
	Volume              = cloud.Volume
	LaunchConfiguration = cloud.LaunchConfiguration
	Image               = cloud.Image
	Hook                = cloud.Hook
	WarmPool            = cloud.WarmPool
	Nodegroup           = cloud.Nodegroup
	Taint               = cloud.Taint
	Instance            = cloud.Instance
	LifecycleState      = cloud.LifecycleState
	OSState             = cloud.OSState
	Activity            = cloud.Activity
	Shortage            = cloud.Shortage
	MaintenanceEvent    = cloud.MaintenanceEvent
	RefreshPreferences  = cloud.RefreshPreferences
	Refresh             = cloud.Refresh
	Timeout             = cloud.Timeout
	Action              = cloud.Action
	InstanceType        = catalog.Type
	IMDSMode            = metadata.Mode
	IMDSAnswer          = metadata.Answer
)

// States of an instance's operating system.
const (
	OSOff     = cloud.OSOff
	OSBooting = cloud.OSBooting
	OSUp      = cloud.OSUp
)

// The lifecycle states that worlds look at; package cloud has all of them.
const (
	Pending            = cloud.Pending
	PendingWait        = cloud.PendingWait
	InService          = cloud.InService
	Terminating        = cloud.Terminating
	TerminatingWait    = cloud.TerminatingWait
	TerminatingProceed = cloud.TerminatingProceed
	Terminated         = cloud.Terminated
	Standby            = cloud.Standby
	Detached           = cloud.Detached
)

// Modes of a metadata service.
const (
	IMDSOn      = metadata.On
	IMDSOff     = metadata.Off
	IMDSHung    = metadata.Hung
	IMDSRefused = metadata.Refused
	IMDSFailing = metadata.Failing
)

// LookupType finds the figures of an instance type; its OSMemoryMiB is what a node reports.
func LookupType(name string) (InstanceType, bool) { return catalog.Lookup(name) }

// Config says where a server listens and what exists when it starts.
type Config struct {
	Spec
	// Addr is the host:port of the API; "" is a free port of 127.0.0.1.
	Addr string
	// IMDSNet is the second number of 127.x.0.0/16, in which each instance has an address of its own; 0 chooses one that differs between processes.
	IMDSNet int
	// IMDSPort is the port of every metadata service; 0 lets each have a free one.
	IMDSPort int
	// NoIMDS starts no metadata services at all, for worlds of thousands of instances.
	NoIMDS bool
	// Latency is the least time that a call takes, 10ms if 0. Real calls take 10 to 200 ms; an answer within microseconds trips a race of smithy-go: it closes
	// the body of a request while net/http still looks for the body's end, and net/http then breaks the connection under the answer.
	Latency time.Duration
	// CallLog is how many calls are kept, 100,000 if 0; the oldest are forgotten first.
	CallLog int
	// Log may be nil.
	Log *slog.Logger
}

const (
	defaultCallLog = 100_000
	defaultLatency = 10 * time.Millisecond
	imdsNets       = 190
	firstIMDSNet   = 64
)

func (cfg Config) withDefaults() Config {
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	if cfg.IMDSNet == 0 {
		cfg.IMDSNet = firstIMDSNet + os.Getpid()%imdsNets
	}
	if cfg.CallLog == 0 {
		cfg.CallLog = defaultCallLog
	}
	if cfg.Latency == 0 {
		cfg.Latency = defaultLatency
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return cfg
}

// ParseSpec reads a spec in YAML. Unknown fields are errors.
func ParseSpec(text []byte) (Spec, error) {
	var spec Spec
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		return Spec{}, fmt.Errorf("reading the spec of the fake AWS: %w", err)
	}
	return spec, nil
}

// Seconds is short for a Duration.
func Seconds(s float64) Duration { return Duration(s * float64(time.Second)) }
