package peer

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
