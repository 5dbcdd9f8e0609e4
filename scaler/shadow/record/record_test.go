package record

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/contract"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// anyName is of the kinds that tenants and people choose.
var anyName = rapid.OneOf(
	rapid.SampledFrom([]string{"", "web", "default/web-1", "</script>", "日本", "a\nb", "\xff\xfe", "\u2028"}),
	rapid.StringN(0, 600, -1),
	rapid.Custom(func(t *rapid.T) string { return strings.Repeat(rapid.String().Draw(t, "part"), 50) }),
)

func drawSize(t *rapid.T) Size {
	return Size{rapid.IntRange(0, 9).Draw(t, "desired"), rapid.IntRange(0, 9).Draw(t, "nodes"),
		rapid.SampledFrom([]float64{0, 0.096, 12.3456789, -1, math.NaN(), math.Inf(1), math.MaxFloat64}).Draw(t, "dollars")}
}

// drawRecord is any record whose date can be.
func drawRecord(t *rapid.T) Record {
	r := Record{At: noon.Add(time.Duration(rapid.Int64Range(-1e15, 1e15).Draw(t, "at")))}
	number, pods := rapid.IntRange(0, 9), rapid.SliceOfN(anyName, 0, 8)
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		r.Sample = &Sample{Pending: number.Draw(t, "pending")}
		for range rapid.SampledFrom([]int{0, 1, 3, MostGroups + 2}).Draw(t, "groups") {
			r.Sample.Groups = append(r.Sample.Groups, GroupSample{anyName.Draw(t, "group"), drawSize(t), drawSize(t)})
			if len(r.Sample.Groups) == 3 { // the others are alike: drawing takes long
				for len(r.Sample.Groups) < MostGroups+2 {
					r.Sample.Groups = append(r.Sample.Groups, r.Sample.Groups[0])
				}
				break
			}
		}
	case 1:
		r.Decided = &Decided{anyName.Draw(t, "kind"), anyName.Draw(t, "group"), anyName.Draw(t, "node"), number.Draw(t, "from"), number.Draw(t, "to"), pods.Draw(t, "pods"), number.Draw(t, "count"), anyName.Draw(t, "why")}
	case 2:
		r.Seen = &Seen{anyName.Draw(t, "by"), anyName.Draw(t, "kind"), anyName.Draw(t, "group"), anyName.Draw(t, "node"), anyName.Draw(t, "instance"), number.Draw(t, "from"), number.Draw(t, "to"), pods.Draw(t, "pods"), number.Draw(t, "count"), anyName.Draw(t, "why")}
	case 3:
		r.Bound = &Bound{anyName.Draw(t, "pod"), rapid.SampledFrom([]Side{World, Windlass, "else"}).Draw(t, "side"), r.At.Add(-time.Duration(rapid.Int64Range(0, 1e14).Draw(t, "pending"))), anyName.Draw(t, "node")}
	case 4:
		r.Diverged = &Diverged{anyName.Draw(t, "group"), anyName.Draw(t, "node"), anyName.Draw(t, "assumed"), anyName.Draw(t, "is"), anyName.Draw(t, "why")}
	case 5:
		r.Began = &Began{anyName.Draw(t, "version"), anyName.Draw(t, "why")}
	case 6:
		r.Pods = &Pods{List: rapid.Bool().Draw(t, "list"), Count: number.Draw(t, "count")}
		moment := rapid.SampledFrom([]int64{0, 1772366400, -1, math.MaxInt64})
		for range rapid.IntRange(0, 2).Draw(t, "of") {
			of := PodsOf{anyName.Draw(t, "namespace"), anyName.Draw(t, "kind"), anyName.Draw(t, "owner"), moment.Draw(t, "cpu"), moment.Draw(t, "memory"), nil}
			one := Life{anyName.Draw(t, "pod"), moment.Draw(t, "created"), moment.Draw(t, "ended")}
			for range rapid.SampledFrom([]int{0, 1, MostLives - 1, MostLives + 2}).Draw(t, "pods") {
				of.Pods = append(of.Pods, one)
				one.Name = "p" // so many long ones have no room
			}
			r.Pods.Of = append(r.Pods.Of, of)
		}
	case 7:
		r.Groups = &Groups{}
		one := Shape{Group: anyName.Draw(t, "group"), Type: anyName.Draw(t, "type"), Zones: pods.Draw(t, "zones"), Min: number.Draw(t, "min"), Max: number.Draw(t, "max"), DollarsPerHour: drawSize(t).DollarsPerHour}
		one.Taints = []corev1.Taint{{Key: anyName.Draw(t, "taint"), Effect: corev1.TaintEffect(anyName.Draw(t, "effect"))}}
		for range rapid.SampledFrom([]int{0, 1, MostShapes + 2}).Draw(t, "groups") {
			r.Groups.Of = append(r.Groups.Of, one)
			one = Shape{Group: "g"}
		}
	}
	return r
}

// read is what stands in ConfigMaps of so many chunks.
func read(t interface{ Fatalf(string, ...any) }, chunks []Chunk) Book {
	var copies []Chunk
	for _, c := range chunks {
		c, is := ChunkOf(c.ConfigMap())
		if !is {
			t.Fatalf("chunk %d is not found in its config map", c.Number)
		}
		copies = append(copies, c)
	}
	return Read(copies)
}

// TestRoundTrip: what is read are the records that were appended, within their bounds, by their
// dates; and the bounds of a record within its bounds change nothing. A log that is resumed goes
// on.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, _ := Resume(nil)
		var want []Record
		standing := map[string]Chunk{}
		for range rapid.IntRange(1, 12).Draw(t, "records") {
			r := drawRecord(t)
			if err := l.Append(r, r.At); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(r.Normal(), r.Normal().Normal()); diff != "" {
				t.Fatalf("its bounds change it twice: %s", diff)
			}
			want = append(want, r.Normal())
			if !rapid.Bool().Draw(t, "write") {
				continue
			}
			chunks, err := l.Unwritten()
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range chunks {
				standing[c.ConfigMap().Name] = c
			}
			l.Written(chunks)
			if more, err := l.Unwritten(); len(more) > 0 || err != nil {
				t.Fatalf("%d chunks are due although all are written, %v", len(more), err)
			}
			if rapid.Bool().Draw(t, "restart") {
				var faults []error
				if l, faults = Resume(values(standing)); faults != nil {
					t.Fatal(faults)
				}
			}
		}
		chunks, err := l.Unwritten()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chunks {
			standing[c.ConfigMap().Name] = c
		}
		got := read(t, values(standing))
		slices.SortStableFunc(want, func(a, b Record) int { return a.At.Compare(b.At) })
		if diff := cmp.Diff(Book{Records: want}, got); diff != "" {
			t.Fatalf("(-appended +read):\n%s", diff)
		}
	})
}

func values(m map[string]Chunk) (list []Chunk) {
	for _, c := range m {
		list = append(list, c)
	}
	return list
}

// TestSumsStay: the groups that a sample does not name are in its sums.
func TestSumsStay(t *testing.T) {
	s := Sample{}
	for i := range 3 * MostGroups {
		s.Groups = append(s.Groups, GroupSample{Group: fmt.Sprint("g", i), World: Size{1, 2, 0.5}, Windlass: Size{1, 1, 0.25}})
	}
	var sum GroupSample
	got := Record{At: noon, Sample: &s}.Normal().Sample.Groups
	for _, g := range got {
		sum.World, sum.Windlass = sum.World.plus(g.World), sum.Windlass.plus(g.Windlass)
	}
	if want := (GroupSample{World: Size{3000, 6000, 1500}, Windlass: Size{3000, 3000, 750}}); len(got) != MostGroups+1 || sum != want {
		t.Errorf("%d groups with %+v, want %+v", len(got), sum, want)
	}
}

// hostile is a log of which others choose all: long names that do not compress, thousands a minute,
// a clock that jumps.
func hostile(records int, dice func(int) int, jump bool) (made []Record) {
	name := func() string {
		b := make([]byte, 317)
		for i := range b {
			b[i] = byte("abcdefghijklmnopqrstuvwxyz0123456789-."[dice(38)])
		}
		return string(b)
	}
	at := noon
	for i := range records {
		at = at.Add(time.Duration(dice(30)) * time.Millisecond)
		if jump && dice(1000) == 0 {
			at = at.Add(time.Duration(dice(20)-10) * 100 * time.Hour)
		}
		r := Record{At: at}
		switch {
		case i%500 == 0:
			r.Sample = &Sample{}
			for range dice(3*MostGroups) / (1 + 9*dice(2)) {
				r.Sample.Groups = append(r.Sample.Groups, GroupSample{Group: name(), World: Size{1, 1, 0.1}})
			}
		case i%3 == 0:
			r.Bound = &Bound{Pod: name(), Side: World, PendingSince: at.Add(-time.Minute), Node: name()}
		case i%3 == 1:
			r.Seen = &Seen{By: name(), Kind: name(), Pods: []string{name(), name(), name(), name(), name(), name()}, Why: name() + name()}
		case i%6 == 2:
			r.Pods = &Pods{Of: []PodsOf{{Namespace: name(), Owner: name(), Pods: []Life{{Name: name(), Created: at.Unix()}, {Name: name(), Created: at.Unix()}}}}}
		default:
			r.Diverged = &Diverged{Assumed: name() + name(), Is: name()}
		}
		made = append(made, r)
	}
	return made
}

// TestBounds: whatever comes, no chunk has more than its bytes, what one restarts with is what
// another wrote, and each record is in a chunk or counted in one.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rapid.Uint64().Draw(t, "dice")
		dice := func(below int) int {
			random = random*6364136223846793005 + 1442695040888963407
			return int((random >> 33) % uint64(below))
		}
		made := hostile(rapid.SampledFrom([]int{20, 20, 20, 20, 20, 20, 2000}).Draw(t, "records"), dice, rapid.Bool().Draw(t, "jumps"))
		away := rapid.Bool().Draw(t, "API server away")
		l, _ := Resume(nil)
		standing := map[string]Chunk{}
		for i, r := range made {
			if err := l.Append(r, r.At); err != nil {
				t.Fatal(err)
			}
			if i != len(made)-1 && (away || dice(400) > 0) {
				continue
			}
			chunks, err := l.Unwritten()
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range chunks {
				standing[c.ConfigMap().Name] = c
				if len(c.Data) > MaxBytes {
					t.Fatalf("chunk %d has %d bytes", c.Number, len(c.Data))
				}
			}
			l.Written(chunks)
			if dice(4) == 0 {
				l, _ = Resume(values(standing))
			}
		}
		got := read(t, values(standing))
		if len(standing) > Chunks {
			t.Fatalf("%d config maps", len(standing))
		}
		if n := len(got.Records) + got.Omitted.Records; len(standing) < Chunks && n != len(made) {
			t.Fatalf("%d records are there and %d omitted, of %d; %q", len(got.Records), got.Omitted.Records, len(made), got.Faults)
		}
		pods := 0
		for _, r := range made {
			if r.Bound != nil {
				pods++
			}
		}
		for _, r := range got.Records {
			if r.Bound != nil {
				pods--
			}
		}
		if len(standing) < Chunks && (got.Omitted.Bound[World] != pods || got.Omitted.PendingSeconds[World] != int64(pods)*60) {
			t.Fatalf("%+v are omitted, want %d pods", got.Omitted, pods)
		}
	})
}

// TestAttackLeavesHours: whoever makes pods with long names all the time pushes little out of the
// log.
func TestAttackLeavesHours(t *testing.T) {
	if testing.Short() {
		t.Skip("it packs some megabytes")
	}
	random := uint64(1)
	dice := func(below int) int {
		random = random*6364136223846793005 + 1442695040888963407
		return int((random >> 33) % uint64(below))
	}
	made := hostile(600, dice, false)
	l, _ := Resume(nil)
	standing := map[string]Chunk{}
	const hours = 6
	for minute := range hours * 60 {
		at := noon.Add(time.Duration(minute) * time.Minute)
		if err := l.Append(Record{At: at, Began: &Began{Why: fmt.Sprint("minute ", minute)}}, at); err != nil {
			t.Fatal(err)
		}
		for i, r := range made {
			if r.At = at; r.Bound != nil {
				r.Bound = &Bound{Pod: fmt.Sprint(r.Bound.Pod[i%100:], minute), Side: World, PendingSince: at, Node: r.Bound.Node[minute%200:]}
			}
			if r.Sample != nil {
				continue // names of groups are not tenants' to choose
			}
			if err := l.Append(r, r.At); err != nil {
				t.Fatal(err)
			}
		}
		chunks, err := l.Unwritten()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chunks {
			standing[c.ConfigMap().Name] = c
		}
		l.Written(chunks)
	}
	if first := read(t, values(standing)).Records[0]; first.At.After(noon) {
		t.Errorf("of %d hours it begins at %s", hours, first.At)
	}
}

// TestClaimsStarveNothing: whatever dates tenants give their Events, these take the room of claims alone.
func TestClaimsStarveNothing(t *testing.T) {
	l, _ := Resume(nil)
	for i := range 30_000 {
		at := noon.AddDate(0, 0, 300*(i%2))
		claim := Seen{By: ByClaim, Kind: Unhelped, Pods: []string{fmt.Sprint("tenant/", i)}, Why: strings.Repeat(fmt.Sprint(i), 60)}
		if err := l.Append(Record{At: at, Seen: &claim}, noon); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Append(Record{At: noon, Seen: &Seen{By: ByAutoscaler, Kind: ScaleUp, Group: "web", From: 1, To: 2}}, noon); err != nil {
		t.Fatal(err)
	}
	chunks, err := l.Unwritten()
	if err != nil {
		t.Fatal(err)
	}
	seen, bytes := 0, 0
	for _, r := range read(t, chunks).Records {
		if r.Seen.By == ByAutoscaler {
			seen++
			continue
		}
		bytes += len(r.Text())
	}
	if seen != 1 || bytes > 256<<10 {
		t.Errorf("%d records of Cluster Autoscaler beside %d bytes of claims", seen, bytes)
	}
}

// TestSamplesStay: however large they are, one of each minute is kept.
func TestSamplesStay(t *testing.T) {
	l, _ := Resume(nil)
	var large Sample
	for i := range MostGroups {
		large.Groups = append(large.Groups, GroupSample{Group: strings.Repeat("x", 200) + fmt.Sprint(i)})
	}
	for i := range 60 {
		at := noon.Add(time.Duration(i) * 10 * time.Second)
		if err := l.Append(Record{At: at, Sample: &large}, at); err != nil {
			t.Fatal(err)
		}
	}
	chunks, err := l.Unwritten()
	if err != nil {
		t.Fatal(err)
	}
	minutes := map[time.Time]bool{}
	for _, r := range read(t, chunks).Records {
		minutes[r.At.Truncate(time.Minute)] = true
	}
	if len(minutes) != 10 {
		t.Errorf("samples of %d minutes, want 10", len(minutes))
	}
}

// TestLinesHaveRoom: of the longest names there are, a record has no more than a line may have.
func TestLinesHaveRoom(t *testing.T) {
	long := strings.Repeat("\u2028", 90)
	pods, groups := Pods{}, Groups{}
	for range MostLives {
		pods.Of = append(pods.Of, PodsOf{Namespace: long, Kind: long, Owner: long, MilliCPU: math.MaxInt64, Memory: math.MaxInt64, Pods: []Life{{long, math.MaxInt64, math.MaxInt64}}})
	}
	for range MostShapes {
		groups.Of = append(groups.Of, Shape{Group: long, Type: long, Zones: slices.Repeat([]string{long}, 99), Taints: slices.Repeat([]corev1.Taint{{Key: long, Value: long, Effect: corev1.TaintEffect(long)}}, 99)})
	}
	for _, r := range []Record{{At: noon, Pods: &pods}, {At: noon, Groups: &groups}} {
		if n := len(r.Normal().Text()); n > maxLine {
			t.Errorf("%d bytes", n)
		}
	}
}

// TestInvalid: what has no date, or says nothing, is counted.
func TestInvalid(t *testing.T) {
	l, _ := Resume(nil)
	for _, r := range []Record{{}, {At: noon}, {At: noon.AddDate(5000, 0, 0), Began: &Began{}}, {At: noon, Bound: &Bound{}}, {At: noon, Began: &Began{}, Sample: &Sample{}}} {
		if err := l.Append(r, r.At); err != nil {
			t.Fatal(err)
		}
	}
	chunks, err := l.Unwritten()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Book{Omitted: Omitted{Records: 5, Invalid: 5}}, read(t, chunks)); diff != "" {
		t.Error(diff)
	}
}

// packed is any text as a chunk.
func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	if _, err := zip.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestUnreadable: a chunk that cannot be read is named with the cause, and all others are read; the
// log goes on after it, without writing over it at once.
func TestUnreadable(t *testing.T) {
	good := func(number uint64) Chunk {
		l, _ := Resume(nil)
		l.number = number
		if err := l.Append(Record{At: noon.Add(time.Duration(number) * time.Minute), Began: &Began{}}, noon); err != nil {
			t.Fatal(err)
		}
		chunks, err := l.Unwritten()
		if err != nil {
			t.Fatal(err)
		}
		return chunks[0]
	}
	whole := good(4).Data
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"cut", "unexpected EOF", whole[:len(whole)/2]},
		{"no gzip", "gzip: invalid header", []byte("records, not packed")},
		{"nothing", "EOF", nil},
		{"empty", "it is empty", packed(t, "")},
		{"another version", "of another version: 2, and this program reads 1", packed(t, `{"version":2,"chunk":4}`+"\n{}\n")},
		{"no records", "line 2: invalid character", packed(t, `{"version":1,"chunk":4}`+"\nx\n")},
		{"two things at once", "line 2: want one thing, at a date", packed(t, `{"version":1,"chunk":4}`+"\n"+`{"t":"2026-03-01T12:00:00Z","began":{},"sample":{}}`)},
		{"a bomb", "it unpacks to more than", packed(t, `{"version":1,"chunk":4}`+"\n"+strings.Repeat(`{"t":"2026-03-01T12:00:00Z","began":{}}`+"\n", maxUnpacked/35))},
		{"one long line", "token too long", packed(t, strings.Repeat("x", 2*maxLine))},
	} {
		t.Run(c.name, func(t *testing.T) {
			chunks := []Chunk{good(5), {4, c.data}, good(3)}
			got := Read(chunks)
			if len(got.Records) != 2 || len(got.Faults) != 1 || !strings.HasPrefix(got.Faults[0], "chunk 4: ") || !strings.Contains(got.Faults[0], c.want) {
				t.Errorf("%d records, faults %q, want %q", len(got.Records), got.Faults, c.want)
			}
			l, faults := Resume(chunks)
			if len(faults) != 1 || !strings.Contains(faults[0].Error(), c.want) || l.number != 5 || len(l.lines) != 1 {
				t.Errorf("it goes on in chunk %d with %d records: %v", l.number, len(l.lines), faults)
			}
			if l, _ := Resume(chunks[1:]); l.number != 5 || len(l.lines) != 0 {
				t.Errorf("after the newest, which cannot be read, it goes on in chunk %d with %d records", l.number, len(l.lines))
			}
		})
	}
	if got := Read([]Chunk{good(1), good(3), good(3), good(9)}); !slices.Equal(got.Faults, []string{"chunk 2 is missing", "chunk 3 is there twice: the first counts", "chunks 4 to 8 are missing"}) {
		t.Errorf("faults %q", got.Faults)
	}
	if l, _ := Resume([]Chunk{{math.MaxUint64, nil}, good(7)}); l.number != 7 {
		t.Errorf("a number that none can come to has it go on at %d", l.number)
	}
}

// TestSlots: the names are those that rights are given for, and a chunk takes the place of the
// oldest.
func TestSlots(t *testing.T) {
	all := contract.ConfigMapsShadowLog(Chunks)
	for number := range uint64(2 * Chunks) {
		if got := (Chunk{Number: number}).ConfigMap().Name; got != all[number%Chunks] {
			t.Errorf("chunk %d stands in %s", number, got)
		}
	}
	if _, is := ChunkOf((Chunk{}).ConfigMap()); !is {
		t.Error("a config map with a chunk has none")
	}
	empty := (Chunk{}).ConfigMap()
	empty.BinaryData = nil
	if _, is := ChunkOf(empty); is {
		t.Error("a config map without a chunk has one")
	}
}
