package peer

import "testing"

func TestRules(t *testing.T) {
	a, b, c := Identity{Name: "a"}, Identity{Name: "b"}, Identity{UID: 7}
	r := Rules{{Peer: a, Namespaces: []string{"x", "y"}}, {Peer: a, Namespaces: []string{"z"}}, {Peer: c, All: true}}
	for _, c := range []struct {
		id   Identity
		ns   string
		read bool
		all  bool
	}{
		{a, "x", true, false}, {a, "z", true, false}, {a, "", false, false}, {a, "xy", false, false},
		{b, "x", false, false}, {c, "anything", true, true}, {Identity{}, "x", false, false}, {Identity{Name: "a", UID: 7}, "x", false, false},
	} {
		if got := r.MayRead(c.id, []byte(c.ns)); got != c.read {
			t.Errorf("%v reads %q: %v", c.id, c.ns, got)
		}
		if got := r.MayMap(c.id); got != c.all {
			t.Errorf("%v maps: %v", c.id, got)
		}
	}
	if (Rules)(nil).MayRead(a, nil) || (Rules)(nil).MayMap(a) {
		t.Error("no rules let somebody in")
	}
}

func TestRulebook(t *testing.T) {
	var b Rulebook
	a := Identity{Name: "a"}
	may := func() [2]bool { return [2]bool{b.MayRead(a, []byte("x")), b.MayMap(a)} }
	if may() != [2]bool{} {
		t.Error("no rules let somebody in")
	}
	b.Set(Rules{{Peer: a, Namespaces: []string{"x"}}})
	if may() != [2]bool{true, false} {
		t.Error(may())
	}
	b.Set(Rules{{Peer: a, All: true}})
	if may() != [2]bool{true, true} {
		t.Error(may())
	}
	b.Set(nil)
	if may() != [2]bool{} {
		t.Error("rules that were taken away still hold")
	}
}
