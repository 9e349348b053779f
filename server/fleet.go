package server

import (
	"github.com/kvrt/kvrt/hint"
)

// Fleet is the workers and what their KV events tell.
type Fleet interface {
	// Seed is given every routing context before the policies see it.
	Seed(*hint.Context) error
}
