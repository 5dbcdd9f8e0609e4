// Package scaledown chooses the unneeded nodes. It may grow a group, for a replacement; no room asks
// it.
//
//	scaledown.go     what it needs of the other rooms
//	search.go        the search: candidates, and the scale-down of those whose time has come
//	eligible.go      why a node stays, but for want of places: its own rules, limits of its group
//	                 and of the cluster, headroom, what stops scale-down for now
//	choose.go        the joint choice; orders.go in which order; turns.go which zone gives the
//	                 next of several that are as good
//	empty.go         places for the pods of a node; destinationrows.go on nodes that are Ready
//	reserve.go       headroom that stays whole; adrift.go what pods that move may take of it
//	unneeded.go      the clocks of unneeded nodes, Ready or not; unready.go what is particular to those
//	                 that are not
//	atonce.go        how many go at once
//	excess.go        groups that are above desired
//	replace.go       some nodes for a cheaper one: the replacement under way; replaceseek.go which
//	                 may be replaced by which; replaceworth.go what is worth it
//	balance.go       what is saved against what it costs to move pods
//	steer.go         kube-scheduler fills the fullest nodes first
//	rebalance.go     Auto Scaling is kept from evening out zones that scale-down leaves uneven
//	searchshares.go  what the search may cost
package scaledown
