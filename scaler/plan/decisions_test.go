package plan_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"reflect"
	"sync"

	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
)

// hashDecisions has a run of tests print a hash of all that was decided in it, texts aside:
// it is the same after a change that means to alter none.
var hashDecisions = flag.Bool("decisions", false, "print a hash of all actions that were decided")

// decisions is what was decided so far. The sum of hashes has no order, as tests have none.
var decisions struct {
	sync.Mutex
	count int
	sum   uint64
}

// noteDecision adds a plan to the hash.
func noteDecision(got plan.Plan) {
	if !*hashDecisions {
		return
	}
	text := fmt.Sprint(got.Wake.UnixNano())
	for _, a := range got.Actions {
		text += "\n" + withoutTexts(a)
	}
	h := sha256.Sum256([]byte(text))
	decisions.Lock()
	defer decisions.Unlock()
	decisions.count++
	decisions.sum += binary.BigEndian.Uint64(h[:])
}

// withoutTexts is an action by its type's own name and its fields, but for what is said to
// people.
func withoutTexts(a action.Action) string {
	fields := map[string]any{}
	v := reflect.ValueOf(a)
	for i := range v.NumField() {
		switch name := v.Type().Field(i).Name; name {
		case "Why", "For", "Message", "Text":
		default:
			fields[name] = v.Field(i).Interface()
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return v.Type().Name() + string(text)
}

func printDecisions() {
	if *hashDecisions {
		fmt.Printf("%d decisions, hash %016x\n", decisions.count, decisions.sum)
	}
}
