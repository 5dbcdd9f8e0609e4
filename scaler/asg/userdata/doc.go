// Package userdata reads what the user data of an EC2 instance sets for the node
// that it becomes: how many pods its kubelet takes, what it keeps for itself, and
// its labels and taints. It knows the forms that EKS images understand.
//
//	parse.go         Parse: base64, gzip, MIME parts, and which form it is
//	settings.go      Settings: the outcome
//	density.go       how many pods
//	shell.go         the words of a shell script
//	bootstrap.go     Amazon Linux 2: the arguments of bootstrap.sh
//	flags.go         flags of the kubelet, wherever they stand
//	nodeconfig.go    Amazon Linux 2023: NodeConfig
//	bottlerocket.go  Bottlerocket: TOML
//
// User data is written by others and read on every machine: whatever is in it,
// Parse ends soon and reports in words what it did not understand.
package userdata
