package userdata

import (
	"path"
	"strings"
)

// bootstrapScript is how Amazon Linux 2 joins a cluster.
// https://github.com/awslabs/amazon-eks-ami/blob/v20251112/templates/al2/runtime/bootstrap.sh
const bootstrapScript = "bootstrap.sh"

// script reads a shell script: what it hands to bootstrap.sh. Of a script that
// calls no such thing nothing is known, and no fault is reported.
func (s *Settings) script(text string) {
	if !strings.Contains(text, bootstrapScript) {
		return
	}
	s.Family = AmazonLinux
	all, err := commands(text)
	if err != nil {
		s.fault("the script that calls %s is not read: %v; what EKS images do by themselves is assumed", bootstrapScript, err)
		return
	}
	for _, words := range all {
		for i, w := range words {
			if path.Base(w.text) == bootstrapScript {
				s.bootstrap(words[i+1:])
				break
			}
		}
	}
}

// bootstrap reads the arguments. Each option but help has a value of its own.
func (s *Settings) bootstrap(args []word) {
	for i := 0; i+1 < len(args); i++ {
		option, value := args[i].text, args[i+1]
		if !strings.HasPrefix(option, "--") {
			continue // the cluster's name
		}
		i++
		switch option {
		case "--use-max-pods":
			if value.text != "true" && !value.open {
				s.Density.Unlimited = true
			}
		case "--kubelet-extra-args":
			s.extraArgs(value.text)
		case "--local-disks":
			s.localDisks(value.text)
		}
	}
}

// extraArgs reads flags of the kubelet that stand in one word.
func (s *Settings) extraArgs(text string) {
	words, err := split(text)
	if err != nil {
		s.fault("--kubelet-extra-args are left out: %v", err)
		return
	}
	s.kubeletFlags(words)
}

func (s *Settings) localDisks(strategy string) {
	switch disks := Disks(strings.ToLower(strategy)); disks {
	case RAID0, RAID10:
		s.LocalDisks = disks
	}
}
