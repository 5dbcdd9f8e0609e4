variable "cluster_name" {
  description = "Name of the EKS cluster, and in the tags by which the scaler finds groups."
  type        = string
}

variable "registry" {
  description = "Where the images are, as registry.example.com/windlass."
  type        = string
}

variable "scaler_flags" {
  description = "Flags of the scaler by their names without dashes: extraArgs of the chart."
  type        = any
  default     = { expander = "price,least-waste" }
}

variable "namespace" {
  description = "Namespace of Windlass."
  type        = string
  default     = "windlass-system"
}

variable "ami_id" {
  description = "An image of Amazon Linux 2023 for EKS, of the cluster's version."
  type        = string
}

variable "subnet_ids" {
  description = "Subnets of the nodes."
  type        = list(string)
}

variable "security_group_ids" {
  description = "Security groups of the nodes, among them the cluster's own."
  type        = list(string)
}

variable "node_instance_profile_arn" {
  description = "Instance profile of the nodes."
  type        = string
}

variable "oidc_provider_arn" {
  description = "The cluster's OIDC provider at IAM, for IAM roles for service accounts; empty for EKS Pod Identity."
  type        = string
  default     = ""
}
