package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/worker"
)

// workersOf are the workers of a configuration.
func workersOf(cfg *config.Config) []worker.Worker {
	out := make([]worker.Worker, len(cfg.Workers))
	for i := range cfg.Workers {
		out[i] = workerOf(&cfg.Workers[i])
	}
	return out
}

// workersProblem gives an error about the workers of a configuration its place there.
func workersProblem(cfg *config.Config, put []worker.Worker, err error) error {
	var bad *worker.FieldError
	if !errors.As(err, &bad) {
		return err
	}
	for i := range put {
		if put[i].ID == bad.Worker {
			return &config.Error{Problems: []config.Problem{cfg.Problem(fmt.Sprintf("workers[%d].%s", i, strings.ReplaceAll(bad.Field, "].rank", "].dp_rank")), bad.Reason)}}
		}
	}
	return err
}

// workerOf is a worker as its configuration has it.
func workerOf(w *config.Worker) worker.Worker {
	out := worker.Worker{ID: hint.UintWorker(w.ID.Number), Type: string(w.Type), Namespace: w.Namespace, BlockSize: uint32(min(w.BlockSize, math.MaxUint32))}
	if w.ID.Text != "" {
		out.ID = hint.NamedWorker(w.ID.Text)
	}
	if w.Capabilities != nil {
		out.Capabilities = append([]string{}, *w.Capabilities...) // not nil: an empty list is one
	}
	for i := range w.Ranks {
		r := &w.Ranks[i]
		out.Ranks = append(out.Ranks, worker.Rank{Rank: r.DPRank, Events: r.Events, Replay: r.Replay, Source: r.Source})
	}
	return out
}
