# The scaler's role at AWS. Agents need none.

locals {
  irsa   = var.oidc_provider_arn != ""
  issuer = local.irsa ? split("oidc-provider/", var.oidc_provider_arn)[1] : ""

  # Either EKS Pod Identity or IAM roles for service accounts, for one account of one
  # namespace. With Pod Identity the association below names it.
  pod_identity_trust = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Principal = { Service = "pods.eks.amazonaws.com" }
    }]
  })
  irsa_trust = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRoleWithWebIdentity"
      Principal = { Federated = var.oidc_provider_arn }
      Condition = {
        StringEquals = {
          "${local.issuer}:aud" = "sts.amazonaws.com"
          "${local.issuer}:sub" = "system:serviceaccount:${var.namespace}:windlass-scaler"
        }
      }
    }]
  })
}

resource "aws_iam_role" "scaler" {
  name               = "${var.cluster_name}-windlass-scaler"
  assume_role_policy = local.irsa ? local.irsa_trust : local.pod_identity_trust
}

resource "aws_iam_role_policy" "scaler" {
  name   = "windlass-scaler"
  role   = aws_iam_role.scaler.name
  policy = replace(file("${path.module}/../../iam/scaler-policy.json"), "my-cluster", var.cluster_name)
}

# Only the flag --suspend-az-rebalance needs it.
resource "aws_iam_role_policy" "suspend_az_rebalance" {
  count  = var.suspend_az_rebalance ? 1 : 0
  name   = "windlass-scaler-suspend-az-rebalance"
  role   = aws_iam_role.scaler.name
  policy = replace(file("${path.module}/../../iam/suspend-az-rebalance.json"), "my-cluster", var.cluster_name)
}

resource "aws_eks_pod_identity_association" "scaler" {
  count           = local.irsa ? 0 : 1
  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = "windlass-scaler"
  role_arn        = aws_iam_role.scaler.arn
}

output "scaler_role_arn" {
  description = "For SCALER_ROLE_ARN in manifests/settings.env, with the component eks-irsa."
  value       = aws_iam_role.scaler.arn
}
