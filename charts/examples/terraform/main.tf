# Windlass by Terraform: a group with its lifecycle hook and the scaler's role, by the module
# of manifests/examples, and the chart, by Terraform's helm provider.

module "aws" {
  source = "../../../manifests/examples/terraform"

  cluster_name              = var.cluster_name
  ami_id                    = var.ami_id
  subnet_ids                = var.subnet_ids
  security_group_ids        = var.security_group_ids
  node_instance_profile_arn = var.node_instance_profile_arn
  oidc_provider_arn         = var.oidc_provider_arn
  namespace                 = var.namespace
}

resource "helm_release" "windlass" {
  name             = "windlass"
  chart            = "${path.module}/../../windlass"
  namespace        = var.namespace
  create_namespace = true

  # JSON is YAML, too.
  values = [jsonencode({
    autoDiscovery = { clusterName = var.cluster_name }
    image         = { registry = var.registry }
    roleArn       = module.aws.scaler_role_arn
    components = {
      eksIrsa        = var.oidc_provider_arn != ""
      eksPodIdentity = var.oidc_provider_arn == ""
    }
    extraArgs = var.scaler_flags
  })]

  # Pods that were there before their role was get none.
  depends_on = [module.aws]
}
