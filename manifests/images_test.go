package manifests

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The images hold one program each, and run as the user that the pods name.
func TestDockerfiles(t *testing.T) {
	for _, w := range renderBase(t).workloads() {
		t.Run(w.name, func(t *testing.T) {
			path := "../Dockerfile." + strings.TrimPrefix(w.name, "windlass-")
			body, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			pod := w.template.Spec.SecurityContext
			for _, line := range []string{
				"FROM scratch",
				fmt.Sprintf("USER %d:%d", *pod.RunAsUser, *pod.RunAsGroup),
				fmt.Sprintf("ENTRYPOINT [%q]", "/"+w.name),
			} {
				if !strings.Contains(string(body), "\n"+line+"\n") {
					t.Errorf("%s lacks the line %q", path, line)
				}
			}
			for _, from := range regexp.MustCompile(`(?m)^FROM (?:--\S+ )?(\S+)`).FindAllStringSubmatch(string(body), -1) {
				image, tag, _ := strings.Cut(from[1], ":")
				if image != "scratch" && (tag == "" || tag == "latest") || strings.Contains(image, "/") {
					t.Errorf("%s builds from %q, want a tag and no registry", path, from[1])
				}
			}
		})
	}
}
