package statuspage

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func read(packed []byte) (Verdicts, error) {
	return ReadVerdicts(&corev1.ConfigMap{BinaryData: map[string][]byte{VerdictsKey: packed}})
}

// What is written within bounds is read as it was.
func TestVerdictsRoundTrip(t *testing.T) {
	text := rapid.StringN(0, 40, 120)
	said := rapid.Custom(func(t *rapid.T) Verdict {
		v := Verdict{Reason: Reason(text.Draw(t, "reason"))}
		for range rapid.IntRange(0, 3).Draw(t, "details") {
			d := Detail{Text: text.Draw(t, "text")}
			if rapid.Bool().Draw(t, "params") {
				d.Params = map[string]any{"pod": text.Draw(t, "pod"), "left": 3.0, "budgets": []any{"shop/api"}}
			}
			v.Details = append(v.Details, d)
		}
		return v
	})
	rapid.Check(t, func(t *rapid.T) {
		want := Verdicts{Prices: Prices{text.Draw(t, "source"), 0.4, time.Unix(7, 0).UTC(), text.Draw(t, "note")}}
		for i := range rapid.IntRange(0, 5).Draw(t, "nodes") {
			want.Nodes = append(want.Nodes, Node{Name: fmt.Sprint(i), Group: "web", PricePerHour: 0.1, Verdict: said.Draw(t, "said")})
			want.Groups = append(want.Groups, Group{Name: fmt.Sprint(i), Max: i, BackOffs: []BackOff{{Cause: "c", Until: time.Unix(int64(i), 0).UTC()}}, Verdict: said.Draw(t, "said")})
			want.Pods = append(want.Pods, Pods{Count: i, Names: []string{"a/b"}, Verdict: said.Draw(t, "said")})
		}
		packed, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(packed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(toJSON(want), toJSON(got)); diff != "" {
			t.Fatal(diff)
		}
		again, err := want.Encode()
		if err != nil || !bytes.Equal(packed, again) {
			t.Fatalf("the same verdicts gave other bytes, error %v", err)
		}
	})
}

func toJSON(v Verdicts) string {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		panic(err)
	}
	return strings.ReplaceAll(string(text), `null`, `[]`)
}

// hard are verdicts of which no two say the same, so that they do not compress.
func hard(nodes, pods, names int, of func(i int) string) Verdicts {
	var v Verdicts
	for i := range nodes {
		v.Nodes = append(v.Nodes, Node{Name: "ip-" + noise(12)(i), Verdict: Verdict{Reason: "R", Details: []Detail{{of(i), map[string]any{"pod": of(-i - 1)}}}}})
	}
	for i := range pods {
		line := Pods{Count: pods - i, Verdict: Verdict{Reason: "R", Details: []Detail{{Text: of(i)}}}}
		for j := range names {
			line.Names = append(line.Names, "default/p-"+noise(10)(i*1000+j))
		}
		v.Pods = append(v.Pods, line)
	}
	v.Groups = []Group{{Name: "web"}}
	return v
}

// noise is text of so many bytes that does not compress.
func noise(bytes int) func(int) string {
	return func(i int) string {
		var b strings.Builder
		for x := uint64(i)*0x9E3779B97F4A7C15 + 1; b.Len() < bytes; {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			fmt.Fprintf(&b, "%x", x)
		}
		return b.String()[:bytes]
	}
}

// Whatever there is, it has room, can be read again, and what was left out is counted, in
// the order that is promised.
func TestVerdictsHaveBounds(t *testing.T) {
	all := func(n int) func(int) string { return func(int) string { return strings.Repeat("\x01", n) } }
	for _, c := range []struct {
		what string
		of   Verdicts
		want func(Omitted) bool
	}{
		{"little", hard(100, 10, 20, noise(50)), func(o Omitted) bool { return o == Omitted{} }},
		{"names of pods", hard(500, 300, 500, noise(50)), func(o Omitted) bool { return o == Omitted{PodNames: 300 * 490} }},
		{"what details speak of", hard(8_000, 10, 20, noise(100)), func(o Omitted) bool {
			return o.PodNames == 100 && o.PodClasses == 0 && o.Params == 8_000 && o.Messages == 0
		}},
		{"messages", hard(8_000, 10, 5, noise(900)), func(o Omitted) bool { return o.Params == 8_000 && o.Messages == 8_000 && o.Nodes == 0 }},
		{"classes", hard(10, 20_000, 1, noise(200)), func(o Omitted) bool { return o.PodClasses > 0 && o.Nodes == 0 && o.Groups == 0 }},
		{"nodes", hard(150_000, 0, 0, noise(900)), func(o Omitted) bool { return o.Messages == 150_000 && o.Nodes > 0 && o.Nodes < 150_000 }},
		{"classes before what details speak of", hard(6_000, 9_000, 1, noise(60)), func(o Omitted) bool { return o.PodClasses > 0 && o.Params == 0 }},
		{"what JSON has to spell out", hard(20_000, 0, 0, all(3_000)), func(o Omitted) bool { return o.Params == 20_000 }},
	} {
		t.Run(strings.ReplaceAll(c.what, " ", "_"), func(t *testing.T) {
			packed, err := c.of.Encode()
			if err != nil || len(packed) > MaxVerdictBytes {
				t.Fatalf("%d bytes, error %v", len(packed), err)
			}
			got, err := read(packed)
			if err != nil {
				t.Fatal(err)
			}
			if !c.want(got.Omitted) {
				t.Errorf("omitted %+v in %d bytes", got.Omitted, len(packed))
			}
			if len(got.Nodes)+got.Omitted.Nodes != len(c.of.Nodes) || len(got.Pods)+got.Omitted.PodClasses != len(c.of.Pods) {
				t.Errorf("%d nodes and %d classes are left, omitted %+v", len(got.Nodes), len(got.Pods), got.Omitted)
			}
			if len(got.Pods) > 0 && got.Pods[0].Count != c.of.Pods[0].Count {
				t.Error("the largest class was left out")
			}
		})
	}
}

// A ConfigMap that somebody has made says what is wrong with it, and costs no more than one
// of ours to find out.
func TestVerdictsAreReadWithinBounds(t *testing.T) {
	zipped := func(text string, repeat int) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		for range repeat {
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	whole := zipped(`{"groups":[],"nodes":[],"pods":[]}`, 1)
	for _, c := range []struct {
		what   string
		packed []byte
		want   string
	}{
		{"nothing", nil, "older version"},
		{"no gzip", []byte(strings.Repeat("{}", 20)), "invalid header"},
		{"half of it", whole[:len(whole)-6], "EOF"},
		{"no JSON", zipped("{", 1), "JSON"},
		{"no list", zipped(`{"nodes":{}}`, 1), "want a list"},
		{"a bomb", zipped(strings.Repeat(" ", 1<<20), 300), "unpacked"},
		{"a long entry", zipped(`{"nodes":[{"name":"`+strings.Repeat("x", maxEntry)+`"}]}`, 1), "entry 0"},
		{"many entries", zipped(`{"nodes":[{}`+strings.Repeat(",{}", maxEntries)+`]}`, 1), fmt.Sprintf("entry %d", maxEntries)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := read(c.packed)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "windlass-status") {
			t.Errorf("%s: error %v, want %q", c.what, err, c.want)
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 16*maxPlain>>20 {
			t.Errorf("%s: %d MiB", c.what, took)
		}
	}
	if _, err := read(nil); !errors.Is(err, ErrNoVerdicts) {
		t.Errorf("error %v", err)
	}
}
