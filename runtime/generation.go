package runtime

// generation is one immutable set of loaded guests.
type generation struct {
	number    uint64
	guests    []*guest // in the order of the specifications
	byType    map[string]int32
	byDialect map[string]int32
	policies  []int32 // in the order in which they run
}

// retiree is what is still asked of a guest that was replaced. The guest itself, with its
// module, is not kept for that.
type retiree struct {
	name   string
	closed <-chan struct{}
}

func (g *guest) retire() retiree { return retiree{g.spec.Name, g.pool.closed} }

// handler finds the guest of an action type. A nil generation has none.
func (gen *generation) handler(actionType []byte) (id int32, known bool) {
	if gen == nil {
		return 0, false
	}
	id, known = gen.byType[string(actionType)]
	return id, known
}
