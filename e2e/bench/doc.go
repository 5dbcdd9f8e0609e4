// Package bench measures the whole product on a real control plane: how long
// it takes from what happens in the cluster or the cloud to what Windlass does
// about it. Run it with make bench; go test alone runs none of it.
//
// Each benchmark takes a fixed number of samples, once, whatever -benchtime
// says, and reports the middle and the worst. Times end where the effect is
// seen: in the fake AWS's log of calls, or in a watch on the API server.
package bench
