package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"golang.org/x/term"

	"windlass.dev/windlass/cli/top"
	"windlass.dev/windlass/cli/top/feed"
	"windlass.dev/windlass/e2e/demo/screen"
	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/e2e/world"
)

// live shows the stage as kubectl windlass top does, below the play's captions. The viewer may look
// at everything and do nothing: what the play promises must come true by itself.
func live(s *stage, in, out *os.File, left func()) (stop func() error, err error) {
	cluster := feed.New(s.world.Client, world.Namespace, time.Now)
	model, err := top.New(top.Options{Why: cluster.Why})
	if err != nil {
		return nil, err
	}
	options := []tea.ProgramOption{tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()}
	if !term.IsTerminal(int(in.Fd())) {
		options = append(options, tea.WithInput(nil))
	}
	program := tea.NewProgram(model, options...)
	captions := viewer{
		state: s.state, changed: s.Changed, pause: 100 * time.Millisecond, clock: time.Second,
		draw: func(now story.State) error {
			program.Send(top.Caption(screen.Captions(now)))
			return nil
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	ended := make([]error, 3)
	all.Go(func() {
		defer program.Quit() // where it fails, the terminal is given back
		ended[0] = cluster.Run(ctx, 250*time.Millisecond, func(w top.World) { program.Send(top.Changed(w)) })
	})
	all.Go(func() {
		defer program.Quit()
		ended[1] = feed.Guarded(func() error { return captions.run(ctx) })
	})
	all.Go(func() {
		_, ended[2] = program.Run()
		if ctx.Err() == nil {
			left()
		}
	})
	return func() error {
		cancel()
		program.Quit()
		all.Wait()
		if _, err := lipgloss.Fprintln(out, model.Screen()); err != nil { // the last of it stays
			ended = append(ended, err)
		}
		return errors.Join(ended...)
	}, nil
}
