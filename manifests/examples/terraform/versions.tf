terraform {
  required_version = ">= 1.3"

  required_providers {
    aws = {
      source = "hashicorp/aws"
      # The first that knows aws_eks_pod_identity_association.
      version = ">= 5.29.0"
    }
  }
}
