package api

import (
	"fmt"

	"windlass.dev/windlass/e2e/fakeaws/catalog"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

// eks are the operations of EKS. The parts of the path come in as parameters.
var eks = map[string]Handler{
	"DescribeCluster":   describing(describeCluster),
	"DescribeNodegroup": describing(describeNodegroup),
}

type eksNodegroup struct {
	NodegroupName  string            `json:"nodegroupName"`
	NodegroupARN   string            `json:"nodegroupArn"`
	ClusterName    string            `json:"clusterName"`
	Version        string            `json:"version"`
	ReleaseVersion string            `json:"releaseVersion"`
	CreatedAt      float64           `json:"createdAt"` // seconds
	Status         string            `json:"status"`
	CapacityType   string            `json:"capacityType"`
	ScalingConfig  eksScaling        `json:"scalingConfig"`
	InstanceTypes  []string          `json:"instanceTypes,omitempty"`
	Subnets        []string          `json:"subnets"`
	AMIType        string            `json:"amiType"`
	NodeRole       string            `json:"nodeRole"`
	Labels         map[string]string `json:"labels,omitempty"`
	Taints         []cloud.Taint     `json:"taints,omitempty"`
	Resources      eksResources      `json:"resources"`
	DiskSize       int               `json:"diskSize,omitempty"`
	Tags           map[string]string `json:"tags,omitempty"`
}

type eksScaling struct {
	MinSize     int `json:"minSize"`
	MaxSize     int `json:"maxSize"`
	DesiredSize int `json:"desiredSize"`
}

type eksResources struct {
	AutoScalingGroups []eksGroup `json:"autoScalingGroups"`
}

type eksGroup struct {
	Name string `json:"name"`
}

type eksCluster struct {
	Name               string  `json:"name"`
	ARN                string  `json:"arn"`
	CreatedAt          float64 `json:"createdAt"` // seconds
	Version            string  `json:"version"`
	PlatformVersion    string  `json:"platformVersion"`
	RoleARN            string  `json:"roleArn"`
	Status             string  `json:"status"`
	ResourcesVPCConfig eksVPC  `json:"resourcesVpcConfig"`
}

type eksVPC struct {
	SubnetIDs []string `json:"subnetIds"`
	VPCID     string   `json:"vpcId"`
}

// describeCluster answers a cluster that has a managed node group, in the version of the first.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html
func describeCluster(c *cloud.Cloud, v wire.Values) (any, error) {
	name := v.Get("name")
	for _, g := range c.Groups() {
		n := g.Spec.EKS
		if n == nil || n.Cluster != name {
			continue
		}
		shape := eksCluster{
			Name: name, ARN: ClusterARN(c, name), CreatedAt: float64(c.Started().Unix()), Version: or(n.Version, kubernetes), PlatformVersion: "eks.1",
			RoleARN: "arn:aws:iam::" + c.Account() + ":role/cluster", Status: "ACTIVE", ResourcesVPCConfig: eksVPC{VPCID: vpcID},
		}
		for _, zone := range c.Zones() {
			shape.ResourcesVPCConfig.SubnetIDs = append(shape.ResourcesVPCConfig.SubnetIDs, cloud.SubnetOf(zone))
		}
		return map[string]any{"cluster": shape}, nil
	}
	return nil, noCluster(name)
}

func noCluster(name string) error {
	return cloud.Errorf(404, "ResourceNotFoundException", "No cluster found for name: %s.", name)
}

// ClusterARN names a cluster to IAM.
func ClusterARN(c *cloud.Cloud, name string) string {
	return fmt.Sprintf("arn:aws:eks:%s:%s:cluster/%s", c.Region(), c.Account(), name)
}

// kubernetes is the version of clusters and node groups that name none.
const kubernetes = "1.36"

// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeNodegroup.html
func describeNodegroup(c *cloud.Cloud, v wire.Values) (any, error) {
	cluster, name := v.Get("clusterName"), v.Get("nodegroupName")
	clusterSeen := false
	for _, g := range c.Groups() {
		n := g.Spec.EKS
		if n == nil || n.Cluster != cluster {
			continue
		}
		clusterSeen = true
		if n.Name == name {
			return map[string]any{"nodegroup": nodegroupShape(c, g)}, nil
		}
	}
	if !clusterSeen {
		return nil, noCluster(cluster)
	}
	return nil, cloud.Errorf(404, "ResourceNotFoundException", "No node group found for name: %s.", name)
}

// NodegroupARN names a managed node group to IAM, by the id that this fake gives to all.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html
func NodegroupARN(c *cloud.Cloud, cluster, name string) string {
	return fmt.Sprintf("arn:aws:eks:%s:%s:nodegroup/%s/%s/00000000-0000-0000-0000-000000000000", c.Region(), c.Account(), cluster, name)
}

func nodegroupShape(c *cloud.Cloud, g cloud.GroupStatus) eksNodegroup {
	n := g.Spec.EKS
	types, spot, disk := c.Offered(g.Spec.Name)
	shape := eksNodegroup{
		NodegroupName: n.Name, ClusterName: n.Cluster,
		NodegroupARN: NodegroupARN(c, n.Cluster, n.Name), Version: or(n.Version, kubernetes), CreatedAt: float64(g.Created.Unix()), Status: "ACTIVE", CapacityType: "ON_DEMAND",
		ScalingConfig: eksScaling{MinSize: g.Min, MaxSize: g.Max, DesiredSize: g.Desired},
		NodeRole:      "arn:aws:iam::" + c.Account() + ":role/node", Labels: n.Labels, Taints: n.Taints, Tags: n.Tags, InstanceTypes: types, DiskSize: disk,
		Resources: eksResources{AutoScalingGroups: []eksGroup{{Name: g.Spec.Name}}}, AMIType: or(n.AMIType, "AL2023_x86_64_STANDARD"),
	}
	shape.ReleaseVersion = shape.Version + ".0-20260801"
	if spot {
		shape.CapacityType = "SPOT"
	}
	if t, ok := catalog.Lookup(types[0]); ok && t.Arch == catalog.ARM && n.AMIType == "" {
		shape.AMIType = "AL2023_ARM_64_STANDARD"
	}
	for _, z := range g.Spec.Zones {
		shape.Subnets = append(shape.Subnets, cloud.SubnetOf(z))
	}
	return shape
}
