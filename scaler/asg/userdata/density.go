package userdata

import (
	"errors"
	"fmt"
	"path"
	"strconv"

	"github.com/google/cel-go/cel"
)

// Density is how many pods a kubelet takes. The zero value is what EKS images do
// by themselves: as many as find an address on the instance's interfaces.
type Density struct {
	// Most is a figure; 0 where none is given.
	Most int64
	// PerCore bounds it by the cores; 0 does not.
	PerCore int64
	// Unlimited is true if interfaces do not count: the kubelet's own default holds.
	Unlimited bool
	// Expression is a CEL expression of nodeadm over default_enis, ips_per_eni and
	// max_pods.
	// https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/#kubeletoptions
	Expression string
	// Calculator is a call of max-pods-calculator.sh; nil where there is none.
	Calculator *Calculator
}

// Machine is what an instance type has to do with pods.
type Machine struct {
	Cores int64
	// Interfaces of the default network card, and IPv4 addresses of each.
	Interfaces, Addresses int64
	// Nitro machines alone take prefixes.
	Nitro bool
}

// Limits of Kubernetes and AWS.
const (
	// kubeletPods is the kubelet's own default.
	kubeletPods = 110
	// With prefixes there are more addresses than a node can serve: AWS advises
	// against more pods than these, by cores.
	// https://docs.aws.amazon.com/eks/latest/userguide/choosing-instance-type.html
	fewPods, manyPods = 110, 250
	manyCores         = 30
	// prefix is how many addresses a prefix of /28 has.
	prefix = 16
	// hostPods use the host's address.
	hostPods = 2
)

// byInterfaces is how many pods find an address: each interface has one for
// itself.
func (m Machine) byInterfaces() int64 {
	return max(0, m.Interfaces*(m.Addresses-1)) + hostPods
}

// Pods is how many pods a node takes, and by how many the image reckons what the kubelet
// keeps of the memory: the two differ where a figure is given, because the scripts of Amazon
// Linux do not read it. An error names an expression that sets nothing; the figures hold all
// the same.
func (s Settings) Pods(m Machine) (pods, reserving int64, err error) {
	reserving = m.byInterfaces()
	d := s.Density
	switch {
	case d.Expression != "":
		if n, wrong := evaluate(d.Expression, m); wrong == nil {
			reserving = n
		} else {
			err = fmt.Errorf("user data: maxPodsExpression %q is left out: %w", d.Expression, wrong)
		}
		pods = reserving
	case d.Calculator != nil:
		pods = d.Calculator.pods(m)
	case d.Unlimited:
		pods = kubeletPods
	default:
		pods = reserving
	}
	if d.Most > 0 {
		pods = d.Most
	}
	if d.PerCore > 0 {
		pods = min(pods, d.PerCore*m.Cores)
	}
	if s.Family == Bottlerocket {
		reserving = pods
	}
	return pods, reserving, err
}

// dearest is what an expression may cost, in CEL's own units: sums and products
// cost a handful.
const dearest = 10_000

// evaluate computes an expression as nodeadm does.
func evaluate(expression string, m Machine) (int64, error) {
	env, err := cel.NewEnv(cel.Variable("default_enis", cel.IntType), cel.Variable("ips_per_eni", cel.IntType), cel.Variable("max_pods", cel.IntType))
	if err != nil {
		return 0, err
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return 0, issues.Err()
	}
	program, err := env.Program(ast, cel.CostLimit(dearest))
	if err != nil {
		return 0, err
	}
	value, _, err := program.Eval(map[string]any{"default_enis": m.Interfaces, "ips_per_eni": m.Addresses, "max_pods": m.byInterfaces()})
	if err != nil {
		return 0, err
	}
	n, ok := value.ConvertToType(cel.IntType).Value().(int64)
	if !ok || n <= 0 || n > 1<<31-1 {
		return 0, errors.New("it gives no positive number")
	}
	return n, nil
}

// Calculator has the options of a call of max-pods-calculator.sh.
// https://docs.aws.amazon.com/eks/latest/userguide/choosing-instance-type.html#determine-max-pods
type Calculator struct {
	Prefixes bool
	// Custom networking takes the first interface from the pods.
	CustomNetworking bool
	// Uncapped shows what is possible beyond what is advised.
	Uncapped bool
	// MaxInterfaces bounds the interfaces; 0 does not.
	MaxInterfaces int64
}

func (c Calculator) pods(m Machine) int64 {
	interfaces := m.Interfaces
	if c.MaxInterfaces > 0 {
		interfaces = min(interfaces, c.MaxInterfaces)
	}
	if c.CustomNetworking {
		interfaces--
	}
	each := m.Addresses - 1
	if c.Prefixes && m.Nitro {
		each *= prefix
	}
	pods := max(0, interfaces*each) + hostPods
	switch {
	case c.Uncapped:
		return pods
	case m.Cores > manyCores:
		return min(pods, manyPods)
	}
	return min(pods, fewPods)
}

// calculatorScript prints how many pods a node may take.
const calculatorScript = "max-pods-calculator.sh"

// calculator recognises $(…/max-pods-calculator.sh …) as a value.
func (s *Settings) calculator(text string) bool {
	if len(text) < len("$()") || text[:2] != "$(" {
		return false
	}
	all, err := commands(text[2 : len(text)-1])
	if err != nil || len(all) != 1 || len(all[0]) == 0 || path.Base(all[0][0].text) != calculatorScript {
		return false
	}
	var c Calculator
	args := all[0][1:]
	for i, arg := range args {
		switch arg.text {
		case "--cni-prefix-delegation-enabled":
			c.Prefixes = true
		case "--cni-custom-networking-enabled":
			c.CustomNetworking = true
		case "--show-max-allowed":
			c.Uncapped = true
		case "--cni-max-eni":
			if i+1 < len(args) {
				c.MaxInterfaces, _ = strconv.ParseInt(args[i+1].text, 10, 32) // what is no number bounds nothing
			}
		}
	}
	s.Density.Calculator = &c
	return true
}
