// Package catalog holds the real figures of EC2 instance types, as DescribeInstanceTypes reports them, and their on-demand prices.
package catalog

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Arch is a processor architecture as EC2 names it.
type Arch string

// Architectures of the catalog.
const (
	X86 Arch = "x86_64"
	ARM Arch = "arm64"
)

// GPUs are the accelerators of a type; Count is 0 for a type that has none.
type GPUs struct {
	Count        int
	Manufacturer string
	Name         string
	// MemoryMiB is that of each one.
	MemoryMiB int
}

// Disks are the NVMe disks of a type; Count is 0 for a type with EBS volumes only.
type Disks struct {
	Count  int
	SizeGB int // of each one
}

// Type holds the figures of one instance type.
type Type struct {
	Name         string
	VCPUs        int
	MemoryMiB    int
	Arch         Arch
	Manufacturer string // of the processor: Intel, AMD or AWS
	ClockGHz     float64
	Cores        int
	// MaxENIs and IPv4PerENI bound the pods that the VPC CNI can give an address.
	MaxENIs    int
	IPv4PerENI int
	Disks      Disks
	GPUs       GPUs
	Burstable  bool
	// HourlyUSD is the on-demand price of Linux in us-east-1.
	HourlyUSD          float64
	NetworkPerformance string
}

// DefaultMemoryOverhead is the share of the nominal memory that firmware, hypervisor and kernel keep from what the operating system reports as its
// total. Nodes of EC2 report 4 to 7 percent less than the type's nominal size, small types more than large ones; 5 percent lies inside. (Karpenter
// assumes 7.5 percent for types that it has not seen: https://karpenter.sh/docs/reference/settings/, VM_MEMORY_OVERHEAD_PERCENT.)
const DefaultMemoryOverhead = 0.05

// OSMemoryMiB is the memory that a node of this type reports, given the share that never reaches the operating system.
func (t Type) OSMemoryMiB(overhead float64) int {
	return t.MemoryMiB - int(float64(t.MemoryMiB)*overhead)
}

// Family is the part of the name before the dot.
func (t Type) Family() string {
	family, _, _ := strings.Cut(t.Name, ".")
	return family
}

// CurrentGeneration tells the types that AWS still lists as current. All of the catalog are.
func (t Type) CurrentGeneration() bool { return true }

// Lookup finds a type by name.
func Lookup(name string) (Type, bool) {
	t, ok := byName[name]
	return t, ok
}

// All returns every type, sorted by name. The slice is the caller's own.
func All() []Type { return slices.Clone(all) }

//go:embed types.txt
var table string

var (
	all    = mustParse(table)
	byName = index(all)
)

func index(types []Type) map[string]Type {
	m := make(map[string]Type, len(types))
	for _, t := range types {
		m[t.Name] = t
	}
	return m
}

func mustParse(table string) []Type {
	types, err := parse(table)
	if err != nil {
		panic(err) // The table is part of the program: a test would have failed first.
	}
	return types
}

func parse(table string) ([]Type, error) {
	var types []Type
	for n, line := range strings.Split(table, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		t, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		types = append(types, t)
	}
	slices.SortFunc(types, func(a, b Type) int { return cmp.Compare(a.Name, b.Name) })
	return types, nil
}

const columnsBeforeNetwork = 13

func parseLine(line string) (Type, error) {
	f := strings.Fields(line)
	if len(f) <= columnsBeforeNetwork {
		return Type{}, fmt.Errorf("%d columns, want more than %d: %q", len(f), columnsBeforeNetwork, line)
	}
	var p fieldParser
	t := Type{
		Name:               f[0],
		VCPUs:              p.int(f[1]),
		MemoryMiB:          p.int(f[2]),
		Arch:               Arch(f[3]),
		Manufacturer:       f[4],
		ClockGHz:           p.float(f[5]),
		Cores:              p.int(f[6]),
		MaxENIs:            p.int(f[7]),
		IPv4PerENI:         p.int(f[8]),
		Disks:              p.disks(f[9]),
		GPUs:               p.gpus(f[10]),
		Burstable:          f[11] == "burst",
		HourlyUSD:          p.float(f[12]),
		NetworkPerformance: strings.Join(f[columnsBeforeNetwork:], " "),
	}
	return t, p.err
}

// fieldParser remembers the first error, so that a line reads as a list of its columns.
type fieldParser struct{ err error }

func (p *fieldParser) int(s string) int {
	n, err := strconv.Atoi(s)
	p.note(err)
	return n
}

func (p *fieldParser) float(s string) float64 {
	n, err := strconv.ParseFloat(s, 64)
	p.note(err)
	return n
}

func (p *fieldParser) disks(s string) Disks {
	if s == "-" {
		return Disks{}
	}
	count, size, _ := strings.Cut(s, "x")
	return Disks{Count: p.int(count), SizeGB: p.int(size)}
}

func (p *fieldParser) gpus(s string) GPUs {
	if s == "-" {
		return GPUs{}
	}
	count, rest, _ := strings.Cut(s, "x")
	parts := strings.Split(rest, "/")
	if len(parts) != 3 {
		p.note(fmt.Errorf("GPUs %q, want COUNTxMAKER/NAME/MIB", s))
		return GPUs{}
	}
	return GPUs{Count: p.int(count), Manufacturer: parts[0], Name: parts[1], MemoryMiB: p.int(parts[2])}
}

func (p *fieldParser) note(err error) {
	if p.err == nil {
		p.err = err
	}
}
