package server

import "runtime"

// turns lets few large requests be worked on at once: as trees and frames one takes many
// times the bytes that the budget counts. Small ones do not wait.
type turns chan struct{}

func newTurns() turns { return make(turns, max(2, runtime.GOMAXPROCS(0))) }

// begin waits for a turn if a request of so many bytes needs one; end gives it back.
func (t turns) begin(size int) (taken bool) {
	if size <= keepBuffer {
		return false
	}
	t <- struct{}{}
	return true
}

func (t turns) end(taken bool) {
	if taken {
		<-t
	}
}
