package template

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"windlass.dev/windlass/scaler/asg/userdata"
)

// launchTemplate is what we need of a version of a launch template, or of a launch
// configuration.
type launchTemplate struct {
	// version names it, such as lt-0123:7; empty for a launch configuration.
	version      string
	instanceType string
	requirements *ec2types.InstanceRequirements
	// volumes are the sizes of EBS volumes in bytes, in the template's order.
	volumes []volume
	image   string
	spot    bool
	data    userdata.Settings
	// cpus are those that the template leaves of a type's; 0 for all.
	cpus int64
	// doubt is why it is not known which types its image can boot; nil where that is known.
	doubt error
}

type volume struct {
	device string
	size   int64
}

// Devices that hold what the kubelet counts as ephemeral storage: the root, for which these names
// are kept, and with Bottlerocket the second, because its root is read only.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/device_naming.html
// https://bottlerocket.dev/en/os/latest/#/concepts/components/#block-devices
var (
	rootDevices      = []string{"/dev/xvda", "/dev/sda1", "/dev/sda"}
	bottlerocketData = "/dev/xvdb"
)

// storage is the size of the volume that pods share, in bytes. Of one that the template does not
// name the image has its own size.
func (t launchTemplate) storage() int64 {
	devices := rootDevices
	if t.data.Family == userdata.Bottlerocket {
		devices = []string{bottlerocketData}
	}
	for _, v := range t.volumes {
		if slices.Contains(devices, v.device) {
			return v.size
		}
	}
	return defaultVolume
}

// launchBook reads launch templates and configurations. A numbered version of
// a template and a launch configuration never change and are read once;
// $Latest and $Default are asked for again after floatingFor, those of all
// templates of the account in one call.
type launchBook struct {
	aws Describer
	now func() time.Time

	mu       sync.Mutex
	known    map[string]launchTemplate
	floating floating
	// architectures are those of images, by id. They never change.
	architectures map[string]ec2types.ArchitectureType
}

// floating are the templates that $Latest and $Default meant when all were read.
type floating struct {
	mu    sync.Mutex // held while they are read
	known map[string]launchTemplate
	until time.Time
	// wanted are those that groups launch from.
	wanted map[string]bool
	// tooMany is true if reading all of the account costs more calls than reading
	// those that are wanted.
	tooMany bool
}

const (
	// floatingFor is how long $Latest and $Default are taken to mean what they meant. A group
	// that launches from a new version meanwhile has the new version on its instances, but
	// the node template is only needed for the next ones. A little less than RedrawEvery, so
	// that a redrawn blueprint is a new one.
	floatingFor = RedrawEvery - 30*time.Second
	// pagesAtMost bounds the reading of all templates of an account.
	pagesAtMost = 5
)

const (
	latestVersion  = "$Latest"
	defaultVersion = "$Default"
)

// template reads a launch template, by id where there is one.
func (b *launchBook) template(ctx context.Context, spec *astypes.LaunchTemplateSpecification) (launchTemplate, error) {
	version := aws.ToString(spec.Version)
	if version == "" {
		version = defaultVersion // https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LaunchTemplateSpecification.html
	}
	id, name := aws.ToString(spec.LaunchTemplateId), aws.ToString(spec.LaunchTemplateName)
	key := cmp.Or(id, name)
	read := func() (launchTemplate, error) { return b.read(ctx, id, name, version) }
	if _, err := strconv.Atoi(version); err == nil {
		return b.remembered("template/"+key+"/"+version, read)
	}
	return b.floats(ctx, key, version, read)
}

// read asks for one version of one template.
func (b *launchBook) read(ctx context.Context, id, name, version string) (launchTemplate, error) {
	described, err := b.aws.TemplateVersion(ctx, id, name, version)
	if err == nil && (described == nil || described.LaunchTemplateData == nil) {
		err = errMissing
	}
	if err != nil {
		return launchTemplate{}, fmt.Errorf("launch template %s, version %s: %w", cmp.Or(id, name), version, err)
	}
	return newTemplate(*described), nil
}

// floats finds what $Latest or $Default means now. What was not among all of them, being new
// or deleted, is asked for by itself.
func (b *launchBook) floats(ctx context.Context, name, version string, read func() (launchTemplate, error)) (launchTemplate, error) {
	f := &b.floating
	f.mu.Lock()
	defer f.mu.Unlock()
	key := name + "/" + version
	f.wanted[key] = true
	if !b.now().Before(f.until) {
		f.known = map[string]launchTemplate{}
		if err := b.readAll(ctx); err != nil {
			return launchTemplate{}, err
		}
		f.until = b.now().Add(floatingFor)
	}
	if t, ok := f.known[key]; ok {
		return t, nil
	}
	t, err := read()
	if err != nil {
		return launchTemplate{}, err
	}
	f.known[key] = t
	return t, nil
}

// readAll reads $Latest and $Default of every template of the account, unless that
// takes more calls than asking for the wanted ones.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeLaunchTemplateVersions.html
func (b *launchBook) readAll(ctx context.Context) error {
	f := &b.floating
	if f.tooMany {
		return nil
	}
	latest, token := map[string]int64{}, ""
	for page := 1; ; page++ {
		described, next, err := b.aws.TemplateVersions(ctx, []string{latestVersion, defaultVersion}, token)
		if err != nil {
			return fmt.Errorf("launch templates of the account: %w", err)
		}
		for _, v := range described {
			f.keep(v, latest)
		}
		if next == "" {
			f.tooMany = page > 1 && page > len(f.wanted)
			return nil
		}
		if page == pagesAtMost {
			f.tooMany = true
			f.known = map[string]launchTemplate{} // half of them may have the default and not the latest
			return nil
		}
		token = next
	}
}

// keep files a version under what it is now. latest has the highest number so far
// of each template.
func (f *floating) keep(v ec2types.LaunchTemplateVersion, latest map[string]int64) {
	if v.LaunchTemplateData == nil {
		return
	}
	id, number := aws.ToString(v.LaunchTemplateId), aws.ToInt64(v.VersionNumber)
	t := newTemplate(v)
	file := func(version string) {
		f.known[id+"/"+version], f.known[aws.ToString(v.LaunchTemplateName)+"/"+version] = t, t
	}
	if aws.ToBool(v.DefaultVersion) {
		file(defaultVersion)
	}
	if number >= latest[id] {
		latest[id] = number
		file(latestVersion)
	}
}

func newTemplate(v ec2types.LaunchTemplateVersion) launchTemplate {
	data := v.LaunchTemplateData
	t := launchTemplate{
		version:      VersionName(aws.ToString(v.LaunchTemplateId), strconv.FormatInt(aws.ToInt64(v.VersionNumber), 10)),
		instanceType: string(data.InstanceType), requirements: data.InstanceRequirements,
		image: aws.ToString(data.ImageId), data: userdata.Parse(aws.ToString(data.UserData)),
	}
	for _, m := range data.BlockDeviceMappings {
		if m.Ebs != nil && aws.ToInt32(m.Ebs.VolumeSize) > 0 {
			t.volumes = append(t.volumes, volume{aws.ToString(m.DeviceName), int64(*m.Ebs.VolumeSize) * gibi})
		}
	}
	if c := data.CpuOptions; c != nil {
		t.cpus = int64(aws.ToInt32(c.CoreCount)) * int64(aws.ToInt32(c.ThreadsPerCore))
	}
	if o := data.InstanceMarketOptions; o != nil {
		t.spot = o.MarketType == ec2types.MarketTypeSpot
	}
	return t
}

// VersionName names a version of a template as fleet.Group.Template does.
func VersionName(id, version string) string { return id + ":" + version }

func (b *launchBook) configuration(ctx context.Context, name string) (launchTemplate, error) {
	return b.remembered("configuration/"+name, func() (launchTemplate, error) {
		described, err := b.aws.LaunchConfiguration(ctx, name)
		if err == nil && described == nil {
			err = errMissing
		}
		if err != nil {
			return launchTemplate{}, fmt.Errorf("launch configuration %s: %w", name, err)
		}
		return configured(*described), nil
	})
}

func configured(lc astypes.LaunchConfiguration) launchTemplate {
	t := launchTemplate{
		instanceType: aws.ToString(lc.InstanceType), image: aws.ToString(lc.ImageId),
		data: userdata.Parse(aws.ToString(lc.UserData)), spot: aws.ToString(lc.SpotPrice) != "",
	}
	for _, m := range lc.BlockDeviceMappings {
		if m.Ebs != nil && aws.ToInt32(m.Ebs.VolumeSize) > 0 {
			t.volumes = append(t.volumes, volume{aws.ToString(m.DeviceName), int64(*m.Ebs.VolumeSize) * gibi})
		}
	}
	return t
}

// remembered reads what never changes once. Failures are not kept.
func (b *launchBook) remembered(key string, read func() (launchTemplate, error)) (launchTemplate, error) {
	b.mu.Lock()
	t, ok := b.known[key]
	b.mu.Unlock()
	if ok {
		return t, nil
	}
	t, err := read()
	if err != nil {
		return launchTemplate{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[key] = t
	return t, nil
}
