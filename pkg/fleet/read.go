package fleet

import (
	"errors"
	"fmt"
	"io"

	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Read reads one snapshot as YAML or JSON, the whole of r. A field that no
// snapshot has is an error that names it and where it stands, as is a value of
// the wrong kind; a snapshot without the moment it was taken at is one too,
// since every clock is held against it.
func Read(r io.Reader) (Snapshot, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return Snapshot{}, fmt.Errorf("reading a snapshot: %w", err)
	}
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return Snapshot{}, fmt.Errorf("this is no YAML: %w", err)
	}
	var s Snapshot
	unknown, err := json.UnmarshalStrict(asJSON, &s)
	if err := errors.Join(append([]error{err}, unknown...)...); err != nil {
		return Snapshot{}, fmt.Errorf("this is no snapshot: %w", err)
	}
	if s.Now.IsZero() {
		return Snapshot{}, fmt.Errorf("this is no snapshot: it has no field now, the moment it was taken at, such as 2006-01-02T15:04:05Z")
	}
	return s, nil
}

// Write prints a snapshot as YAML that Read reads.
func Write(w io.Writer, s Snapshot) error {
	text, err := yaml.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding a snapshot: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing a snapshot: %w", err)
	}
	return nil
}
