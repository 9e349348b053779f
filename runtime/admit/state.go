package admit

// state is what is known at a point of the code.
type state struct {
	local  bool // the local of the fuel is right
	global bool // the global of the fuel is right; one of the two always is
	// The depth of this call is in its global: for certain, or on some way
	// to this point.
	deep, maybeDeep bool
	// On some way to this point there was a call, and no check since. The
	// next charge checks: else each of a thousand calls could, on the way
	// back, run its rest in overdraft.
	called bool
	// The fuel was lowered and not checked since.
	unchecked bool
}

// label is a block that is open, and what is known on the ways to its label.
type label struct {
	block *block
	saved state // before an if
	join  state
	edges int
}

func (l *label) edge(s state) {
	if l.edges++; l.edges == 1 {
		l.join = s
		return
	}
	l.join.local = l.join.local && s.local
	l.join.global = l.join.global && s.global
	l.join.deep = l.join.deep && s.deep
	l.join.maybeDeep = l.join.maybeDeep || s.maybeDeep
	l.join.called = l.join.called || s.called
	l.join.unchecked = l.join.unchecked || s.unchecked
}
