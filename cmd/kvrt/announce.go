package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/server"
)

// announce says what was loaded, where the daemon listens and what to try next.
func announce(w io.Writer, cfg *config.Config, s *stack, srv *server.Server) error {
	guests := s.runtime.Guests()
	fmt.Fprintf(w, "kvrt %s: %d guests, generation %d\n\n", srv.Version(), len(guests), s.runtime.Generation())
	t := newTable("GUEST", "VERSION", "ROLES", "HANDLES", "SHA256", "GRANTS", "FUEL", "SOURCE")
	for i := range guests {
		g := &guests[i]
		m := g.Info.Manifest
		t.row(g.Spec.Name, m.Version, joinRoles(m.Roles), handles(g), shortDigest(g.Info.SHA256), strings.Join(g.Spec.Grants, ","),
			strconv.FormatUint(g.Limits.Fuel, 10), g.Spec.Source)
	}
	if err := t.write(w); err != nil {
		return err
	}
	sources := "none: every remote source is refused"
	if len(cfg.Fetch.AllowedSources) > 0 {
		sources = strings.Join(cfg.Fetch.AllowedSources, ", ")
	}
	path := srv.SocketPath()
	if abs, err := filepath.Abs(path); err == nil {
		path = abs // the commands below may be tried elsewhere
	}
	http := ""
	if p := srv.HTTPPath(); p != "" {
		http = "\nhttp      " + p + " (POST /v1/formulate)"
	}
	peers := ""
	if s.peers != nil {
		peers = "\npeers     none is served"
		if at := s.peers.Addresses(); len(at) > 0 {
			peers = "\npeers     " + strings.Join(at, ", ")
		}
	}
	fmt.Fprintf(w, "\nsocket    %s%s\nadmin     http://%s (/v1/status, /metrics, /-/ready)%s\nsources   %s\nfuel      a guest is stopped when its call has executed that many instructions\n", path, http, srv.AdminAddr(), peers, sources)

	socket, admin := "", ""
	def := config.Default().Listen
	if path != def.Socket {
		socket = " --socket " + path
	}
	if srv.AdminAddr() != def.Admin {
		admin = " --admin " + srv.AdminAddr()
	}
	_, err := fmt.Fprintf(w, "\nnext:\n  kvrt submit%s envelope.json\n  kvrt status%s\n  curl http://%s/metrics\n\n", socket, admin, srv.AdminAddr())
	return err
}

// handles lists what a guest is the one to take.
func handles(g *runtime.GuestInfo) string {
	var words []string
	for _, t := range g.Info.Manifest.ActionTypes {
		words = append(words, t.Type)
	}
	return strings.Join(append(words, g.Info.Manifest.Dialects...), ",")
}
