package asg

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// The flags that say which groups are ours. Names and meanings are those of
// Cluster Autoscaler.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/README.md
const (
	FlagNodes     = "--nodes"
	FlagDiscovery = "--node-group-auto-discovery"

	formNodes     = "min:max:name, such as 0:10:web"
	formDiscovery = "asg:tag=key[=value][,key[=value]…], such as asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/my-cluster=owned"
)

// Selection is which groups are ours: those that are named, and those that
// carry every one of the tags.
type Selection struct {
	Named []Named
	// Tags must all be on a group. Nothing is discovered where there are none.
	Tags []Tag
}

// Named is a group named by a flag, with bounds that overrule its own.
type Named struct {
	Name     string
	Min, Max int
}

// Tag is a tag that a group must carry.
type Tag struct {
	Key string
	// Value must be the tag's, unless Any is set.
	Value string
	Any   bool
}

func (t Tag) String() string {
	if t.Any {
		return t.Key
	}
	return t.Key + "=" + t.Value
}

// WhyNone returns why there may be no group at all in a region. A group that is
// named but not there is a group with a fault.
func (s Selection) WhyNone(region string) string {
	texts := make([]string, 0, len(s.Tags))
	for _, t := range s.Tags {
		texts = append(texts, t.String())
	}
	return fmt.Sprintf("no Auto Scaling group in %s carries all the tags of %s: %s", region, FlagDiscovery, strings.Join(texts, ", "))
}

// ParseSelection reads the values of the two flags. As in Cluster Autoscaler,
// the tags of several discovery flags are put together: a group must carry all
// of them. An error quotes the flag's text and says what is expected.
func ParseSelection(nodes, discovery []string) (Selection, error) {
	var s Selection
	for _, text := range nodes {
		n, err := parseNodes(text)
		if err != nil {
			return Selection{}, fmt.Errorf("%s=%s: %w; want %s", FlagNodes, text, err, formNodes)
		}
		if slices.ContainsFunc(s.Named, func(other Named) bool { return other.Name == n.Name }) {
			return Selection{}, fmt.Errorf("%s=%s: the group %s is named twice", FlagNodes, text, n.Name)
		}
		s.Named = append(s.Named, n)
	}
	for _, text := range discovery {
		tags, err := parseDiscovery(text)
		if err != nil {
			return Selection{}, fmt.Errorf("%s=%s: %w; want %s", FlagDiscovery, text, err, formDiscovery)
		}
		s.Tags = append(s.Tags, tags...)
	}
	if len(s.Named) == 0 && len(s.Tags) == 0 {
		return Selection{}, fmt.Errorf("no groups: give %s=%s or %s=%s", FlagNodes, formNodes, FlagDiscovery, formDiscovery)
	}
	s.Tags = unique(s.Tags)
	return s, nil
}

func parseNodes(text string) (Named, error) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 {
		return Named{}, fmt.Errorf("is not three parts with a colon between them")
	}
	least, err := strconv.Atoi(parts[0])
	if err != nil || least < 0 {
		return Named{}, fmt.Errorf("min %q is not a whole number of 0 or more", parts[0])
	}
	most, err := strconv.Atoi(parts[1])
	if err != nil || most < 0 {
		return Named{}, fmt.Errorf("max %q is not a whole number of 0 or more", parts[1])
	}
	if least > most {
		return Named{}, fmt.Errorf("min %d is greater than max %d", least, most)
	}
	if parts[2] == "" {
		return Named{}, fmt.Errorf("the name is empty")
	}
	return Named{Name: parts[2], Min: least, Max: most}, nil
}

func parseDiscovery(text string) ([]Tag, error) {
	list, ok := strings.CutPrefix(text, "asg:tag=")
	if !ok {
		return nil, fmt.Errorf(`does not begin with "asg:tag="`)
	}
	var tags []Tag
	for part := range strings.SplitSeq(list, ",") {
		key, value, hasValue := strings.Cut(strings.TrimSpace(part), "=")
		if key == "" {
			return nil, fmt.Errorf("has a tag without a key")
		}
		tags = append(tags, Tag{Key: key, Value: value, Any: !hasValue})
	}
	return tags, nil
}

func unique(tags []Tag) []Tag {
	slices.SortFunc(tags, func(a, b Tag) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(tags)
}

// filters asks for groups that carry all tags: AWS combines filters with AND.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_Filter.html
func filters(tags []Tag) []astypes.Filter {
	out := make([]astypes.Filter, 0, len(tags))
	for _, t := range tags {
		name, value := "tag:"+t.Key, t.Value
		if t.Any {
			name, value = "tag-key", t.Key
		}
		out = append(out, astypes.Filter{Name: &name, Values: []string{value}})
	}
	return out
}
