package api

import (
	"maps"
	"slices"
	"strconv"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

// The structures of DescribeLaunchTemplateVersions and DescribeImages.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateVersion.html

type ec2Version struct {
	LaunchTemplateID   string          `xml:"launchTemplateId"`
	LaunchTemplateName string          `xml:"launchTemplateName"`
	VersionNumber      int             `xml:"versionNumber"`
	VersionDescription string          `xml:"versionDescription,omitempty"`
	CreateTime         wire.Time       `xml:"createTime"`
	CreatedBy          string          `xml:"createdBy"`
	DefaultVersion     bool            `xml:"defaultVersion"`
	Data               ec2TemplateData `xml:"launchTemplateData"`
}

type ec2TemplateData struct {
	InstanceType string               `xml:"instanceType,omitempty"`
	ImageID      string               `xml:"imageId,omitempty"`
	UserData     string               `xml:"userData,omitempty"`
	Devices      []ec2Device          `xml:"blockDeviceMappingSet>item"`
	TagSpecs     []ec2TagSpec         `xml:"tagSpecificationSet>item"`
	Market       *ec2Market           `xml:"instanceMarketOptions,omitempty"`
	Metadata     *ec2TemplateMetadata `xml:"metadataOptions,omitempty"`
	Profile      *ec2Profile          `xml:"iamInstanceProfile,omitempty"`
	Requirements *ec2Requirements     `xml:"instanceRequirements,omitempty"`
}

type ec2Device struct {
	DeviceName string    `xml:"deviceName"`
	EBS        ec2Volume `xml:"ebs"`
}

type ec2Volume struct {
	VolumeSize          int    `xml:"volumeSize"`
	VolumeType          string `xml:"volumeType"`
	DeleteOnTermination bool   `xml:"deleteOnTermination"`
}

type ec2TagSpec struct {
	ResourceType string     `xml:"resourceType"`
	Tags         []wire.Tag `xml:"tagSet>item"`
}

type ec2Market struct {
	MarketType string `xml:"marketType"`
}

type ec2TemplateMetadata struct {
	HTTPTokens              string `xml:"httpTokens"`
	HTTPPutResponseHopLimit int    `xml:"httpPutResponseHopLimit"`
	HTTPEndpoint            string `xml:"httpEndpoint"`
	InstanceMetadataTags    string `xml:"instanceMetadataTags"`
}

type ec2Profile struct {
	Name string `xml:"name"`
}

// ec2Requirements is InstanceRequirements as EC2 writes it.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceRequirements.html
type ec2Requirements struct {
	VCPUCount                 *ec2Range `xml:"vCpuCount,omitempty"`
	MemoryMiB                 *ec2Range `xml:"memoryMiB,omitempty"`
	MemoryGiBPerVCPU          *ec2Range `xml:"memoryGiBPerVCpu,omitempty"`
	AcceleratorCount          *ec2Range `xml:"acceleratorCount,omitempty"`
	AcceleratorTotalMemoryMiB *ec2Range `xml:"acceleratorTotalMemoryMiB,omitempty"`
	NetworkInterfaceCount     *ec2Range `xml:"networkInterfaceCount,omitempty"`
	TotalLocalStorageGB       *ec2Range `xml:"totalLocalStorageGB,omitempty"`
	CPUManufacturers          []string  `xml:"cpuManufacturerSet>item"`
	AllowedTypes              []string  `xml:"allowedInstanceTypeSet>item"`
	ExcludedTypes             []string  `xml:"excludedInstanceTypeSet>item"`
	Generations               []string  `xml:"instanceGenerationSet>item"`
	LocalStorageTypes         []string  `xml:"localStorageTypeSet>item"`
	AcceleratorTypes          []string  `xml:"acceleratorTypeSet>item"`
	AcceleratorManufacturers  []string  `xml:"acceleratorManufacturerSet>item"`
	AcceleratorNames          []string  `xml:"acceleratorNameSet>item"`
	BurstablePerformance      string    `xml:"burstablePerformance,omitempty"`
	LocalStorage              string    `xml:"localStorage,omitempty"`
	BareMetal                 string    `xml:"bareMetal,omitempty"`
}

type ec2Range struct {
	Min string `xml:"min,omitempty"`
	Max string `xml:"max,omitempty"`
}

func ec2RequirementsShape(r *cloud.Requirements) *ec2Requirements {
	if r == nil {
		return nil
	}
	interval := func(r cloud.Range) *ec2Range { return (*ec2Range)(rangeShape(r)) }
	return &ec2Requirements{
		VCPUCount: interval(r.VCPUs), MemoryMiB: interval(r.MemoryMiB), MemoryGiBPerVCPU: interval(r.MemoryGiBPerVCPU), AcceleratorCount: interval(r.Accelerators),
		AcceleratorTotalMemoryMiB: interval(r.AcceleratorMemoryMiB), NetworkInterfaceCount: interval(r.NetworkInterfaces), TotalLocalStorageGB: interval(r.LocalStorageGB),
		CPUManufacturers: r.CPUManufacturers, AllowedTypes: r.AllowedTypes, ExcludedTypes: r.ExcludedTypes, Generations: r.Generations, LocalStorageTypes: r.LocalStorageTypes,
		AcceleratorTypes: r.AcceleratorTypes, AcceleratorManufacturers: r.AcceleratorManufacturers, AcceleratorNames: r.AcceleratorNames,
		BurstablePerformance: r.Burstable, LocalStorage: r.LocalStorage, BareMetal: r.BareMetal,
	}
}

type ec2Template struct {
	ID      string    `xml:"launchTemplateId"`
	Name    string    `xml:"launchTemplateName"`
	Created wire.Time `xml:"createTime"`
	By      string    `xml:"createdBy"`
	Default int       `xml:"defaultVersionNumber"`
	Latest  int       `xml:"latestVersionNumber"`
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeLaunchTemplates.html
func describeTemplates(c *cloud.Cloud, v wire.Values) (any, error) {
	ids, names, filters := v.List("LaunchTemplateId"), v.List("LaunchTemplateName"), v.Filters("Filter", "Value")
	if err := known(filters, fields(map[string]string{"launch-template-name": ""})); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if _, err := templateNamed(c, id, ""); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		if _, err := templateNamed(c, "", name); err != nil {
			return nil, err
		}
	}
	var all []ec2Template
	for _, t := range c.Templates() {
		named := len(ids)+len(names) == 0 || slices.Contains(ids, t.ID) || slices.Contains(names, t.Name)
		if named && matches(filters, fields(map[string]string{"launch-template-name": t.Name})) {
			all = append(all, ec2Template{t.ID, t.Name, wire.Time{Time: c.Started()}, "arn:aws:iam::" + c.Account() + ":root", t.Default, len(t.Versions)})
		}
	}
	page, next, err := wire.Page(v, "DescribeLaunchTemplates", results(1, 200), all)
	if err != nil {
		return nil, err
	}
	return struct {
		Templates []ec2Template `xml:"launchTemplates>item"`
		NextToken string        `xml:"nextToken,omitempty"`
	}{page, next}, nil
}

// templateNamed finds a template by id or name.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
func templateNamed(c *cloud.Cloud, id, name string) (cloud.LaunchTemplate, error) {
	if id != "" && !cloud.IsTemplateID(id) {
		return cloud.LaunchTemplate{}, cloud.Errorf(400, "InvalidLaunchTemplateId.Malformed", "The launch template ID '%s' is malformed", id)
	}
	return c.Template(id, name)
}

// describeTemplateVersions answers the versions of one template, or $Latest or $Default of all.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeLaunchTemplateVersions.html
func describeTemplateVersions(c *cloud.Cloud, v wire.Values) (any, error) {
	templates, err := templatesMeant(c, v)
	if err != nil {
		return nil, err
	}
	filters := v.Filters("Filter", "Value")
	if err := known(filters, versionFields(ec2Version{})); err != nil {
		return nil, err
	}
	var all []ec2Version
	for _, t := range templates {
		numbers, err := versionsMeant(t, v)
		if err != nil {
			return nil, err
		}
		for _, n := range numbers {
			if shape := versionShape(c, t, n); matches(filters, versionFields(shape)) {
				all = append(all, shape)
			}
		}
	}
	page, next, err := wire.Page(v, "DescribeLaunchTemplateVersions", results(1, 200), all)
	if err != nil {
		return nil, err
	}
	return struct {
		Versions  []ec2Version `xml:"launchTemplateVersionSet>item"`
		NextToken string       `xml:"nextToken,omitempty"`
	}{page, next}, nil
}

func templatesMeant(c *cloud.Cloud, v wire.Values) ([]cloud.LaunchTemplate, error) {
	id, name := v.Get("LaunchTemplateId"), v.Get("LaunchTemplateName")
	switch {
	case id != "" && name != "":
		return nil, cloud.Errorf(400, "InvalidParameterCombination", "You cannot specify both a launch template ID and name.")
	case id == "" && name == "":
		for _, version := range v.List("LaunchTemplateVersion") {
			if version != "$Latest" && version != "$Default" {
				return nil, cloud.Errorf(400, "MissingParameter", "The parameter launch template ID or launch template name must be specified.")
			}
		}
		return c.Templates(), nil
	}
	t, err := templateNamed(c, id, name)
	return []cloud.LaunchTemplate{t}, err
}

// versionsMeant: those named; all, newest first, where none is.
func versionsMeant(t cloud.LaunchTemplate, v wire.Values) ([]int, error) {
	var numbers []int
	for _, version := range v.List("LaunchTemplateVersion") {
		n, err := t.Number(version)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) > 0 {
		return numbers, nil
	}
	lowest, err := v.Int("MinVersion", 1)
	if err != nil {
		return nil, err
	}
	highest, err := v.Int("MaxVersion", len(t.Versions))
	if err != nil {
		return nil, err
	}
	for n := min(highest, len(t.Versions)); n >= lowest; n-- {
		numbers = append(numbers, n)
	}
	return numbers, nil
}

func versionFields(s ec2Version) func(name string) ([]string, bool) {
	return fields(map[string]string{"image-id": s.Data.ImageID, "instance-type": s.Data.InstanceType, "is-default-version": strconv.FormatBool(s.DefaultVersion)})
}

func versionShape(c *cloud.Cloud, t cloud.LaunchTemplate, n int) ec2Version {
	d := t.Versions[n-1]
	shape := ec2Version{
		LaunchTemplateID: t.ID, LaunchTemplateName: t.Name, VersionNumber: n, VersionDescription: d.Description, CreateTime: wire.Time{Time: c.Started()},
		CreatedBy: "arn:aws:iam::" + c.Account() + ":root", DefaultVersion: n == t.Default,
		Data: ec2TemplateData{InstanceType: d.Type, ImageID: d.Image, Requirements: ec2RequirementsShape(d.Requirements)},
	}
	if d.UserData != "" {
		shape.Data.UserData = base64Of(d.UserData)
	}
	for _, volume := range d.Volumes {
		shape.Data.Devices = append(shape.Data.Devices, ec2Device{volume.Device, ec2Volume{volume.SizeGiB, volume.Type, true}})
	}
	if len(d.Tags) > 0 {
		spec := ec2TagSpec{ResourceType: "instance"}
		for _, key := range slices.Sorted(maps.Keys(d.Tags)) {
			spec.Tags = append(spec.Tags, wire.Tag{Key: key, Value: d.Tags[key]})
		}
		shape.Data.TagSpecs = []ec2TagSpec{spec}
	}
	if d.Spot {
		shape.Data.Market = &ec2Market{"spot"}
	}
	if d.Profile != "" {
		shape.Data.Profile = &ec2Profile{d.Profile}
	}
	o := metadataShape(cloud.Notices{HopLimit: d.HopLimit, MetadataTags: d.MetadataTags})
	shape.Data.Metadata = &ec2TemplateMetadata{o.HTTPTokens, o.HTTPPutResponseHopLimit, o.HTTPEndpoint, o.InstanceMetadataTags}
	return shape
}

type ec2Image struct {
	ImageID            string      `xml:"imageId"`
	Name               string      `xml:"name"`
	State              string      `xml:"imageState"`
	OwnerID            string      `xml:"imageOwnerId"`
	OwnerAlias         string      `xml:"imageOwnerAlias"`
	Public             bool        `xml:"isPublic"`
	Architecture       string      `xml:"architecture"`
	ImageType          string      `xml:"imageType"`
	Platform           string      `xml:"platform,omitempty"`
	PlatformDetails    string      `xml:"platformDetails"`
	RootDeviceType     string      `xml:"rootDeviceType"`
	RootDeviceName     string      `xml:"rootDeviceName"`
	VirtualizationType string      `xml:"virtualizationType"`
	Devices            []ec2Device `xml:"blockDeviceMapping>item"`
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeImages.html
func describeImages(c *cloud.Cloud, v wire.Values) (any, error) {
	ids := v.List("ImageId")
	for _, id := range ids {
		if _, err := c.Image(id); err != nil {
			return nil, err
		}
	}
	filters := v.Filters("Filter", "Value")
	if err := known(filters, imageFields(cloud.Image{})); err != nil {
		return nil, err
	}
	var all []ec2Image
	for _, i := range c.Spec().Images {
		if len(ids) > 0 && !slices.Contains(ids, i.ID) {
			continue
		}
		if matches(filters, imageFields(i)) {
			all = append(all, imageShape(i))
		}
	}
	page, next, err := wire.Page(v, "DescribeImages", results(1, 1000), all)
	if err != nil {
		return nil, err
	}
	return struct {
		Images    []ec2Image `xml:"imagesSet>item"`
		NextToken string     `xml:"nextToken,omitempty"`
	}{page, next}, nil
}

func imageFields(i cloud.Image) func(name string) ([]string, bool) {
	return fields(map[string]string{
		"image-id": i.ID, "name": i.Name, "architecture": i.Arch, "state": "available", "virtualization-type": "hvm", "root-device-type": "ebs",
	})
}

func imageShape(i cloud.Image) ec2Image {
	shape := ec2Image{
		ImageID: i.ID, Name: i.Name, State: "available", OwnerID: "602401143452", OwnerAlias: "amazon", Public: true, Architecture: i.Arch,
		ImageType: "machine", PlatformDetails: linux, RootDeviceType: "ebs", RootDeviceName: i.Volume.Device, VirtualizationType: "hvm",
		Devices: []ec2Device{{i.Volume.Device, ec2Volume{i.Volume.SizeGiB, i.Volume.Type, true}}},
	}
	if i.Windows {
		shape.Platform, shape.PlatformDetails = "windows", "Windows"
	}
	return shape
}
