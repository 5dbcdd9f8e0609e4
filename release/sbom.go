package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// bom is a software bill of materials: https://cyclonedx.org/docs/1.6/json/
type bom struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	SerialNumber string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

// component is the program, or a module that is linked into it.
type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Licenses   []license  `json:"licenses,omitempty"`
	PackageURL string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type license struct {
	Expression string `json:"expression"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// readBOM reads what a program is made of out of the program: what the go command has
// written into it, which `go version -m` prints. It has the modules of which something is
// linked, and no others.
func readBOM(path, name, version string, date time.Time) (bom, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return bom{}, fmt.Errorf("reading what %s is made of: %w", path, err)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return bom{}, err
	}
	sum := sha256.Sum256(body)
	itself := component{
		Type: "application", Name: name, Version: version, PackageURL: packageURL(info.Main.Path, version),
		Licenses: []license{{Expression: "Apache-2.0"}}, Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}},
	}
	itself.Ref = itself.PackageURL + "#" + name
	for _, s := range info.Settings {
		itself.Properties = append(itself.Properties, property{"build:" + s.Key, s.Value})
	}
	b := bom{
		Format: "CycloneDX", SpecVersion: "1.6", SerialNumber: "urn:uuid:" + uuid(sum), Version: 1,
		Metadata: metadata{Timestamp: date.Format(time.RFC3339), Component: itself},
	}
	// Scanners know the standard library, and with it the compiler, by this name.
	b.Components = append(b.Components, library("stdlib", strings.TrimPrefix(info.GoVersion, "go"), nil))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		hashes, err := hashesOf(m)
		if err != nil {
			return bom{}, err
		}
		b.Components = append(b.Components, library(m.Path, m.Version, hashes))
	}
	all := dependency{Ref: itself.Ref}
	for _, c := range b.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{all}
	return b, nil
}

func library(name, version string, hashes []hash) component {
	url := packageURL(name, version)
	return component{Type: "library", Ref: url, Name: name, Version: version, PackageURL: url, Hashes: hashes}
}

// packageURL is what scanners look a module up by.
// https://github.com/package-url/purl-spec/blob/main/types-doc/golang-definition.md
func packageURL(module, version string) string {
	return "pkg:golang/" + strings.ToLower(module) + "@" + url.QueryEscape(version)
}

// hashesOf has the checksum of a module that go.sum has: SHA-256 over the list of its
// files with the checksums of each (https://go.dev/ref/mod#go-sum-files).
func hashesOf(m *debug.Module) ([]hash, error) {
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("module %s@%s has the checksum %q: want one of go.sum", m.Path, m.Version, m.Sum)
	}
	return []hash{{"SHA-256", hex.EncodeToString(sum)}}, nil
}

// uuid is one of version 8 (RFC 9562), made of a checksum, so that it is the same tomorrow.
func uuid(sum [sha256.Size]byte) string {
	id := sum
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	x := hex.EncodeToString(id[:16])
	return strings.Join([]string{x[:8], x[8:12], x[12:16], x[16:20], x[20:]}, "-")
}

// sum is the checksum of the program.
func (b bom) sum() string { return b.Metadata.Component.Hashes[0].Content }
