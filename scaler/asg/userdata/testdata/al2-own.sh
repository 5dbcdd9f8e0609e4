#!/bin/bash -xe
# It's a comment with a quote, which opens nothing.
MAX_PODS=$(/etc/eks/max-pods-calculator.sh --instance-type-from-imds --cni-version 1.18.0 \
  --cni-prefix-delegation-enabled --cni-custom-networking-enabled)
cat > /etc/motd <<EOT
Don't run /etc/eks/bootstrap.sh by hand.
EOT
RESERVED="--kube-reserved=cpu=250m,memory=1Gi --system-reserved cpu=100m"
/etc/eks/bootstrap.sh "${CLUSTER_NAME}" \
  --use-max-pods false --local-disks raid0 \
  --kubelet-extra-args "--max-pods=${MAX_PODS} $RESERVED --eviction-hard=memory.available<500Mi,nodefs.available<5% --node-labels=lifecycle=spot --register-with-taints=spot=true:PreferNoSchedule,gpu:NoExecute"
