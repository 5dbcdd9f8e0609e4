package e2e

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"windlass.dev/windlass/e2e/fakegrpc"
	"windlass.dev/windlass/scaler/externalgrpc/protocol"
)

// provider gives the external provider a command; testdata/README.md lists them.
func (s *session) provider(_ *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil || s.w.Provider == nil {
		return errors.New("the world has no external provider: set provider: true")
	}
	if len(args) > 1 && args[0] == "calls" {
		return s.providerCalls(neg, args[1:])
	}
	switch words := strings.Join(args, " "); {
	case neg:
	case words == "away":
		s.w.Provider.Stop()
		return nil
	case words == "back":
		return s.w.Provider.Serve()
	case words == "mend":
		s.w.Provider.Break(fakegrpc.Faults{})
		return nil
	case len(args) > 1 && args[0] == "lie":
		faults, err := lie(args[1:])
		if err == nil {
			s.w.Provider.Break(faults)
		}
		return err
	}
	return errors.New("usage: provider away|back|mend|lie ...|calls ...")
}

// lie is what is wrong with answers.
func lie(args []string) (fakegrpc.Faults, error) {
	if args[0] == "template" {
		return fakegrpc.Faults{Template: []byte("no Node")}, nil
	}
	if len(args) < 2 {
		return fakegrpc.Faults{}, fmt.Errorf("lie %s: of which group?", args[0])
	}
	change := func(change func(g *fakegrpc.Group, all []fakegrpc.Group)) fakegrpc.Faults {
		return fakegrpc.Faults{Lie: func(groups []fakegrpc.Group) []fakegrpc.Group {
			for i := range groups {
				if groups[i].Name == args[1] {
					change(&groups[i], groups)
				}
			}
			return groups
		}}
	}
	switch {
	case args[0] == "size" && len(args) == 3:
		n, err := strconv.Atoi(args[2])
		return change(func(g *fakegrpc.Group, _ []fakegrpc.Group) { g.Target = n }), err
	case args[0] == "stranger":
		return change(func(g *fakegrpc.Group, _ []fakegrpc.Group) {
			g.Instances, g.Target = append(g.Instances, fakegrpc.Running("lab://nobody-knows")), g.Target+1
		}), nil
	case args[0] == "error":
		return change(func(g *fakegrpc.Group, _ []fakegrpc.Group) {
			i := fakegrpc.Running("lab://never-comes")
			i.Status = &protocol.InstanceStatus{InstanceState: protocol.InstanceStatus_instanceCreating, ErrorInfo: &protocol.InstanceErrorInfo{ErrorCode: "OutOfBoxes", ErrorMessage: "all racks are full"}}
			g.Instances, g.Target = append(g.Instances, i), g.Target+1
		}), nil
	case args[0] == "twice" && len(args) == 3:
		return change(func(g *fakegrpc.Group, all []fakegrpc.Group) {
			for i := range all {
				if all[i].Name == args[2] {
					all[i].Instances, all[i].Target = append(all[i].Instances, g.Instances...), all[i].Target+len(g.Instances)
				}
			}
		}), nil
	}
	return fakegrpc.Faults{}, fmt.Errorf("lie %s: no such lie", strings.Join(args, " "))
}

// providerCalls counts calls, or waits for one: [await] NAME [node!~REGEXP] [count==N|count<=N], where
// node is what names each of the call's nodes.
func (s *session) providerCalls(neg bool, args []string) error {
	waits := args[0] == "await"
	if waits {
		args = args[1:]
	}
	if len(args) == 0 || neg && waits {
		return errors.New("usage: [!] provider calls [await] NAME [node!~REGEXP] [count==N|count<=N]")
	}
	name, least, most := args[0], 1, math.MaxInt
	except := regexp.MustCompile("^$")
	for _, word := range args[1:] {
		var err error
		switch pattern, excepts := strings.CutPrefix(word, "node!~"); {
		case excepts:
			except, err = regexp.Compile(pattern)
		case strings.HasPrefix(word, "count<="):
			_, err = fmt.Sscanf(word, "count<=%d", &most)
		default:
			_, err = fmt.Sscanf(word, "count==%d", &most)
			least = most
		}
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	is := func(c fakegrpc.Call) bool {
		return c.Name == name && !slices.ContainsFunc(c.Nodes, func(n *protocol.ExternalGrpcNode) bool { return except.MatchString(n.GetProviderID()) })
	}
	if waits {
		if err := s.w.Provider.Await(s.ctx, is); err != nil {
			return fmt.Errorf("no call %s: %w", name, err)
		}
	}
	found := 0
	for _, c := range s.w.Provider.Calls() {
		if is(c) {
			found++
		}
	}
	if (least <= found && found <= most) == neg {
		return fmt.Errorf("%d calls: %s", found, strings.Join(args, " "))
	}
	return nil
}
