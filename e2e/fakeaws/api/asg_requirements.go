package api

import (
	"math"
	"strconv"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

// asgRequirements is InstanceRequirements as Auto Scaling writes it.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstanceRequirements.html
type asgRequirements struct {
	VCPUCount             *numberRange `xml:"VCpuCount,omitempty"`
	MemoryMiB             *numberRange `xml:",omitempty"`
	MemoryGiBPerVCPU      *numberRange `xml:"MemoryGiBPerVCpu,omitempty"`
	AcceleratorCount      *numberRange `xml:",omitempty"`
	CPUManufacturers      []string     `xml:"CpuManufacturers>member"`
	AllowedInstanceTypes  []string     `xml:"AllowedInstanceTypes>member"`
	ExcludedInstanceTypes []string     `xml:"ExcludedInstanceTypes>member"`
	BurstablePerformance  string       `xml:",omitempty"`
	LocalStorage          string       `xml:",omitempty"`
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
		AcceleratorCount: rangeShape(r.Accelerators), CPUManufacturers: r.CPUManufacturers, AllowedInstanceTypes: r.AllowedTypes,
		ExcludedInstanceTypes: r.ExcludedTypes, BurstablePerformance: r.Burstable, LocalStorage: r.LocalStorage,
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

// requirementsOf reads the InstanceRequirements of GetInstanceTypesFromInstanceRequirements, which EC2 flattens.
func requirementsOf(v wire.Values) (cloud.Requirements, error) {
	p := rangeParser{v: v}
	r := cloud.Requirements{
		VCPUs: p.of("VCpuCount"), MemoryMiB: p.of("MemoryMiB"), MemoryGiBPerVCPU: p.of("MemoryGiBPerVCpu"), Accelerators: p.of("AcceleratorCount"),
		CPUManufacturers: v.List("CpuManufacturer"), AllowedTypes: v.List("AllowedInstanceType"), ExcludedTypes: v.List("ExcludedInstanceType"),
		Burstable: v.Get("BurstablePerformance"), LocalStorage: v.Get("LocalStorage"),
	}
	return r, p.err
}

// rangeParser remembers the first error.
type rangeParser struct {
	v   wire.Values
	err error
}

func (p *rangeParser) of(name string) cloud.Range {
	return cloud.Range{Min: p.end(name + ".Min"), Max: p.end(name + ".Max")}
}

func (p *rangeParser) end(name string) *float64 {
	if !p.v.Has(name) {
		return nil
	}
	f, err := strconv.ParseFloat(p.v.Get(name), 64)
	if err != nil && p.err == nil {
		p.err = cloud.Errorf(400, wire.InvalidParameterValue, "Value (%s) for parameter %s is invalid.", p.v.Get(name), name)
	}
	return &f
}
