package cloud

import (
	"encoding/json"
	"fmt"
	"time"
)

// Spec is what exists when the cloud starts. Its YAML is strict: unknown fields are errors.
type Spec struct {
	// Region such as eu-west-1, and the twelve digits of the account.
	Region  string `json:"region,omitempty"`
	Account string `json:"account,omitempty"`

	Groups               []Group               `json:"groups,omitempty"`
	LaunchTemplates      []LaunchTemplate      `json:"launchTemplates,omitempty"`
	LaunchConfigurations []LaunchConfiguration `json:"launchConfigurations,omitempty"`
	Images               []Image               `json:"images,omitempty"`

	// Timing holds how long AWS takes for its own steps; a group may have a boot time of its own.
	Timing Timing `json:"timing,omitzero"`
	// TimeScale divides every duration of Timing, the two minutes of a spot notice and boot times: 60 makes a minute a second. Lifecycle hooks keep
	// their time-outs, because clients read those figures and reckon with them. 0 means 1.
	TimeScale float64 `json:"timeScale,omitempty"`
	// MemoryOverhead is the share of a type's nominal memory that its nodes do not report; 0 means catalog.DefaultMemoryOverhead.
	MemoryOverhead float64 `json:"memoryOverhead,omitempty"`
}

// Timing holds how long AWS takes. Zero fields take the defaults, which are what AWS documents or people have measured; the comments give them, the
// range that was seen in reality, and what Quick has instead.
type Timing struct {
	// Quick is for tests that wait for what AWS does: as many steps in the same order, and next to no time for each.
	Quick           bool     `json:"quick,omitempty"`
	Reconcile       Duration `json:"reconcile,omitempty"`       // from a changed capacity to the first activity; 1s (1 to 10 s), quick 50ms
	Pending         Duration `json:"pending,omitempty"`         // from Pending to the end of Pending; 16.5s (10 to 20 s), quick 200ms
	Boot            Duration `json:"boot,omitempty"`            // from the launch to an operating system that is up; 30s (20 to 40 s), quick 1s
	WarmStart       Duration `json:"warmStart,omitempty"`       // the same for a stopped instance of a warm pool; 15s (10 to 20 s), quick 500ms
	Terminating     Duration `json:"terminating,omitempty"`     // in Terminating, before the hook; 2s (up to minutes with load balancers), quick 100ms
	Shutdown        Duration `json:"shutdown,omitempty"`        // from Terminating:Proceed to gone; 30s (5 to 60 s), quick 300ms
	HealthCheck     Duration `json:"healthCheck,omitempty"`     // from a dead instance to its replacement being decided; 1m (1 to 2 min), quick 200ms
	LaunchRetry     Duration `json:"launchRetry,omitempty"`     // between two attempts after a failed launch; 1m (1 to 5 min), quick 5s
	LaunchInstances Duration `json:"launchInstances,omitempty"` // how long one LaunchInstances call takes; 2.5s (2 to 10 s), quick 0
	Lag             Duration `json:"lag,omitempty"`             // how old the answer to a call that describes may be, at random; 1s (seconds), quick 0
	SpotNotice      Duration `json:"spotNotice,omitempty"`      // from the notice to the reclaim; 2m as on AWS
	Linger          Duration `json:"linger,omitempty"`          // how long DescribeInstances still shows a terminated instance; 1h as on AWS
}

// Duration is a time.Duration that is written as text, "1m30s".
type Duration time.Duration

// MarshalJSON writes the text form.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON reads the text form.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("duration %s: want a text such as \"30s\"", b)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

// Group declares an Auto Scaling group. Exactly one of Type, Types, LaunchTemplate, LaunchConfiguration and MixedInstances says what it launches; Type and
// Types are short for a launch template of the group's own name, respectively for a mixed instances policy over one.
type Group struct {
	Name string `json:"name"`
	Min  int    `json:"min,omitempty"`
	Max  int    `json:"max"`
	// Desired is where the group starts; nil means Min.
	Desired *int `json:"desired,omitempty"`
	// Zones such as eu-west-1a; none means the region's a.
	Zones []string `json:"zones,omitempty"`

	Type                string          `json:"type,omitempty"`
	Types               []string        `json:"types,omitempty"`
	UserData            string          `json:"userData,omitempty"` // of the template that Type or Types makes; plain text
	VolumeGiB           int             `json:"volumeGiB,omitempty"`
	Image               string          `json:"image,omitempty"`
	LaunchTemplate      *TemplateRef    `json:"launchTemplate,omitempty"`
	LaunchConfiguration string          `json:"launchConfiguration,omitempty"`
	MixedInstances      *MixedInstances `json:"mixedInstances,omitempty"`
	// Spot makes the template of Type or Types ask for spot instances.
	Spot bool `json:"spot,omitempty"`

	Tags      map[string]string `json:"tags,omitempty"`
	OwnTags   []string          `json:"ownTags,omitempty"` // keys of those that instances do not get
	Hooks     []Hook            `json:"hooks,omitempty"`
	WarmPool  *WarmPool         `json:"warmPool,omitempty"`
	Suspended []string          `json:"suspended,omitempty"`
	EKS       *Nodegroup        `json:"eks,omitempty"`
	// Boot overrides Timing.Boot.
	Boot Duration `json:"boot,omitempty"`

	TerminationPolicies    []string `json:"terminationPolicies,omitempty"`
	ProtectNewInstances    bool     `json:"protectNewInstances,omitempty"`
	CapacityRebalance      bool     `json:"capacityRebalance,omitempty"`
	CooldownSeconds        int      `json:"cooldownSeconds,omitempty"` // 0 means 300
	MaxInstanceLifetimeSec int      `json:"maxInstanceLifetimeSeconds,omitempty"`
	// RetainOnTerminateHookAbandon keeps an instance whose terminating hook was abandoned, in Terminating:Retained.
	// https://docs.aws.amazon.com/autoscaling/ec2/userguide/instance-lifecycle-policy.html
	RetainOnTerminateHookAbandon bool `json:"retainOnTerminateHookAbandon,omitempty"`
	// NoIMDS starts the instances with the metadata service switched off.
	NoIMDS bool `json:"noIMDS,omitempty"`
}

// TemplateRef names a version of a launch template: a number, $Latest or $Default ("" means $Default).
type TemplateRef struct {
	Name    string `json:"name,omitempty"`
	ID      string `json:"id,omitempty"`
	Version string `json:"version,omitempty"`
}

// MixedInstances is a mixed instances policy.
type MixedInstances struct {
	LaunchTemplate TemplateRef `json:"launchTemplate"`
	Overrides      []Override  `json:"overrides,omitempty"`

	OnDemandBase         int    `json:"onDemandBase,omitempty"`
	OnDemandPercentAbove *int   `json:"onDemandPercentAbove,omitempty"` // nil means 100
	OnDemandAllocation   string `json:"onDemandAllocation,omitempty"`   // "" means prioritized
	SpotAllocation       string `json:"spotAllocation,omitempty"`       // "" means price-capacity-optimized
}

// Override is one entry of a mixed instances policy: a type, or requirements that choose types.
type Override struct {
	Type           string        `json:"type,omitempty"`
	Weight         int           `json:"weight,omitempty"`
	LaunchTemplate *TemplateRef  `json:"launchTemplate,omitempty"`
	Requirements   *Requirements `json:"requirements,omitempty"`
}

// Range is an inclusive interval; nil is an open end.
type Range struct {
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
}

// Requirements choose instance types by attribute. Empty fields do not choose.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstanceRequirements.html
type Requirements struct {
	VCPUs            Range    `json:"vCPUs,omitzero"`
	MemoryMiB        Range    `json:"memoryMiB,omitzero"`
	MemoryGiBPerVCPU Range    `json:"memoryGiBPerVCPU,omitzero"`
	Accelerators     Range    `json:"accelerators,omitzero"`
	CPUManufacturers []string `json:"cpuManufacturers,omitempty"`
	AllowedTypes     []string `json:"allowedTypes,omitempty"`
	ExcludedTypes    []string `json:"excludedTypes,omitempty"`

	AcceleratorMemoryMiB     Range    `json:"acceleratorMemoryMiB,omitzero"` // of all together
	AcceleratorTypes         []string `json:"acceleratorTypes,omitempty"`
	AcceleratorManufacturers []string `json:"acceleratorManufacturers,omitempty"`
	AcceleratorNames         []string `json:"acceleratorNames,omitempty"`
	NetworkInterfaces        Range    `json:"networkInterfaces,omitzero"`
	Generations              []string `json:"generations,omitempty"` // current, previous
	LocalStorageGB           Range    `json:"localStorageGB,omitzero"`
	LocalStorageTypes        []string `json:"localStorageTypes,omitempty"` // hdd, ssd
	BareMetal                string   `json:"bareMetal,omitempty"`         // as those below; EC2 excludes it where nothing is said
	// Burstable and LocalStorage are included, excluded or required; EC2 excludes burstable types and includes local storage where nothing is said.
	Burstable    string `json:"burstable,omitempty"`
	LocalStorage string `json:"localStorage,omitempty"`
}

// LaunchTemplate is a template with its versions, numbered from 1.
type LaunchTemplate struct {
	Name     string            `json:"name"`
	ID       string            `json:"id,omitempty"`
	Default  int               `json:"default,omitempty"` // 0 means 1
	Versions []TemplateVersion `json:"versions"`
}

// TemplateVersion is the launch template data of one version.
type TemplateVersion struct {
	Description string `json:"description,omitempty"`
	Type        string `json:"type,omitempty"`
	Image       string `json:"image,omitempty"` // "" means the image of the type's architecture
	// UserData is plain text; the APIs show it in base64, as AWS does.
	UserData     string            `json:"userData,omitempty"`
	Volumes      []Volume          `json:"volumes,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"` // of the instances
	Spot         bool              `json:"spot,omitempty"`
	HopLimit     int               `json:"hopLimit,omitempty"` // of the metadata service; 0 means 2
	MetadataTags bool              `json:"metadataTags,omitempty"`
	Requirements *Requirements     `json:"requirements,omitempty"`
	Profile      string            `json:"profile,omitempty"` // name of the instance profile
}

// Volume is an EBS volume of a block device mapping.
type Volume struct {
	Device  string `json:"device,omitempty"` // "" means /dev/xvda
	SizeGiB int    `json:"sizeGiB,omitempty"`
	Type    string `json:"type,omitempty"` // "" means gp3
}

// LaunchConfiguration is the older kind of template, without versions.
type LaunchConfiguration struct {
	Name      string   `json:"name"`
	Type      string   `json:"type"`
	Image     string   `json:"image,omitempty"`
	UserData  string   `json:"userData,omitempty"`
	Volumes   []Volume `json:"volumes,omitempty"`
	SpotPrice string   `json:"spotPrice,omitempty"` // set: spot instances
}

// Image is an AMI.
type Image struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Arch    string `json:"arch,omitempty"`    // x86_64 (default) or arm64
	Volume  Volume `json:"volume,omitzero"`   // the root device
	Windows bool   `json:"windows,omitempty"` // platform
}

// Transitions of a lifecycle hook.
const (
	OnLaunch    = "autoscaling:EC2_INSTANCE_LAUNCHING"
	OnTerminate = "autoscaling:EC2_INSTANCE_TERMINATING"
)

// Hook is a lifecycle hook.
type Hook struct {
	Name string `json:"name"`
	// Transition is launch or terminate (or the long names of AWS).
	Transition string `json:"transition"`
	// HeartbeatSeconds is 3600 if 0. A spec takes less than 30, so that tests need not wait; the API takes 30 to 7200, as AWS does.
	HeartbeatSeconds int `json:"heartbeatSeconds,omitempty"`
	// GlobalSeconds is the smaller of 48 h and 100 heartbeats if 0, as on AWS, where it cannot be set.
	GlobalSeconds int `json:"globalSeconds,omitempty"`
	// Default is CONTINUE or ABANDON (also if empty, as on AWS).
	Default  string `json:"default,omitempty"`
	Metadata string `json:"metadata,omitempty"`
	Target   string `json:"target,omitempty"` // ARN of a queue or topic; nothing is sent to it
	Role     string `json:"role,omitempty"`   // ARN of the role that would send it
}

// WarmPool declares a warm pool.
type WarmPool struct {
	MinSize int `json:"minSize,omitempty"`
	// MaxPrepared is MaxGroupPreparedCapacity; nil means the group's max.
	MaxPrepared *int `json:"maxPrepared,omitempty"`
	// State is Stopped (also if empty), Running or Hibernated.
	State          string `json:"state,omitempty"`
	ReuseOnScaleIn bool   `json:"reuseOnScaleIn,omitempty"`
}

// Nodegroup makes the group one of an EKS managed node group; it gets the tags eks:cluster-name and eks:nodegroup-name.
type Nodegroup struct {
	Cluster string            `json:"cluster"`
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels,omitempty"`
	Taints  []Taint           `json:"taints,omitempty"`
	Tags    map[string]string `json:"tags,omitempty"`
	AMIType string            `json:"amiType,omitempty"` // "" means AL2023_x86_64_STANDARD or …_ARM_64_…
	Version string            `json:"version,omitempty"` // of Kubernetes; "" means 1.36
}

// Taint is a taint as EKS writes it; a nil Value is a taint without one.
type Taint struct {
	Key    string  `json:"key"`
	Value  *string `json:"value,omitempty"`
	Effect string  `json:"effect"` // NO_SCHEDULE, NO_EXECUTE or PREFER_NO_SCHEDULE
}
