package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"runtime"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// statement says how artifacts came to be: https://in-toto.io/Statement/v1 with the
// predicate https://slsa.dev/spec/v1.0/provenance
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

// resource is an artifact, or something that one is made of.
type resource struct {
	Name   string `json:"name,omitempty"`
	URI    string `json:"uri,omitempty"`
	Digest digest `json:"digest,omitempty"`
}

// digest is a checksum in hexadecimal, by algorithm.
type digest map[string]string

type predicate struct {
	Definition definition `json:"buildDefinition"`
	Run        run        `json:"runDetails"`
}

type definition struct {
	// Type says what the parameters mean.
	Type string `json:"buildType"`
	// External are what whoever built could choose, Internal is the rest.
	External     map[string]any `json:"externalParameters"`
	Internal     map[string]any `json:"internalParameters"`
	Dependencies []resource     `json:"resolvedDependencies"`
}

type run struct {
	Builder struct {
		ID string `json:"id"`
	} `json:"builder"`
}

// What the Makefile of this repository does; with the machine of whoever runs it: no more
// can be said by an unsigned statement.
const (
	buildType = "https://" + contract.Prefix + "make-images/v1"
	builder   = "https://" + contract.Prefix + "Makefile"
	source    = "git+https://windlass.dev/windlass"
)

// dirty ends the revision of a checkout with changes that are in no commit.
const dirty = "-dirty"

// provenance says of what and how the subjects were built.
func (b build) provenance(subjects []resource) (statement, error) {
	made := []resource{b.commit(), {URI: "pkg:golang/toolchain@" + strings.TrimPrefix(runtime.Version(), "go")}}
	// What is not in the commit: go.sum has the checksum of every module.
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		return statement{}, err
	}
	sum := sha256.Sum256(sums)
	made = append(made, resource{Name: "go.sum", Digest: digest{"sha256": hex.EncodeToString(sum[:])}})
	s := statement{
		Type: "https://in-toto.io/Statement/v1", Subject: subjects, PredicateType: "https://slsa.dev/provenance/v1",
		Predicate: predicate{Definition: definition{
			Type:         buildType,
			External:     map[string]any{"target": "images", "version": b.version, "programs": b.programs, "architectures": b.architectures},
			Internal:     map[string]any{"build": b.flags, "sourceDate": b.date.Format(time.RFC3339)},
			Dependencies: made,
		}},
	}
	s.Predicate.Run.Builder.ID = builder
	return s, nil
}

// commit is what was built. A checkout with changes has no digest: nobody else has it.
func (b build) commit() resource {
	if strings.HasSuffix(b.revision, dirty) || b.revision == "unknown" {
		return resource{URI: source, Name: b.revision}
	}
	return resource{URI: source + "@" + b.revision, Digest: digest{"gitCommit": b.revision}}
}
