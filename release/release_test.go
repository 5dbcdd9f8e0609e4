package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var date = time.Unix(1_700_000_000, 0).UTC()

// agent builds windlass-agent below a folder, out of the packages that its own tests are built
// of, and returns its path.
func agent(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(folder, "amd64", "windlass-agent")
	if out, err := exec.Command("go", "build", "-o", path, "../agent").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// The SBOM has exactly the modules that `go version -m` finds in the program, with the
// checksums of go.sum.
func TestSBOMIsWhatTheProgramIsMadeOf(t *testing.T) {
	path := agent(t, t.TempDir())
	printed, err := exec.Command("go", "version", "-m", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{} // checksum by package URL
	for line := range strings.Lines(string(printed)) {
		switch words := strings.Fields(line); {
		case len(words) == 2 && strings.HasPrefix(words[1], "go"):
			want["pkg:golang/stdlib@"+strings.TrimPrefix(words[1], "go")] = ""
		case len(words) == 4 && (words[0] == "dep" || words[0] == "=>"):
			sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(words[3], "h1:"))
			if err != nil {
				t.Fatal(err)
			}
			want["pkg:golang/"+strings.ToLower(words[1])+"@"+strings.ReplaceAll(words[2], "+", "%2B")] = hex.EncodeToString(sum)
		}
	}
	if len(want) < 10 {
		t.Fatalf("go version -m finds %v", want)
	}
	b, err := readBOM(path, "windlass-agent", "v1.2.3", date)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range b.Components {
		got[c.PackageURL] = ""
		for _, h := range c.Hashes {
			got[c.PackageURL] = h.Content
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modules (-program +SBOM):\n%s", diff)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(body); b.sum() != hex.EncodeToString(sum[:]) {
		t.Errorf("the SBOM is of a program with the checksum %s, and this one has %x", b.sum(), sum)
	}
	refs := []string{b.Metadata.Component.Ref}
	for _, c := range b.Components {
		refs = append(refs, c.Ref)
	}
	slices.Sort(refs)
	if len(slices.Compact(refs)) != len(b.Components)+1 {
		t.Error("two components have the same name")
	}
}

// Two runs write the same bytes; the provenance is about the programs and images that are
// there, and names the commit.
func TestSameCommitMakesTheSameBytes(t *testing.T) {
	b := build{
		binaries: t.TempDir(), version: "v1.2.3", revision: "0123456789abcdef0123456789abcdef01234567", date: date,
		programs: []string{"windlass-agent"}, architectures: []string{"amd64"}, flags: "-trimpath",
	}
	body, err := os.ReadFile(agent(t, b.binaries))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("..") // the root, with go.sum
	image := strings.Repeat("ab", sha256.Size)
	var runs []map[string]string
	for range 2 {
		b.images = t.TempDir()
		archive := archiveOf(t, "index.json", fmt.Sprintf(`{"manifests": [{"digest": "sha256:%s"}]}`, image))
		if err := os.WriteFile(filepath.Join(b.images, "windlass-agent.tar"), archive, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := b.write(); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, contents(t, b.images))
	}
	if diff := cmp.Diff(runs[0], runs[1]); diff != "" {
		t.Errorf("two runs (-first +second):\n%s", diff)
	}
	want := []string{"provenance.json", "windlass-agent-amd64.cdx.json", "windlass-agent.tar"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(runs[0]))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	var s statement
	if err := json.Unmarshal([]byte(runs[0]["provenance.json"]), &s); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	subjects := []resource{
		{Name: "windlass-agent:v1.2.3", Digest: digest{"sha256": image}},
		{Name: "windlass-agent-linux-amd64", Digest: digest{"sha256": hex.EncodeToString(sum[:])}},
	}
	if diff := cmp.Diff(subjects, s.Subject); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	if got := s.Predicate.Definition.Dependencies[0].Digest["gitCommit"]; got != b.revision {
		t.Errorf("it is made of commit %q, want %q", got, b.revision)
	}
}

// A checkout with changes in no commit is not said to be one.
func TestChangedCheckoutHasNoCommit(t *testing.T) {
	for _, revision := range []string{"0123abc" + dirty, "unknown"} {
		if r := (build{revision: revision}).commit(); len(r.Digest) != 0 {
			t.Errorf("%s has the digest %v", revision, r.Digest)
		}
	}
}

// What is no archive of one image is refused.
func TestArchives(t *testing.T) {
	for about, archive := range map[string][]byte{
		"no index":     archiveOf(t, "oci-layout", "{}"),
		"two images":   archiveOf(t, "index.json", `{"manifests": [{"digest": "sha256:1"}, {"digest": "sha256:2"}]}`),
		"other digest": archiveOf(t, "index.json", `{"manifests": [{"digest": "md5:1"}]}`),
		"no archive":   []byte("x"),
	} {
		if got, err := digestIn(bytes.NewReader(archive)); err == nil {
			t.Errorf("%s: %s", about, got)
		}
	}
}

func archiveOf(t *testing.T, name, content string) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		body, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name()] = string(body)
	}
	return out
}
