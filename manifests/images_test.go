package manifests

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The images hold one program each, run as the user that the pods name, and need
// neither a network nor an emulator to be built.
func TestDockerfiles(t *testing.T) {
	for _, w := range renderOverlay(t, withComponents("notifications")).workloads() {
		t.Run(w.name, func(t *testing.T) {
			path := "../Dockerfile." + strings.TrimPrefix(w.name, "windlass-")
			body, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			pod := w.template.Spec.SecurityContext
			for _, line := range []string{
				"FROM scratch",
				fmt.Sprintf("COPY --chmod=755 $BINARIES/$TARGETARCH/%s /%[1]s", w.name),
				fmt.Sprintf("USER %d:%d", *pod.RunAsUser, *pod.RunAsGroup),
				fmt.Sprintf("ENTRYPOINT [%q]", "/"+w.name),
			} {
				if !strings.Contains(string(body), "\n"+line+"\n") {
					t.Errorf("%s lacks the line %q", path, line)
				}
			}
			for _, other := range regexp.MustCompile(`(?m)^(?:RUN|ADD|FROM .*[^h]$|COPY --from).*`).FindAllString(string(body), -1) {
				t.Errorf("%s: %q", path, other)
			}
		})
	}
}

// What is applied asks for the images that `make images` makes, by their tag.
func TestImagesAreThoseThatMakeMakes(t *testing.T) {
	made := madeImages(t)
	asked := map[string]bool{}
	for _, w := range renderOverlay(t, withComponents("notifications")).workloads() {
		for _, c := range append(w.template.Spec.InitContainers, w.template.Spec.Containers...) {
			asked[c.Image] = true
			if c.ImagePullPolicy != "" {
				t.Errorf("%s: imagePullPolicy %s; with a tag that stays what it is the default is right", w.name, c.ImagePullPolicy)
			}
		}
	}
	if diff := cmp.Diff(made, asked); diff != "" {
		t.Errorf("images (-made +asked for):\n%s", diff)
	}
}

// madeImages reads off what make would do which images it makes.
func madeImages(t *testing.T) map[string]bool {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make here")
	}
	// The go command keeps results of tests by the files that a test opens.
	if _, err := os.ReadFile("../Makefile"); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("make", "--no-print-directory", "-C", "..", "-n", "images")
	// What a make around this test was told is not what a user's is.
	command.Env = append(os.Environ(), "MAKEFLAGS=", "MAKEOVERRIDES=")
	recipe, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, recipe)
	}
	image := regexp.MustCompile(` (windlass-)\$program:(\S+) `).FindSubmatch(recipe)
	programs := regexp.MustCompile(`for program in ([^;]+);`).FindSubmatch(recipe)
	if image == nil || programs == nil {
		t.Fatalf("which images does this make?\n%s", recipe)
	}
	made := map[string]bool{}
	for program := range strings.FieldsSeq(string(programs[1])) {
		made[fmt.Sprintf("%s%s:%s", image[1], program, image[2])] = true
	}
	return made
}

// No image of any file here is "the latest": ours get their tag from the
// kustomization, every other one carries its own.
func TestNoImageIsTheLatest(t *testing.T) {
	named := regexp.MustCompile(`(?m)^[\s-]*(?:image|newTag): *"?([^"\s]+)`)
	seen := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range named.FindAllStringSubmatch(string(body), -1) {
			seen++
			value := match[1]
			ours := value == "windlass-agent" || value == "windlass-scaler" || value == "windlass-notifier"
			isTag := strings.Contains(match[0], "newTag")
			if strings.HasSuffix(value, "latest") || !isTag && !ours && !strings.Contains(filepath.Base(value), ":") {
				t.Errorf("%s: %s", path, strings.TrimSpace(match[0]))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 4 {
		t.Errorf("only %d images were seen", seen)
	}
}
