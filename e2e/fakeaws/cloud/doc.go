// Package cloud is the state of the fake AWS: Auto Scaling groups whose instances boot, serve and leave.
//
// It is a machine without a clock, a goroutine or a network: every call takes the time, Advance carries out what is due by then, and Next tells when
// something will be. Whoever drives it holds a lock around each call and delivers what TakeEvents returns. So the same machine runs against the real
// clock under a server and against a synthetic one in a test.
//
//	spec.go       what exists at the start (YAML)          defaults.go  its defaults and checks
//	state.go      lifecycle states, Instance               instance.go  an instance with what its snapshots do not show
//	errors.go     errors as AWS words them
//	cloud.go      Cloud: time, ids, look-ups               group.go     desired capacity, reconciling
//	launch.go     zones, types, capacity (and launchinstances.go)  terminate.go victims and leaving
//	phases.go     Pending and Terminating with their hooks hooks.go     lifecycle actions
//	warmpool.go   warm pools                               replace.go   launch before terminate: AZ rebalance, capacity rebalance
//	refresh.go    instance refresh                         notices.go   spot, rebalance and maintenance, as the metadata service shows them
//	moves.go      health, protection, power, standby, detaching, any forced state
//	activity.go   scaling activities                       templates.go launch templates, images, what a group launches
package cloud
