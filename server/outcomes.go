package server

import (
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// Dispatched hears of every envelope that handlers ran for, before it is answered. The
// arguments belong to the server: what is kept is copied.
type Dispatched interface {
	Dispatched(id hint.Identity, messageID []byte, results []hint.Result)
}

// dispatched tells of the last dispatch, whether or not it failed as a whole: a handler
// may have accepted an action before that.
func (s *Server) dispatched(id hint.Identity, res *runtime.Response) {
	if s.cfg.Dispatched != nil && len(res.Results) > 0 {
		s.cfg.Dispatched.Dispatched(id, res.MessageID(), res.Results)
	}
}
