package server

import "sync/atomic"

// Stats counts what the data socket has done. Totals are since the server was made.
type Stats struct {
	Connections int    // open now
	Accepted    uint64 // connections
	Refused     uint64 // connections that were over the cap, or came while draining
	BytesIn     uint64
	BytesOut    uint64
	Requests    [numOps]uint64   // by operation, those without a reply included
	Oneway      uint64           // submits without a reply
	Errors      [numCodes]uint64 // by code, those that nobody was told of included
	Buffered    int64            // bytes that buffers of large frames, and of large bodies, take
	HTTP        [6]uint64        // requests of routers by the first digit of their status
}

// OpNames are the names of the operations that [Stats] counts; an empty name is not
// counted.
func (s *Stats) OpNames() [numOps]string {
	var names [numOps]string
	for i := range names {
		if op(i).known() {
			names[i] = op(i).String()
		}
	}
	return names
}

// counters are the totals of one connection, or of all that are closed. A connection
// adds to its own once per batch of frames.
type counters struct {
	bytesIn, bytesOut, oneway atomic.Uint64
	requests                  [numOps]atomic.Uint64
	errors                    [numCodes]atomic.Uint64
}

func (c *counters) addTo(s *Stats) {
	s.BytesIn += c.bytesIn.Load()
	s.BytesOut += c.bytesOut.Load()
	s.Oneway += c.oneway.Load()
	for i := range c.requests {
		s.Requests[i] += c.requests[i].Load()
	}
	for i := range c.errors {
		s.Errors[i] += c.errors[i].Load()
	}
}

// merge takes over the totals of a connection that has closed.
func (c *counters) merge(o *counters) {
	c.bytesIn.Add(o.bytesIn.Load())
	c.bytesOut.Add(o.bytesOut.Load())
	c.oneway.Add(o.oneway.Load())
	for i := range o.requests {
		c.requests[i].Add(o.requests[i].Load())
	}
	for i := range o.errors {
		c.errors[i].Add(o.errors[i].Load())
	}
}

// Stats adds up the connections.
func (s *Server) Stats() Stats {
	st := Stats{Buffered: s.budget.used.Load()}
	if s.routers != nil {
		for i := range st.HTTP {
			st.HTTP[i] = s.routers.statuses[i].Load()
		}
	}
	if s.socket == nil {
		return st
	}
	k := s.socket
	st.Accepted, st.Refused = k.accepted.Load(), k.refused.Load()
	k.mu.Lock()
	defer k.mu.Unlock()
	st.Connections = len(k.conns)
	k.gone.addTo(&st)
	for c := range k.conns {
		c.counters.addTo(&st)
	}
	return st
}
