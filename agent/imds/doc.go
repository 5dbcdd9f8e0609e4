// Package imds reads the notices that EC2 leaves in the instance metadata
// (IMDSv2, never IMDSv1).
//
//	client.go   one path, read within two seconds and 64 KiB
//	watcher.go  every path of notice.Sources at its pace, and what they say
//	path.go     one of these paths, and what it said last
//	clock.go    how far this node's clock is from that of the metadata
//
// Each path is read by a goroutine of its own, so that one that hangs delays no other. What
// ends a notice, and after how many answers, stands in package notice.
//
// Facts: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-metadata.html
package imds
