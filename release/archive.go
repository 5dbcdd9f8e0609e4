package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// imageDigest reads the digest of the one image in an OCI archive, of which each
// architecture is a part: https://github.com/opencontainers/image-spec/blob/main/image-layout.md
func imageDigest(archive string) (string, error) {
	file, err := os.Open(archive)
	if err != nil {
		return "", err
	}
	defer file.Close()
	digest, err := digestIn(file)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", archive, err)
	}
	return digest, nil
}

func digestIn(archive io.Reader) (string, error) {
	reader := tar.NewReader(archive)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return "", errors.New("it has no index.json")
		}
		if err != nil {
			return "", err
		}
		if strings.TrimPrefix(header.Name, "./") != "index.json" {
			continue
		}
		var index struct {
			Manifests []struct{ Digest string }
		}
		if err := json.NewDecoder(reader).Decode(&index); err != nil {
			return "", err
		}
		if len(index.Manifests) != 1 {
			return "", fmt.Errorf("it has %d images", len(index.Manifests))
		}
		sum, is := strings.CutPrefix(index.Manifests[0].Digest, "sha256:")
		if !is {
			return "", fmt.Errorf("digest %q", index.Manifests[0].Digest)
		}
		return sum, nil
	}
}
