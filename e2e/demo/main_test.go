package main

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	usual := options{groups: 2, nodes: 3}
	with := func(change func(*options)) options {
		o := usual
		change(&o)
		return o
	}
	for _, c := range []struct {
		reason string
		args   []string
		keep   string // of the environment
		want   options
		fails  bool
	}{
		{reason: "nothing said", want: usual},
		{reason: "make demo KEEP=1", keep: "1", want: with(func(o *options) { o.keep = true })},
		{reason: "make demo KEEP=0", keep: "0", want: usual},
		{reason: "the flag wins over the environment", args: []string{"--keep=false"}, keep: "1", want: usual},
		{reason: "a bare world", args: []string{"--world", "--groups=4", "--nodes=0"}, want: with(func(o *options) { o.world, o.groups, o.nodes = true, 4, 0 })},
		{reason: "a world needs a group", args: []string{"--world", "--groups=0"}, fails: true},
		{reason: "an unknown flag", args: []string{"--loud"}, fails: true},
		{reason: "a word too many", args: []string{"now"}, fails: true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got, err := parse(c.args, func(string) string { return c.keep }, io.Discard)
			if c.fails {
				if err == nil {
					t.Fatalf("got %+v, want an error", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(options{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
