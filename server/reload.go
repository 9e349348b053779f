package server

import (
	"context"
	"time"
)

// Reload reads the configuration again and applies it. A refusal leaves everything as
// it was.
func (s *Server) Reload(ctx context.Context) error {
	defer s.trimmer.soon()
	s.changes.Lock()
	defer s.changes.Unlock()
	return s.reloadLocked(ctx)
}

func (s *Server) reloadLocked(ctx context.Context) error {
	if s.cfg.Reload == nil {
		return errNoReload
	}
	s.notifyReloading()
	s.snapshot()
	err := s.cfg.Reload(ctx)
	s.notify("READY=1")
	st := s.LastReload()
	st.Time, st.OK, st.Error = time.Now(), err == nil, ""
	if err == nil {
		st.LastOK = st.Time
	} else {
		st.Error = err.Error()
	}
	s.mu.Lock()
	s.reload = st
	s.mu.Unlock()
	if err != nil {
		s.log.Error("reload refused; everything stays as it was", "error", err)
		return err
	}
	s.log.Info("reloaded", "generation", s.cfg.Runtime.Generation())
	return nil
}
