// Package images holds the programs that the tests run in pods. Its own test
// holds every image of this repository to what is said of them.
package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// TestImages builds an image by each Dockerfile from two small files in place of
// the binaries, and looks at all that is in it.
func TestImages(t *testing.T) {
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Skip("there is no buildah here (Debian package buildah)")
	}
	labels := func(program, description string) map[string]string {
		const key = "org.opencontainers.image."
		return map[string]string{
			key + "title": program, key + "description": description, key + "licenses": "Apache-2.0",
			key + "version": "v1.2.3", key + "revision": "0123abc",
		}
	}
	for _, c := range []struct {
		dockerfile string
		program    string
		args       map[string]string
		inside     string
		labels     map[string]string
	}{
		{"Dockerfile.agent", "windlass-agent", map[string]string{"VERSION": "v1.2.3", "REVISION": "0123abc"}, "windlass-agent", labels("windlass-agent", "Moves the pods of a leaving Kubernetes node away in time.")},
		{"Dockerfile.scaler", "windlass-scaler", map[string]string{"VERSION": "v1.2.3", "REVISION": "0123abc"}, "windlass-scaler", labels("windlass-scaler", "Adds and retires nodes of EC2 Auto Scaling groups for a Kubernetes cluster.")},
		{"e2e/images/Dockerfile", "e2e-pause", map[string]string{"PROGRAM": "pause"}, "main", nil},
	} {
		t.Run(c.program, func(t *testing.T) {
			args := []string{"--file", opened(t, c.dockerfile)}
			for name, value := range c.args {
				args = append(args, "--build-arg", name+"="+value)
			}
			context := newContext(t, c.program, 0o755)
			first := build(t, c.program, append(args, context)...)
			if want := "docker.io/library/" + c.program + ":v1.2.3"; first.name != want {
				t.Errorf("it is named %q, want %q", first.name, want)
			}
			var want []platform
			for _, architecture := range []string{"amd64", "arm64"} {
				p := platform{Architecture: architecture, OS: "linux", Files: map[string]string{c.inside: "-rwxr-xr-x 0:0 2026-11-22 for " + architecture}}
				p.Config.User, p.Config.Entrypoint, p.Config.Labels = "65532:65532", []string{"/" + c.inside}, c.labels
				want = append(want, p)
			}
			if diff := cmp.Diff(want, first.platforms); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}

			// Another day, another umask.
			later := newContext(t, c.program, 0o700)
			if second := build(t, c.program, append(args, later)...); second.digest != first.digest {
				t.Errorf("built again it is %s, was %s", second.digest, first.digest)
			}
		})
	}
}

// Who has nothing to build with is told what to install.
func TestNoBuilder(t *testing.T) {
	tools := t.TempDir()
	for _, name := range []string{"mkdir", "dirname"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(opened(t, "build-image.sh"), filepath.Join(t.TempDir(), "x.tar"), "x:v1", "amd64", ".")
	command.Env = []string{"PATH=" + tools, "SOURCE_DATE_EPOCH=0"}
	out, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "install one, such as the Debian package buildah") {
		t.Errorf("%v: %s", err, out)
	}
}

// opened is the path of a file of this repository that only a command reads. The
// go command keeps results of tests by the files that the test itself opens.
func opened(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(root, name)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	return path
}

// newContext is a folder with what stands for a program's binaries.
func newContext(t *testing.T, program string, mode os.FileMode) string {
	t.Helper()
	context := t.TempDir()
	for _, architecture := range []string{"amd64", "arm64"} {
		folder := filepath.Join(context, "bin", "linux", architecture)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(folder, program)
		if err := os.WriteFile(file, []byte("for "+architecture), mode); err != nil {
			t.Fatal(err)
		}
		made := time.Unix(int64(mode), 0)
		if err := os.Chtimes(file, made, made); err != nil {
			t.Fatal(err)
		}
	}
	return context
}

// image is what an archive holds.
type image struct {
	name, digest string
	platforms    []platform
}

// platform is the image for one architecture.
type platform struct {
	Architecture, OS string
	Config           struct {
		User       string
		Entrypoint []string
		Labels     map[string]string
	}
	// Files have their mode, owner, date and content.
	Files map[string]string
}

func build(t *testing.T, program string, args ...string) image {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "image.tar")
	command := exec.Command(opened(t, "build-image.sh"), append([]string{archive, program + ":v1.2.3", "amd64 arm64"}, args...)...)
	command.Env = append(os.Environ(), "BUILDER=buildah", "SOURCE_DATE_EPOCH=1795305600")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	body, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	untar(t, body, func(h *tar.Header, content []byte) { files[h.Name] = content })
	return layout(files).image(t)
}

// layout is an OCI image layout, by file name.
// https://github.com/opencontainers/image-spec/blob/main/image-layout.md
type layout map[string][]byte

// descriptor points to a blob.
type descriptor struct {
	Digest      string
	Annotations map[string]string
}

func (l layout) image(t *testing.T) image {
	t.Helper()
	var index, platforms struct{ Manifests []descriptor }
	l.decode(t, "index.json", &index)
	top := index.Manifests[0]
	l.decode(t, blob(top.Digest), &platforms)
	out := image{name: top.Annotations["org.opencontainers.image.ref.name"], digest: top.Digest}
	for _, d := range platforms.Manifests {
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		l.decode(t, blob(d.Digest), &manifest)
		p := platform{Files: map[string]string{}}
		l.decode(t, blob(manifest.Config.Digest), &p)
		for _, layer := range manifest.Layers {
			untar(t, l[blob(layer.Digest)], func(h *tar.Header, content []byte) {
				owner := fmt.Sprintf("%d:%d", h.Uid, h.Gid)
				p.Files[h.Name] = strings.Join([]string{h.FileInfo().Mode().String(), owner, h.ModTime.UTC().Format(time.DateOnly), string(content)}, " ")
			})
		}
		out.platforms = append(out.platforms, p)
	}
	return out
}

func blob(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }

func (l layout) decode(t *testing.T, name string, to any) {
	t.Helper()
	if err := json.Unmarshal(l[name], to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// untar calls see for every file of an archive, which may be compressed.
func untar(t *testing.T, archive []byte, see func(*tar.Header, []byte)) {
	t.Helper()
	var stream io.Reader = bytes.NewReader(archive)
	if unzipped, err := gzip.NewReader(bytes.NewReader(archive)); err == nil {
		stream = unzipped
	}
	reader := tar.NewReader(stream)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			see(header, content)
		}
	}
}
