package server

import (
	"net"
	"strconv"
	"strings"
)

// notify tells systemd of a change of state, when it wants to know.
func (s *Server) notify(state string) {
	path := s.cfg.NotifySocket
	if path == "" || path == "-" {
		return
	}
	if strings.HasPrefix(path, "@") {
		path = "\x00" + path[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		s.log.Warn("systemd could not be told", "state", state, "error", err)
		return
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		s.log.Warn("systemd could not be told", "state", state, "error", err)
	}
}

// notifyReloading begins a reload, whose end is READY=1. systemd matches the two by
// the time, and waits for ever without it.
func (s *Server) notifyReloading() {
	if usec, ok := monotonicUsec(); ok {
		s.notify("RELOADING=1\nMONOTONIC_USEC=" + strconv.FormatInt(usec, 10))
	}
}
