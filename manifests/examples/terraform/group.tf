# A group for Windlass: launch template, Auto Scaling group and lifecycle hook.

data "aws_eks_cluster" "this" {
  name = var.cluster_name
}

resource "aws_launch_template" "nodes" {
  name_prefix            = "${var.group_name}-"
  image_id               = var.ami_id
  instance_type          = var.instance_type
  vpc_security_group_ids = var.security_group_ids

  iam_instance_profile {
    arn = var.node_instance_profile_arn
  }

  metadata_options {
    http_tokens = "required"
    # Pods on a network of their own are kept from the node's credentials. The agent is on
    # its host's network, and needs no more.
    http_put_response_hop_limit = 1
  }

  # The scaler reads this, too: labels, taints and the kubelet's flags of nodes to come.
  user_data = base64encode(<<-EOT
    MIME-Version: 1.0
    Content-Type: multipart/mixed; boundary="//"

    --//
    Content-Type: application/node.eks.aws

    apiVersion: node.eks.aws/v1alpha1
    kind: NodeConfig
    spec:
      cluster:
        name: ${var.cluster_name}
        apiServerEndpoint: ${data.aws_eks_cluster.this.endpoint}
        certificateAuthority: ${data.aws_eks_cluster.this.certificate_authority[0].data}
        cidr: ${data.aws_eks_cluster.this.kubernetes_network_config[0].service_ipv4_cidr}
      kubelet:
        flags:
          - --node-labels=${join(",", [for key, value in var.node_labels : "${key}=${value}"])}
    --//--
  EOT
  )
}

resource "aws_autoscaling_group" "nodes" {
  name                = var.group_name
  min_size            = 0
  max_size            = var.max_size
  vpc_zone_identifier = var.subnet_ids

  launch_template {
    id = aws_launch_template.nodes.id
    # Not "$Latest", of which no instance refresh hears.
    version = aws_launch_template.nodes.latest_version
  }

  # Who leaves is the scaler's choice alone, also when desired capacity is lowered.
  protect_from_scale_in = true

  # The scaler chooses zones by what pods need; Auto Scaling would even them out again.
  suspended_processes = ["AZRebalance"]

  instance_refresh {
    strategy = "Rolling"
    preferences {
      # Without this a refresh passes over protected instances, which are all: the
      # provider's default is Ignore. (AWS's own is Wait, which fails after an hour.) Each
      # instance is drained like any other that Auto Scaling ends.
      scale_in_protected_instances = "Refresh"
    }
  }

  # The scaler finds the group by these two, and may change it by the second.
  tag {
    key                 = "k8s.io/cluster-autoscaler/enabled"
    value               = "true"
    propagate_at_launch = false
  }
  tag {
    key                 = "k8s.io/cluster-autoscaler/${var.cluster_name}"
    value               = "owned"
    propagate_at_launch = false
  }
  tag {
    key                 = "kubernetes.io/cluster/${var.cluster_name}"
    value               = "owned"
    propagate_at_launch = true
  }

  # What nodes will look like, for whoever cannot read it in the user data.
  dynamic "tag" {
    for_each = var.node_labels
    content {
      key                 = "k8s.io/cluster-autoscaler/node-template/label/${tag.key}"
      value               = tag.value
      propagate_at_launch = false
    }
  }

  lifecycle {
    # How many there are is for the scaler to say.
    ignore_changes = [desired_capacity]
  }
}

# Holds an instance that Auto Scaling ends until its node is drained.
resource "aws_autoscaling_lifecycle_hook" "windlass" {
  name                   = "windlass"
  autoscaling_group_name = aws_autoscaling_group.nodes.name
  lifecycle_transition   = "autoscaling:EC2_INSTANCE_TERMINATING"
  # Where the scaler is gone for good, the instance goes all the same.
  default_result = "CONTINUE"
  # Seconds: not less than the scaler's --termination-drain-time.
  heartbeat_timeout = 600
}
