package api

import (
	"slices"
	"strconv"

	"windlass.dev/windlass/e2e/fakeaws/catalog"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

// ec2 are the operations of EC2.
var ec2 = map[string]Handler{
	"DescribeAvailabilityZones":                describing(describeZones),
	"DescribeInstanceTypes":                    describing(describeTypes),
	"GetInstanceTypesFromInstanceRequirements": describing(typesFromRequirements),
	"DescribeSpotPriceHistory":                 describing(describeSpotPrices),
	"DescribeInstances":                        describing(describeInstances),
	"DescribeImages":                           describing(describeImages),
	"DescribeLaunchTemplates":                  describing(describeTemplates),
	"DescribeLaunchTemplateVersions":           describing(describeTemplateVersions),
	"DescribeSubnets":                          describing(describeSubnets),
	"TerminateInstances":                       changing(terminateEC2),
}

// results are the limits of a paged EC2 operation.
func results(least, most int) wire.Limits {
	return wire.Limits{Param: "MaxResults", Default: most, Min: least, Max: most, BadToken: wire.InvalidParameterValue}
}

// The structures of DescribeInstanceTypes.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html

type ec2Type struct {
	InstanceType                  string        `xml:"instanceType"`
	CurrentGeneration             bool          `xml:"currentGeneration"`
	SupportedUsageClasses         []string      `xml:"supportedUsageClasses>item"`
	SupportedRootDeviceTypes      []string      `xml:"supportedRootDeviceTypes>item"`
	SupportedVirtualizationTypes  []string      `xml:"supportedVirtualizationTypes>item"`
	BareMetal                     bool          `xml:"bareMetal"`
	Hypervisor                    string        `xml:"hypervisor"`
	ProcessorInfo                 ec2Processor  `xml:"processorInfo"`
	VCPUInfo                      ec2VCPUs      `xml:"vCpuInfo"`
	MemoryInfo                    ec2Memory     `xml:"memoryInfo"`
	InstanceStorageSupported      bool          `xml:"instanceStorageSupported"`
	InstanceStorageInfo           *ec2Storage   `xml:"instanceStorageInfo,omitempty"`
	EBSInfo                       ec2EBS        `xml:"ebsInfo"`
	NetworkInfo                   ec2Network    `xml:"networkInfo"`
	GPUInfo                       *ec2GPUs      `xml:"gpuInfo,omitempty"`
	PlacementGroupInfo            ec2Placements `xml:"placementGroupInfo"`
	HibernationSupported          bool          `xml:"hibernationSupported"`
	BurstablePerformanceSupported bool          `xml:"burstablePerformanceSupported"`
	DedicatedHostsSupported       bool          `xml:"dedicatedHostsSupported"`
	AutoRecoverySupported         bool          `xml:"autoRecoverySupported"`
	SupportedBootModes            []string      `xml:"supportedBootModes>item"`
}

type ec2Processor struct {
	SupportedArchitectures   []string `xml:"supportedArchitectures>item"`
	SustainedClockSpeedInGHz float64  `xml:"sustainedClockSpeedInGhz"`
	Manufacturer             string   `xml:"manufacturer"`
}

type ec2VCPUs struct {
	DefaultVCPUs          int `xml:"defaultVCpus"`
	DefaultCores          int `xml:"defaultCores"`
	DefaultThreadsPerCore int `xml:"defaultThreadsPerCore"`
}

type ec2Memory struct {
	SizeInMiB int `xml:"sizeInMiB"`
}

type ec2Storage struct {
	TotalSizeInGB int       `xml:"totalSizeInGB"`
	Disks         []ec2Disk `xml:"disks>item"`
	NvmeSupport   string    `xml:"nvmeSupport"`
}

type ec2Disk struct {
	SizeInGB int    `xml:"sizeInGB"`
	Count    int    `xml:"count"`
	Type     string `xml:"type"`
}

type ec2EBS struct {
	EBSOptimizedSupport string `xml:"ebsOptimizedSupport"`
	EncryptionSupport   string `xml:"encryptionSupport"`
	NvmeSupport         string `xml:"nvmeSupport"`
}

type ec2Network struct {
	NetworkPerformance        string    `xml:"networkPerformance"`
	MaximumNetworkInterfaces  int       `xml:"maximumNetworkInterfaces"`
	MaximumNetworkCards       int       `xml:"maximumNetworkCards"`
	DefaultNetworkCardIndex   int       `xml:"defaultNetworkCardIndex"`
	NetworkCards              []ec2Card `xml:"networkCards>item"`
	IPv4AddressesPerInterface int       `xml:"ipv4AddressesPerInterface"`
	IPv6AddressesPerInterface int       `xml:"ipv6AddressesPerInterface"`
	IPv6Supported             bool      `xml:"ipv6Supported"`
	EnaSupport                string    `xml:"enaSupport"`
}

type ec2Card struct {
	NetworkCardIndex         int    `xml:"networkCardIndex"`
	NetworkPerformance       string `xml:"networkPerformance"`
	MaximumNetworkInterfaces int    `xml:"maximumNetworkInterfaces"`
}

type ec2GPUs struct {
	GPUs                []ec2GPU `xml:"gpus>item"`
	TotalGPUMemoryInMiB int      `xml:"totalGpuMemoryInMiB"`
}

type ec2GPU struct {
	Name         string    `xml:"name"`
	Manufacturer string    `xml:"manufacturer"`
	Count        int       `xml:"count"`
	MemoryInfo   ec2Memory `xml:"memoryInfo"`
}

type ec2Placements struct {
	SupportedStrategies []string `xml:"supportedStrategies>item"`
}

func typeShape(t catalog.Type) ec2Type {
	shape := ec2Type{
		InstanceType: t.Name, CurrentGeneration: t.CurrentGeneration(), SupportedUsageClasses: []string{"on-demand", "spot"},
		SupportedRootDeviceTypes: []string{"ebs"}, SupportedVirtualizationTypes: []string{"hvm"}, Hypervisor: "nitro",
		ProcessorInfo: ec2Processor{SupportedArchitectures: []string{string(t.Arch)}, SustainedClockSpeedInGHz: t.ClockGHz, Manufacturer: t.Manufacturer},
		VCPUInfo:      ec2VCPUs{DefaultVCPUs: t.VCPUs, DefaultCores: t.Cores, DefaultThreadsPerCore: t.VCPUs / t.Cores},
		MemoryInfo:    ec2Memory{t.MemoryMiB}, InstanceStorageSupported: t.Disks.Count > 0,
		EBSInfo: ec2EBS{EBSOptimizedSupport: "default", EncryptionSupport: "supported", NvmeSupport: "required"},
		NetworkInfo: ec2Network{
			NetworkPerformance: t.NetworkPerformance, MaximumNetworkInterfaces: t.MaxENIs, MaximumNetworkCards: 1,
			NetworkCards:              []ec2Card{{NetworkPerformance: t.NetworkPerformance, MaximumNetworkInterfaces: t.MaxENIs}},
			IPv4AddressesPerInterface: t.IPv4PerENI, IPv6AddressesPerInterface: t.IPv4PerENI, IPv6Supported: true, EnaSupport: "required",
		},
		PlacementGroupInfo:            ec2Placements{[]string{"partition", "spread"}},
		BurstablePerformanceSupported: t.Burstable, DedicatedHostsSupported: !t.Burstable, AutoRecoverySupported: true, SupportedBootModes: []string{"uefi"},
	}
	if t.Disks.Count > 0 {
		shape.InstanceStorageInfo = &ec2Storage{
			TotalSizeInGB: t.Disks.Count * t.Disks.SizeGB, Disks: []ec2Disk{{SizeInGB: t.Disks.SizeGB, Count: t.Disks.Count, Type: "ssd"}}, NvmeSupport: "required",
		}
	}
	if t.GPUs.Count > 0 {
		shape.GPUInfo = &ec2GPUs{
			GPUs:                []ec2GPU{{Name: t.GPUs.Name, Manufacturer: t.GPUs.Manufacturer, Count: t.GPUs.Count, MemoryInfo: ec2Memory{t.GPUs.MemoryMiB}}},
			TotalGPUMemoryInMiB: t.GPUs.Count * t.GPUs.MemoryMiB,
		}
	}
	return shape
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html
func describeTypes(_ *cloud.Cloud, v wire.Values) (any, error) {
	named := v.List("InstanceType")
	switch {
	case len(named) > 100:
		return nil, cloud.Errorf(400, wire.InvalidParameterValue, "The maximum number of instance types that can be specified is 100.")
	case len(named) > 0 && v.Has("MaxResults"):
		return nil, cloud.Errorf(400, "InvalidParameterCombination", "The parameter InstanceTypes cannot be used with the parameter MaxResults")
	}
	var unknown []string
	for _, name := range named {
		if _, ok := catalog.Lookup(name); !ok {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return nil, cloud.Errorf(400, "InvalidInstanceType", "The following supplied instance types do not exist: %v", unknown)
	}
	filters := v.Filters("Filter", "Value")
	if err := known(filters, typeFields(catalog.Type{})); err != nil {
		return nil, err
	}
	var matching []catalog.Type
	for _, t := range catalog.All() {
		if len(named) > 0 && !slices.Contains(named, t.Name) {
			continue
		}
		if matches(filters, typeFields(t)) {
			matching = append(matching, t)
		}
	}
	page, next, err := wire.Page(v, "DescribeInstanceTypes", results(5, 100), matching)
	if err != nil {
		return nil, err
	}
	var answer struct {
		InstanceTypes []ec2Type `xml:"instanceTypeSet>item"`
		NextToken     string    `xml:"nextToken,omitempty"`
	}
	answer.NextToken = next
	for _, t := range page {
		answer.InstanceTypes = append(answer.InstanceTypes, typeShape(t))
	}
	return answer, nil
}

// typeFields are what DescribeInstanceTypes can be filtered by here.
func typeFields(t catalog.Type) func(name string) ([]string, bool) {
	return fields(map[string]string{
		"instance-type": t.Name, "current-generation": strconv.FormatBool(t.CurrentGeneration()), "bare-metal": "false",
		"burstable-performance-supported": strconv.FormatBool(t.Burstable), "instance-storage-supported": strconv.FormatBool(t.Disks.Count > 0),
		"memory-info.size-in-mib": strconv.Itoa(t.MemoryMiB), "vcpu-info.default-vcpus": strconv.Itoa(t.VCPUs),
		"processor-info.supported-architecture": string(t.Arch), "hypervisor": "nitro", "supported-virtualization-type": "hvm",
	})
}

// fields turns a table of one value each into what matches asks.
func fields(table map[string]string) func(name string) ([]string, bool) {
	return func(name string) ([]string, bool) {
		value, ok := table[name]
		return []string{value}, ok
	}
}

// known refuses a filter that is none of the operation, also where there is nothing that it could choose from.
func known(filters []wire.Filter, field func(name string) (values []string, known bool)) error {
	for _, f := range filters {
		if _, known := field(f.Name); !known {
			return cloud.Errorf(400, wire.InvalidParameterValue, "The filter '%s' is invalid", f.Name)
		}
	}
	return nil
}

// matches: filters are ANDed, the values of one are ORed and may hold wildcards.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Filter.html
func matches(filters []wire.Filter, field func(name string) (values []string, known bool)) bool {
	return !slices.ContainsFunc(filters, func(f wire.Filter) bool {
		have, _ := field(f.Name)
		return !slices.ContainsFunc(f.Values, func(pattern string) bool {
			return slices.ContainsFunc(have, func(value string) bool { return cloud.MatchPattern(pattern, value) })
		})
	})
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_GetInstanceTypesFromInstanceRequirements.html
func typesFromRequirements(_ *cloud.Cloud, v wire.Values) (any, error) {
	architectures, virtualizations := v.List("ArchitectureType"), v.List("VirtualizationType")
	if len(architectures) == 0 || len(virtualizations) == 0 {
		return nil, cloud.Errorf(400, "MissingParameter", "The request must contain the parameters ArchitectureType and VirtualizationType")
	}
	r, err := requirementsOf(v.Sub("InstanceRequirements"), ec2Lists)
	if err != nil {
		return nil, err
	}
	if r.VCPUs.Min == nil || r.MemoryMiB.Min == nil {
		return nil, cloud.Errorf(400, "MissingParameter", "The request must contain the parameters VCpuCount.Min and MemoryMiB.Min")
	}
	type item struct {
		InstanceType string `xml:"instanceType"`
	}
	var matching []item
	for _, t := range r.Match("") {
		if slices.Contains(architectures, string(t.Arch)) && slices.Contains(virtualizations, "hvm") {
			matching = append(matching, item{t.Name})
		}
	}
	page, next, err := wire.Page(v, "GetInstanceTypesFromInstanceRequirements", results(1, 1000), matching)
	if err != nil {
		return nil, err
	}
	return struct {
		InstanceTypes []item `xml:"instanceTypeSet>item"`
		NextToken     string `xml:"nextToken,omitempty"`
	}{page, next}, nil
}
