// Command release writes what goes with the images of `make images`, beside their archives:
//
//	sbom.go        what each program is made of, as CycloneDX, out of the program itself
//	provenance.go  from what and how all of it was built, as an in-toto statement (SLSA v1)
//	archive.go     the digest of an image, out of its archive
//
// With -krew it writes krew's manifest of the plugin instead, beside what goreleaser made:
//
//	krew.go        version, places and hashes of the archives, out of checksums.txt
//
// Nothing in them depends on when or where: the same commit makes the same bytes. They are
// not signed; whoever publishes the images does that with a key of his own.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// build is what `make images` knows of itself.
type build struct {
	binaries, images  string // folders
	version, revision string
	programs          []string // windlass-agent, windlass-scaler
	architectures     []string
	date              time.Time
	flags             string // of go build
}

func main() {
	var b build
	var programs, architectures string
	var seconds int64
	var k krew
	flag.StringVar(&b.binaries, "binaries", "bin/linux", "folder of the programs, by architecture")
	flag.StringVar(&b.images, "images", "out/images", "folder of the images' archives, where the results go")
	flag.StringVar(&b.version, "version", "", "version of the images: their tag")
	flag.StringVar(&b.revision, "revision", "", "commit that they are made of")
	flag.StringVar(&programs, "programs", "", "the programs, separated by spaces")
	flag.StringVar(&architectures, "architectures", "", "their architectures, separated by spaces")
	flag.StringVar(&b.flags, "flags", "", "how the programs are built")
	flag.Int64Var(&seconds, "date", 0, "SOURCE_DATE_EPOCH, in Unix seconds")
	flag.StringVar(&k.manifest, "krew", "", "krew's manifest to fill in, in place of all else")
	flag.StringVar(&k.checksums, "checksums", "", "with -krew: checksums.txt of the release")
	flag.StringVar(&k.downloads, "downloads", "", "with -krew: where releases are, each below its version; as in the manifest if empty")
	flag.StringVar(&k.out, "out", "", "with -krew: the file to write")
	flag.Parse()
	b.programs, b.architectures, b.date = strings.Fields(programs), strings.Fields(architectures), time.Unix(seconds, 0).UTC()
	write := b.write
	if k.manifest != "" {
		write = func() error { return k.write(b.version) }
	}
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// write writes an SBOM for each program and architecture, and one statement of provenance.
func (b build) write() error {
	if len(b.programs) == 0 || len(b.architectures) == 0 || b.version == "" || b.revision == "" {
		return errors.New("want -programs, -architectures, -version and -revision")
	}
	var subjects []resource
	for _, program := range b.programs {
		image, err := imageDigest(filepath.Join(b.images, program+".tar"))
		if err != nil {
			return err
		}
		subjects = append(subjects, resource{Name: program + ":" + b.version, Digest: digest{"sha256": image}})
		for _, architecture := range b.architectures {
			path := filepath.Join(b.binaries, architecture, program)
			bom, err := readBOM(path, program, b.version, b.date)
			if err != nil {
				return err
			}
			if err := writeJSON(filepath.Join(b.images, program+"-"+architecture+".cdx.json"), bom); err != nil {
				return err
			}
			subjects = append(subjects, resource{Name: program + "-linux-" + architecture, Digest: digest{"sha256": bom.sum()}})
		}
	}
	statement, err := b.provenance(subjects)
	if err != nil {
		return err
	}
	return writeJSON(filepath.Join(b.images, "provenance.json"), statement)
}

func writeJSON(path string, value any) error {
	body, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	if err := os.WriteFile(path, append(body, '\n'), 0o644); err != nil {
		return err
	}
	fmt.Println(path)
	return nil
}
