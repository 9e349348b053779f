package main

import (
	"context"
	"log/slog"
	"testing"

	"github.com/kvrt/kvrt/config"
)

// BenchmarkColdStart is what lies between starting the daemon and its being ready: the
// embedded guests are admitted, compiled, started and called once each. There is no
// compile cache.
func BenchmarkColdStart(b *testing.B) {
	for b.Loop() {
		s, err := wire(context.Background(), config.Default(), slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		if err := s.runtime.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
