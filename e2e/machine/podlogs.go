package machine

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// readPodLogs reads what all runs of a container wrote, in the order in which they did.
// The kubelet has a folder for each pod, named NAMESPACE_NAME_UID, in it one for each
// container, and in that a file for each run.
// https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md
func readPodLogs(folders, namespace, pod, container string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(folders, namespace+"_"+pod+"_*", container, "*.log"))
	if err != nil {
		return nil, err
	}
	var runs [][]byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		runs = append(runs, content)
	}
	// Each line begins with its time, in UTC and to the nanosecond.
	slices.SortFunc(runs, func(a, b []byte) int { return cmp.Compare(string(firstWord(a)), string(firstWord(b))) })
	var text bytes.Buffer
	for _, run := range runs {
		if err := plainText(&text, run); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

func firstWord(line []byte) []byte {
	word, _, _ := bytes.Cut(line, []byte(" "))
	return word
}

// plainText writes what a container wrote: lines are TIME STREAM TAG TEXT, where the tag P
// says that the line goes on.
func plainText(to *bytes.Buffer, log []byte) error {
	lines := bufio.NewReader(bytes.NewReader(log))
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		parts := bytes.SplitN(bytes.TrimSuffix(line, []byte("\n")), []byte(" "), 4)
		if len(parts) < 4 {
			continue // still being written
		}
		to.Write(parts[3])
		if !bytes.HasPrefix(parts[2], []byte("P")) {
			to.WriteByte('\n')
		}
	}
}

// link gives a log file a second name, by which it stays when the kubelet removes it.
func link(file, kept string) error {
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return err
	}
	err := os.Link(file, kept)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil // known already, or gone before we came
	}
	return err
}
