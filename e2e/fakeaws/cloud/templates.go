package cloud

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"windlass.dev/windlass/e2e/fakeaws/catalog"
)

// offer is one way to launch an instance for a group.
type offer struct {
	typ   catalog.Type
	image string
	spot  bool
	// weight is 0 where the group has no weights.
	weight int

	template            string
	templateID          string
	version             int
	launchConfiguration string
	data                TemplateVersion
}

// market words the kind of purchase as the fleet errors of EC2 do.
func (o offer) market() string {
	if o.spot {
		return "spot"
	}
	return "on-demand"
}

// Templates lists the launch templates.
func (c *Cloud) Templates() []LaunchTemplate { return slices.Clone(c.templates) }

// Template finds a launch template by id or name, as DescribeLaunchTemplateVersions does.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
func (c *Cloud) Template(id, name string) (LaunchTemplate, error) {
	for _, t := range c.templates {
		if t.ID == id && id != "" || t.Name == name && name != "" {
			return t, nil
		}
	}
	if id != "" {
		return LaunchTemplate{}, Errorf(400, "InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", id)
	}
	return LaunchTemplate{}, Errorf(400, "InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates specified in the request does not exist.")
}

var templateIDForm = regexp.MustCompile(`^lt-([0-9a-f]{8}|[0-9a-f]{17})$`)

// IsTemplateID reports whether a launch template could have the id.
func IsTemplateID(id string) bool { return templateIDForm.MatchString(id) }

// Number resolves a version as AWS does: a number, $Latest, $Default, or "" for $Default.
func (t LaunchTemplate) Number(version string) (int, error) {
	switch version {
	case "", "$Default":
		return t.Default, nil
	case "$Latest":
		return len(t.Versions), nil
	}
	n, err := strconv.Atoi(version)
	if err != nil || n < 1 || n > len(t.Versions) {
		return 0, Errorf(400, "InvalidLaunchTemplateId.VersionNotFound", "Could not find the specified version %s for the launch template with ID %s.", version, t.ID)
	}
	return n, nil
}

// AddTemplateVersion adds a version to a launch template and answers its number.
func (c *Cloud) AddTemplateVersion(name string, v TemplateVersion) (int, error) {
	i := slices.IndexFunc(c.templates, func(t LaunchTemplate) bool { return t.Name == name })
	if i < 0 {
		_, err := c.Template("", name)
		return 0, err
	}
	t := c.templates[i]
	t.Versions = append(slices.Clone(t.Versions), v)
	c.templates[i] = completeTemplate(t)
	return len(t.Versions), nil
}

// DeleteTemplate deletes a launch template; groups that use it can launch nothing any more.
func (c *Cloud) DeleteTemplate(name string) error {
	if _, err := c.Template("", name); err != nil {
		return err
	}
	c.templates = slices.DeleteFunc(slices.Clone(c.templates), func(t LaunchTemplate) bool { return t.Name == name })
	return nil
}

// Image finds an AMI.
func (c *Cloud) Image(id string) (Image, error) {
	for _, i := range c.spec.Images {
		if i.ID == id {
			return i, nil
		}
	}
	return Image{}, Errorf(400, "InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
}

// LaunchConfiguration finds a launch configuration by name.
func (c *Cloud) LaunchConfiguration(name string) (LaunchConfiguration, bool) {
	for _, lc := range c.spec.LaunchConfigurations {
		if lc.Name == name {
			return lc, true
		}
	}
	return LaunchConfiguration{}, false
}

// source is what a group launches from: candidates in the order in which they are tried.
type source struct {
	offers []offer
	mixed  bool
}

// sourceOf resolves what the group launches now. It fails when a template, version, configuration or type does not exist.
func (c *Cloud) sourceOf(g Group) (source, error) {
	ways := 0
	for _, given := range []bool{g.LaunchTemplate != nil, g.LaunchConfiguration != "", g.MixedInstances != nil} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return source{}, invalid("Valid requests must contain either the InstanceId parameter or a LaunchConfigurationName, LaunchTemplate or MixedInstancesPolicy parameter; the group has %d of them", ways)
	}
	switch {
	case g.LaunchConfiguration != "":
		return c.sourceOfConfiguration(g.LaunchConfiguration)
	case g.LaunchTemplate != nil:
		return c.sourceOfTemplate(*g.LaunchTemplate)
	}
	return c.sourceOfMix(*g.MixedInstances)
}

func (c *Cloud) sourceOfConfiguration(name string) (source, error) {
	lc, ok := c.LaunchConfiguration(name)
	if !ok {
		return source{}, invalid("Launch configuration name not found - A launch configuration with the name: %s does not exist", name)
	}
	t, ok := catalog.Lookup(lc.Type)
	if !ok {
		return source{}, unknownType(lc.Type)
	}
	data := TemplateVersion{Type: lc.Type, Image: lc.Image, UserData: lc.UserData, Volumes: lc.Volumes, HopLimit: 2}
	o := offer{typ: t, image: cmp.Or(lc.Image, defaultImage(t)), spot: lc.SpotPrice != "", launchConfiguration: lc.Name, data: data}
	return source{offers: []offer{o}}, nil
}

func (c *Cloud) sourceOfTemplate(ref TemplateRef) (source, error) {
	base, err := c.baseOffer(ref)
	if err != nil {
		return source{}, err
	}
	offers, err := withTypes(base, Override{Type: base.data.Type, Requirements: base.data.Requirements})
	return source{offers: offers}, err
}

func (c *Cloud) sourceOfMix(m MixedInstances) (source, error) {
	base, err := c.baseOffer(m.LaunchTemplate)
	if err != nil {
		return source{}, err
	}
	overrides := m.Overrides
	if len(overrides) == 0 {
		overrides = []Override{{Type: base.data.Type, Requirements: base.data.Requirements}}
	}
	s := source{mixed: true}
	for _, o := range overrides {
		from := base
		if o.LaunchTemplate != nil {
			if from, err = c.baseOffer(*o.LaunchTemplate); err != nil {
				return source{}, err
			}
		}
		offers, err := withTypes(from, o)
		if err != nil {
			return source{}, err
		}
		s.offers = append(s.offers, offers...)
	}
	return s, nil
}

// baseOffer is what a launch template says, the type left open.
func (c *Cloud) baseOffer(ref TemplateRef) (offer, error) {
	t, err := c.Template(ref.ID, ref.Name)
	if err != nil {
		return offer{}, err
	}
	n, err := t.Number(ref.Version)
	if err != nil {
		return offer{}, err
	}
	data := t.Versions[n-1]
	return offer{image: data.Image, spot: data.Spot, template: t.Name, templateID: t.ID, version: n, data: data}, nil
}

func withTypes(base offer, o Override) ([]offer, error) {
	var types []catalog.Type
	switch {
	case o.Requirements != nil:
		types = o.Requirements.Match("")
	case o.Type == "":
		types = nil
	default:
		t, ok := catalog.Lookup(o.Type)
		if !ok {
			return nil, unknownType(o.Type)
		}
		types = []catalog.Type{t}
	}
	if len(types) == 0 {
		return nil, invalid("You must use a valid fully-formed launch template. No instance type is given or matches.")
	}
	var offers []offer
	for _, t := range types {
		next := base
		next.typ, next.weight, next.image = t, o.Weight, cmp.Or(base.image, defaultImage(t))
		offers = append(offers, next)
	}
	return offers, nil
}

func unknownType(name string) *Error {
	return Errorf(400, "InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
}

func defaultImage(t catalog.Type) string {
	if t.Arch == catalog.ARM {
		return DefaultImageARM
	}
	return DefaultImageX86
}

// Match lists the types of the catalog that meet the requirements, cheapest first. An empty architecture does not choose.
func (r Requirements) Match(arch string) []catalog.Type {
	types := slices.DeleteFunc(catalog.All(), func(t catalog.Type) bool {
		return !r.meets(t) || arch != "" && arch != string(t.Arch)
	})
	slices.SortStableFunc(types, func(a, b catalog.Type) int {
		return cmp.Or(cmp.Compare(a.HourlyUSD, b.HourlyUSD), cmp.Compare(a.Name, b.Name))
	})
	return types
}

func (r Requirements) meets(t catalog.Type) bool {
	memory := float64(t.MemoryMiB)
	return r.VCPUs.holds(float64(t.VCPUs)) &&
		r.MemoryMiB.holds(memory) &&
		r.MemoryGiBPerVCPU.holds(memory/1024/float64(t.VCPUs)) &&
		r.NetworkInterfaces.holds(float64(t.MaxENIs)) &&
		r.acceleratorsFit(t) &&
		(len(r.Generations) == 0 || slices.Contains(r.Generations, generation(t))) &&
		allows(cmp.Or(r.BareMetal, "excluded"), false) && // The catalog has no metal.
		r.storageFits(t) &&
		(len(r.CPUManufacturers) == 0 || slices.Contains(r.CPUManufacturers, cpuMaker(t))) &&
		(len(r.AllowedTypes) == 0 || anyMatches(r.AllowedTypes, t.Name)) &&
		!anyMatches(r.ExcludedTypes, t.Name) &&
		allows(cmp.Or(r.Burstable, "excluded"), t.Burstable) &&
		allows(cmp.Or(r.LocalStorage, "included"), t.Disks.Count > 0)
}

// acceleratorsFit: types with accelerators are left out unless something asks for them. Those of the catalog are all GPUs.
func (r Requirements) acceleratorsFit(t catalog.Type) bool {
	names := slices.Concat(r.AcceleratorTypes, r.AcceleratorManufacturers, r.AcceleratorNames)
	if len(names) == 0 && !r.Accelerators.given() && !r.AcceleratorMemoryMiB.given() {
		return t.GPUs.Count == 0
	}
	kind := func(words []string, word string) bool {
		return len(words) == 0 || t.GPUs.Count > 0 && slices.Contains(words, strings.ToLower(word))
	}
	return r.Accelerators.holds(float64(t.GPUs.Count)) && r.AcceleratorMemoryMiB.holds(float64(t.GPUs.Count*t.GPUs.MemoryMiB)) &&
		kind(r.AcceleratorTypes, "gpu") && kind(r.AcceleratorManufacturers, t.GPUs.Manufacturer) && kind(r.AcceleratorNames, t.GPUs.Name)
}

// storageFits: the local disks of the catalog are all SSDs.
func (r Requirements) storageFits(t catalog.Type) bool {
	kind := len(r.LocalStorageTypes) == 0 || t.Disks.Count == 0 || slices.Contains(r.LocalStorageTypes, "ssd")
	return kind && r.LocalStorageGB.holds(float64(t.Disks.Count*t.Disks.SizeGB))
}

func generation(t catalog.Type) string {
	if t.CurrentGeneration() {
		return "current"
	}
	return "previous"
}

// cpuMaker is the manufacturer as InstanceRequirements names it.
func cpuMaker(t catalog.Type) string {
	return map[string]string{"Intel": "intel", "AMD": "amd", "AWS": "amazon-web-services"}[t.Manufacturer]
}

func allows(rule string, has bool) bool {
	switch rule {
	case "required":
		return has
	case "excluded":
		return !has
	}
	return true
}

// anyMatches: names may hold * as a wildcard.
func anyMatches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return MatchPattern(p, name) })
}

func (r Range) given() bool { return r.Min != nil || r.Max != nil }

func (r Range) holds(v float64) bool {
	return (r.Min == nil || v >= *r.Min) && (r.Max == nil || v <= *r.Max)
}

// MatchPattern reports whether a name matches a pattern in which * stands for any text and ?
// for any character, as in the filters of EC2.
func MatchPattern(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	if pattern[0] == '*' {
		return MatchPattern(pattern[1:], name) || name != "" && MatchPattern(pattern, name[1:])
	}
	return name != "" && (pattern[0] == '?' || pattern[0] == name[0]) && MatchPattern(pattern[1:], name[1:])
}

// String names the offer for logs.
func (o offer) String() string { return fmt.Sprintf("%s %s", o.market(), o.typ.Name) }

// Offered are the types that a group launches, whether on the spot market, and the size of its root volume in GiB (0 where the template does not say).
func (c *Cloud) Offered(name string) (types []string, spot bool, disk int) {
	g := c.findGroup(name)
	if g == nil {
		return []string{""}, false, 0
	}
	src, err := c.sourceOf(g.spec)
	if err != nil {
		return []string{""}, false, 0
	}
	for _, o := range src.offers {
		types = append(types, o.typ.Name)
	}
	if len(src.offers[0].data.Volumes) > 0 {
		disk = src.offers[0].data.Volumes[0].SizeGiB
	}
	m := g.spec.MixedInstances
	onlySpot := m != nil && m.OnDemandBase == 0 && m.OnDemandPercentAbove != nil && *m.OnDemandPercentAbove == 0
	return types, src.offers[0].spot || onlySpot, disk
}
