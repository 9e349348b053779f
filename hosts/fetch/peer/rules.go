package peer

import "sync/atomic"

// Rules is an [Authorizer] that is a list: a peer may read what any rule for it names.
// An empty list lets nobody read anything.
type Rules []Rule

// Rule is about one peer.
type Rule struct {
	Peer       Identity
	Namespaces []string // exactly these
	All        bool     // every namespace, by the shared slab too
}

// MayRead looks for a rule that names the namespace.
func (r Rules) MayRead(id Identity, namespace []byte) bool {
	for i := range r {
		if r[i].Peer != id {
			continue
		}
		if r[i].All {
			return true
		}
		for _, n := range r[i].Namespaces {
			if n == string(namespace) {
				return true
			}
		}
	}
	return false
}

// MayMap looks for a rule for every namespace.
func (r Rules) MayMap(id Identity) bool {
	for i := range r {
		if r[i].Peer == id && r[i].All {
			return true
		}
	}
	return false
}

// Rulebook is an [Authorizer] whose rules can be replaced, at any time and at once. Its
// zero value lets nobody read anything.
type Rulebook struct{ rules atomic.Pointer[Rules] }

// Set takes other rules.
func (b *Rulebook) Set(r Rules) { b.rules.Store(&r) }

func (b *Rulebook) now() Rules {
	if r := b.rules.Load(); r != nil {
		return *r
	}
	return nil
}

// MayRead asks the rules of the moment.
func (b *Rulebook) MayRead(id Identity, namespace []byte) bool { return b.now().MayRead(id, namespace) }

// MayMap asks the rules of the moment.
func (b *Rulebook) MayMap(id Identity) bool { return b.now().MayMap(id) }
