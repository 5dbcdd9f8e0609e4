terraform {
  required_version = ">= 1.3"

  required_providers {
    aws = {
      source = "hashicorp/aws"
      # The first in which an instance refresh can replace protected instances.
      version = ">= 5.16.2"
    }
  }
}
