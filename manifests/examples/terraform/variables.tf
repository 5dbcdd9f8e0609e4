# What a cluster must say about itself. An EKS cluster, its subnets and the role of its
# nodes are taken to be there.

variable "cluster_name" {
  description = "Name of the EKS cluster: also CLUSTER_NAME in manifests/settings.env, and in the tags by which the scaler finds groups."
  type        = string
}

variable "group_name" {
  description = "Name of the Auto Scaling group."
  type        = string
  default     = "general"
}

variable "instance_type" {
  description = "Type of the group's instances."
  type        = string
  default     = "m7i.large"
}

variable "ami_id" {
  description = "An image of Amazon Linux 2023 for EKS, of the cluster's version and the type's architecture."
  type        = string
}

variable "subnet_ids" {
  description = "Subnets of the nodes. Volumes and zone spreads are cheapest to serve with one in each zone."
  type        = list(string)
}

variable "security_group_ids" {
  description = "Security groups of the nodes, among them the cluster's own."
  type        = list(string)
}

variable "node_instance_profile_arn" {
  description = "Instance profile of the nodes. Its role needs an access entry of the type EC2_LINUX at the cluster."
  type        = string
}

variable "max_size" {
  description = "The most instances that the scaler may ask for."
  type        = number
  default     = 10
}

variable "node_labels" {
  description = "Labels of the group's nodes."
  type        = map(string)
  default     = { pool = "general" }
}

variable "oidc_provider_arn" {
  description = "The cluster's OIDC provider at IAM, for IAM roles for service accounts; empty for EKS Pod Identity."
  type        = string
  default     = ""
}

variable "namespace" {
  description = "Namespace of the scaler: that in manifests/kustomization.yaml."
  type        = string
  default     = "windlass-system"
}

variable "suspend_az_rebalance" {
  description = "Give the scaler the right that its flag --suspend-az-rebalance needs."
  type        = bool
  default     = false
}
