package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/runtime"
)

// checkWiring checks what the configuration's reader cannot know: sources, and unless
// shallow the modules. Nothing of a module is run. The error is a *config.Error.
// It returns what the guests take of their memory, which is nothing when it is shallow.
func checkWiring(ctx context.Context, cfg *config.Config, shallow bool) (taken, budget uint64, err error) {
	all := &config.Error{}
	add := func(err error) error {
		var wrong *config.Error
		if errors.As(err, &wrong) {
			all.Problems = append(all.Problems, wrong.Problems...)
			return nil
		}
		return err
	}
	if err := add(checkSources(ctx, cfg)); err != nil {
		return 0, 0, err
	}
	if !shallow {
		taken, budget, err = checkGuests(cfg)
		if err := add(err); err != nil {
			return 0, 0, err
		}
	}
	if len(all.Problems) == 0 {
		return taken, budget, nil
	}
	slices.SortStableFunc(all.Problems, func(a, b config.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return 0, 0, all
}

func checkSources(ctx context.Context, cfg *config.Config) error {
	_, err := parseAllowList(ctx, cfg)
	return err
}

// checkGuests applies every rule to the guests that comes before compilation, to each by
// itself and to what they come to together.
func checkGuests(cfg *config.Config) (taken, budget uint64, err error) {
	rules := runtimeConfig(cfg, nil, nothingKept(), nil)
	guests, problems := readGuests(cfg)
	all, routes := &config.Error{Problems: problems}, map[string]string{}
	for _, g := range guests {
		info, err := runtime.Check(rules, g.spec)
		var refused *runtime.LoadError
		if errors.As(err, &refused) {
			for _, p := range refused.Problems {
				if p.Item == g.spec.Name {
					p.Item = "" // the position says it
				}
				all.Problems = append(all.Problems, cfg.Problem(g.path+keyOf(&g, p.Rule), p.String()))
			}
		} else if err != nil {
			return 0, 0, err
		}
		if info != nil {
			taken += info.Reserves
		}
		for _, r := range routesOf(info) {
			if by, taken := routes[r]; taken {
				all.Problems = append(all.Problems, cfg.Problem(g.path+keyOf(&g, "route"), "guest "+by+" takes the "+r+" already: there is one guest for each"))
			}
			routes[r] = g.spec.Name
		}
	}
	if budget = rules.Budget(); taken > budget {
		all.Problems = append(all.Problems, cfg.Problem("guest_memory", fmt.Sprintf("the guests come to %s at their limits, machine code not counted, and may have %s: lower limits.instances or limits.memory of some, or raise it", mebibytes(taken), mebibytes(budget))))
	}
	if len(all.Problems) > 0 {
		return 0, 0, all
	}
	return taken, budget, nil
}

// mebibytes writes a size for people, rounded up.
func mebibytes(n uint64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }

// keyOf is the key of a guest, or of a policy, that a broken rule is about.
func keyOf(g *located, rule string) string {
	policy := g.spec.Policy != nil
	switch {
	case rule == "parameters":
		return ".parameters"
	case rule == "spec/name" && (!policy || g.spec.Name != g.typ):
		return ".name"
	case policy:
		return ".type"
	case rule == "spec/sha256":
		return ".sha256"
	case rule == "limit/memory", rule == "limit/guest-memory":
		return ".limits.memory"
	case strings.HasPrefix(rule, "capability/not-"):
		return ".grants"
	}
	return ".module"
}

// routesOf lists what a guest would be the only one to take.
func routesOf(info *runtime.Info) (routes []string) {
	if info == nil || info.Manifest == nil {
		return nil
	}
	if info.Manifest.Has(abi.RoleHandler) {
		for _, t := range info.Manifest.ActionTypes {
			routes = append(routes, "action type "+t.Type)
		}
	}
	for _, d := range info.Manifest.Dialects {
		routes = append(routes, "dialect "+d)
	}
	return routes
}
