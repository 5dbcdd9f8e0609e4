//go:build plane

// Plane is etcd, the Kubernetes programs and kwok in one: it is whichever it is called by the
// name of. They are linked once, and share most of what they are made of.
//
// The tag keeps it out of `go vet ./...` and the like, which would compile all of Kubernetes for it.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // time zones of CronJobs

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"
)

// programs are those that there are, each with what it does and the status that it ends with.
var programs = map[string]func() int{
	"etcd":                    runEtcd,
	"kube-apiserver":          runs(apiserver.NewAPIServerCommand),
	"kube-controller-manager": runs(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          runs(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kwok":                    runKwok,
}

func main() {
	run, known := programs[filepath.Base(os.Args[0])]
	if !known {
		fmt.Fprintf(os.Stderr, "plane: call it by one of these names: %s\n", strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
		os.Exit(2)
	}
	os.Exit(run())
}

func runs(command func() *cobra.Command) func() int {
	return func() int { return cli.Run(command()) }
}

func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

// runKwok takes two sets of flags out of the same arguments: its configuration has to be read before
// its command is made. The flags that Kubernetes' libraries have for all programs are not its own.
func runKwok() int {
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ExitOnError)
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, log := kwoklog.InitFlags(kwoksignals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		log.Error("reading the configuration", "err", err)
		return 1
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		log.Error("ended", "err", err)
		return 1
	}
	return 0
}
