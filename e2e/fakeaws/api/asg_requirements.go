package api

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

// asgRequirements is InstanceRequirements as Auto Scaling writes it.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstanceRequirements.html
type asgRequirements struct {
	VCPUCount                 *numberRange `xml:"VCpuCount,omitempty"`
	MemoryMiB                 *numberRange `xml:",omitempty"`
	MemoryGiBPerVCPU          *numberRange `xml:"MemoryGiBPerVCpu,omitempty"`
	AcceleratorCount          *numberRange `xml:",omitempty"`
	AcceleratorTotalMemoryMiB *numberRange `xml:",omitempty"`
	NetworkInterfaceCount     *numberRange `xml:",omitempty"`
	TotalLocalStorageGB       *numberRange `xml:",omitempty"`
	CPUManufacturers          []string     `xml:"CpuManufacturers>member"`
	AllowedInstanceTypes      []string     `xml:"AllowedInstanceTypes>member"`
	ExcludedInstanceTypes     []string     `xml:"ExcludedInstanceTypes>member"`
	InstanceGenerations       []string     `xml:"InstanceGenerations>member"`
	LocalStorageTypes         []string     `xml:"LocalStorageTypes>member"`
	AcceleratorTypes          []string     `xml:"AcceleratorTypes>member"`
	AcceleratorManufacturers  []string     `xml:"AcceleratorManufacturers>member"`
	AcceleratorNames          []string     `xml:"AcceleratorNames>member"`
	BurstablePerformance      string       `xml:",omitempty"`
	LocalStorage              string       `xml:",omitempty"`
	BareMetal                 string       `xml:",omitempty"`
}

type numberRange struct {
	Min string `xml:",omitempty"`
	Max string `xml:",omitempty"`
}

func requirementsShape(r *cloud.Requirements) *asgRequirements {
	if r == nil {
		return nil
	}
	return &asgRequirements{
		VCPUCount: rangeShape(r.VCPUs), MemoryMiB: rangeShape(r.MemoryMiB), MemoryGiBPerVCPU: rangeShape(r.MemoryGiBPerVCPU),
		AcceleratorCount: rangeShape(r.Accelerators), AcceleratorTotalMemoryMiB: rangeShape(r.AcceleratorMemoryMiB),
		NetworkInterfaceCount: rangeShape(r.NetworkInterfaces), TotalLocalStorageGB: rangeShape(r.LocalStorageGB),
		CPUManufacturers: r.CPUManufacturers, AllowedInstanceTypes: r.AllowedTypes, ExcludedInstanceTypes: r.ExcludedTypes,
		InstanceGenerations: r.Generations, LocalStorageTypes: r.LocalStorageTypes, AcceleratorTypes: r.AcceleratorTypes,
		AcceleratorManufacturers: r.AcceleratorManufacturers, AcceleratorNames: r.AcceleratorNames,
		BurstablePerformance: r.Burstable, LocalStorage: r.LocalStorage, BareMetal: r.BareMetal,
	}
}

func rangeShape(r cloud.Range) *numberRange {
	if r.Min == nil && r.Max == nil {
		return nil
	}
	return &numberRange{Min: number(r.Min), Max: number(r.Max)}
}

func number(f *float64) string {
	if f == nil {
		return ""
	}
	if *f == math.Trunc(*f) {
		return strconv.FormatInt(int64(*f), 10)
	}
	return strconv.FormatFloat(*f, 'f', -1, 64)
}

// lists turns the name of a list of InstanceRequirements, without its plural s, into that of the parameters.
type lists func(name string) string

func asgLists(name string) string { return name + "s.member" }

// ec2Lists is how EC2 flattens them.
func ec2Lists(name string) string { return name }

// requirementsOf reads InstanceRequirements. What the figures of the catalog do not tell is refused, not passed over.
func requirementsOf(v wire.Values, listed lists) (cloud.Requirements, error) {
	p := requirementsParser{v: v, listed: listed, read: map[string]bool{}}
	r := cloud.Requirements{
		VCPUs: p.interval("VCpuCount"), MemoryMiB: p.interval("MemoryMiB"), MemoryGiBPerVCPU: p.interval("MemoryGiBPerVCpu"), Accelerators: p.interval("AcceleratorCount"),
		AcceleratorMemoryMiB: p.interval("AcceleratorTotalMemoryMiB"), NetworkInterfaces: p.interval("NetworkInterfaceCount"), LocalStorageGB: p.interval("TotalLocalStorageGB"),
		CPUManufacturers: p.list("CpuManufacturer", "intel", "amd", "amazon-web-services", "apple"), AllowedTypes: p.list("AllowedInstanceType"), ExcludedTypes: p.list("ExcludedInstanceType"),
		Generations: p.list("InstanceGeneration", "current", "previous"), LocalStorageTypes: p.list("LocalStorageType", "hdd", "ssd"),
		AcceleratorTypes:         p.list("AcceleratorType", "gpu", "fpga", "inference", "media"),
		AcceleratorManufacturers: p.list("AcceleratorManufacturer", "amazon-web-services", "amd", "nvidia", "xilinx", "habana"),
		AcceleratorNames: p.list("AcceleratorName", "a100", "inferentia", "k520", "k80", "m60", "radeon-pro-v520", "t4", "vu9p", "v100", "a10g", "h100", "t4g", "l40s", "l4", "gaudi-hl-205",
			"inferentia2", "trainium", "trainium2", "u30"),
		Burstable: p.rule("BurstablePerformance"), LocalStorage: p.rule("LocalStorage"), BareMetal: p.rule("BareMetal"),
	}
	p.read["RequireHibernateSupport"] = !v.Bool("RequireHibernateSupport", false)
	for key := range v {
		if top, _, _ := strings.Cut(key, "."); !p.read[top] {
			p.fail("The instance attribute %s is not simulated by this fake", top)
		}
	}
	if len(r.AllowedTypes) > 0 && len(r.ExcludedTypes) > 0 {
		p.fail("You cannot specify both AllowedInstanceTypes and ExcludedInstanceTypes")
	}
	return r, p.err
}

// requirementsParser remembers the first error, and what it has read.
type requirementsParser struct {
	v      wire.Values
	listed lists
	read   map[string]bool
	err    error
}

func (p *requirementsParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = cloud.Errorf(400, wire.InvalidParameterValue, "%s", fmt.Sprintf(format, args...))
	}
}

func (p *requirementsParser) interval(name string) cloud.Range {
	p.read[name] = true
	return cloud.Range{Min: p.end(name + ".Min"), Max: p.end(name + ".Max")}
}

func (p *requirementsParser) end(name string) *float64 {
	if !p.v.Has(name) {
		return nil
	}
	f, err := strconv.ParseFloat(p.v.Get(name), 64)
	if err != nil {
		p.fail("Value (%s) for parameter %s is invalid.", p.v.Get(name), name)
	}
	return &f
}

// list is a list of some of these words; of any, where none are given.
func (p *requirementsParser) list(name string, words ...string) []string {
	top, _, _ := strings.Cut(p.listed(name), ".")
	p.read[top] = true
	list := p.v.List(p.listed(name))
	for _, word := range list {
		if len(words) > 0 && !slices.Contains(words, word) {
			p.fail("Value (%s) for parameter %s is invalid.", word, top)
		}
	}
	return list
}

// rule is included, excluded or required.
func (p *requirementsParser) rule(name string) string {
	p.read[name] = true
	rule := p.v.Get(name)
	if rule != "" && !slices.Contains([]string{"included", "excluded", "required"}, rule) {
		p.fail("Value (%s) for parameter %s is invalid.", rule, name)
	}
	return rule
}
