package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
)

// krew is what krew's manifest of a release is made of.
type krew struct {
	manifest  string // that of the checkout
	checksums string // of the archives, as goreleaser writes them
	downloads string // where releases are, each below its version; empty for what the manifest says
	out       string
}

var (
	krewVersion = regexp.MustCompile(`(?m)^  version: (\S+)$`)
	krewArchive = regexp.MustCompile(`(?m)^(    uri: )(\S+)\n(    sha256: )"[0-9a-f]*"$`)
)

// write fills in the version, where the archives are, and their hashes.
func (k krew) write(version string) error {
	if version == "" || k.out == "" {
		return errors.New("-krew wants -version, -checksums and -out, too")
	}
	text, err := os.ReadFile(k.manifest)
	if err != nil {
		return err
	}
	list, err := os.ReadFile(k.checksums)
	if err != nil {
		return err
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(list)) {
		if fields := strings.Fields(line); len(fields) == 2 {
			sums[fields[1]] = fields[0]
		}
	}
	found := krewVersion.FindSubmatch(text)
	if found == nil || !krewArchive.Match(text) {
		return fmt.Errorf("%s has no version and archives as they stand in a krew manifest", k.manifest)
	}
	was := string(found[1])
	text = krewVersion.ReplaceAll(text, []byte("  version: "+version))
	var missing []error
	text = krewArchive.ReplaceAllFunc(text, func(archive []byte) []byte {
		parts := krewArchive.FindSubmatch(archive)
		folder, file := path.Split(string(parts[2]))
		file = strings.ReplaceAll(file, "_"+was+"_", "_"+version+"_")
		if folder = strings.TrimSuffix(folder, was+"/"); k.downloads != "" {
			folder = strings.TrimSuffix(k.downloads, "/") + "/"
		}
		sum := sums[file]
		if len(sum) != 64 {
			missing = append(missing, fmt.Errorf("%s has no SHA-256 of %s, which %s names: make a release of %s first", k.checksums, file, k.manifest, version))
		}
		return bytes.Join([][]byte{parts[1], []byte(folder + version + "/" + file + "\n"), parts[3], []byte(`"` + sum + `"`)}, nil)
	})
	if err := errors.Join(missing...); err != nil {
		return err
	}
	if err := os.WriteFile(k.out, text, 0o644); err != nil {
		return err
	}
	fmt.Println(k.out)
	return nil
}
