package admit

// plan is what the validator notes of a body for the rewriter: where the
// instructions are that it acts upon, and how the code falls into regions.
//
// A region is code of which either all is executed or, unless something traps,
// none. It need not be in one place: what follows a block that is only left at
// its end belongs to the region that the block stands in. A region is charged as
// a whole, where it begins.
type plan struct {
	notes   []note
	regions []region
	forks   []fork
	blocks  []block
	region  int32 // where instructions are counted at present

	calls bool // the body calls a function
	exits bool // a conditional branch leaves the body
	bulk  bool // the body has a bulk instruction
}

// note is an instruction that the rewriter acts upon.
type note struct {
	offset int32
	arg    int32
	kind   noteKind
	extra  uint8
}

type noteKind uint8

const (
	// The offset of these is that of the instruction.
	noteOpen   noteKind = iota // arg: the block
	noteElse                   // extra: 1 where the code before it can reach it
	noteEnd                    // extra: 1 where the code before it can reach it
	noteBranch                 // arg: the index of the frame that it goes to
	noteReturn                 // return, or a branch that amounts to it
	noteCall                   // extra: callHost where it may be of the host's
	noteBulk                   // extra: which; arg: the table of a table.grow
	// The offset of these is the one past the instruction.
	noteRegion // arg: the region that begins
	noteNaN    // extra: the lanes, and nanShows
	noteDead   // code that cannot run begins
	// What had been dead ends before the instruction at the offset.
	noteLive
)

// nanShows is set in a noteNaN where NaN bits could be seen.
const nanShows = 0x80

func (n *note) lanes() lanes { return lanes(n.extra &^ nanShows) }

// callHost marks a call that may leave the module. The host is not called in
// overdraft.
const callHost = 1

// The bulk instructions by how they are charged.
const (
	bulkMemory uint8 = iota
	bulkTable
	bulkMemoryGrow
	bulkTableGrow
)

type region struct {
	cost int64
	loop bool // it begins a loop
}

// fork is an end of the region from, after which either region a or region b is
// executed, and which is the only way to them. Where a is -1 there is only b;
// where b is -1 the rest is unknown.
type fork struct{ from, a, b int32 }

// block describes a block, loop or if.
type block struct {
	op    byte
	calls bool // something in it calls a function
	whole bool // it is an if with an else
}

// control is what a frame keeps for the plan.
type control struct {
	index  int32 // of the frame
	block  int32
	region int32 // where it stands
	outer  int32 // outermost frame that branches in it go to, itself included
	edges  int32 // ways to what follows, but for the last
	fork   int32 // one past the fork that is one of them
	split  int32 // the fork of an if
	calls  bool
}

func (p *plan) start(offset int) {
	p.notes, p.forks, p.blocks = p.notes[:0], p.forks[:0], p.blocks[:0]
	p.regions = append(p.regions[:0], region{})
	p.region, p.calls, p.exits, p.bulk = 0, false, false, false
	p.note(noteRegion, offset, 0, 0)
}

func (p *plan) note(kind noteKind, offset int, extra uint8, arg int32) int32 {
	p.notes = append(p.notes, note{offset: int32(offset), kind: kind, extra: extra, arg: arg})
	return int32(len(p.notes) - 1)
}

// canonicalise says that the bits of a NaN could be seen.
func (p *plan) canonicalise(note int32) { p.notes[note].extra |= nanShows }

// keepNaNs takes back every canonicalise.
func (p *plan) keepNaNs() {
	for i := range p.notes {
		if p.notes[i].kind == noteNaN {
			p.notes[i].extra &^= nanShows
		}
	}
}

func (p *plan) begin(offset int, loop bool) int32 {
	p.regions = append(p.regions, region{loop: loop})
	p.region = int32(len(p.regions) - 1)
	p.note(noteRegion, offset, 0, p.region)
	return p.region
}

func (p *plan) split(from, a int32) int32 {
	p.forks = append(p.forks, fork{from: from, a: a, b: -1})
	return int32(len(p.forks) - 1)
}

// settle moves costs forward: what both ends of a fork cost is charged before
// it. A fork comes before the forks of the regions that it leads to.
func (p *plan) settle() {
	for i := len(p.forks) - 1; i >= 0; i-- {
		f := p.forks[i]
		if f.b < 0 {
			continue
		}
		common := p.regions[f.b].cost
		if f.a >= 0 {
			common = min(common, p.regions[f.a].cost)
			p.regions[f.a].cost -= common
		}
		p.regions[f.b].cost -= common
		p.regions[f.from].cost += common
	}
}

// planning reports whether the code at hand concerns the plan.
func (v *validator) planning() bool { return v.plan != nil && v.live }

func (v *validator) weigh(cost int64) {
	if v.planning() {
		v.plan.regions[v.plan.region].cost += cost
	}
}

// carry weighs the values that a branch takes along, or that a block has at either end.
// They cost nothing to name, and an engine moves each. What stock tools make has one at
// most, which is free.
func (v *validator) carry(values int) {
	if values > 1 {
		v.weigh(int64(values - 1))
	}
}

// bulk notes a bulk instruction. Its charge is followed by a branch.
func (v *validator) bulk(offset int, kind uint8, table int) {
	v.branching(offset)
	if !v.planning() {
		return
	}
	if kind == bulkMemoryGrow || kind == bulkTableGrow {
		v.weigh(costLeave)
	}
	v.plan.bulk = true
	v.plan.note(noteBulk, offset, kind, int32(table))
}

func (v *validator) calling(offset int, leaves bool) {
	if !v.planning() {
		return
	}
	v.plan.calls, v.top.calls = true, true
	extra := uint8(0)
	if leaves {
		extra = callHost
	}
	v.plan.note(noteCall, offset, extra, 0)
}

// opening notes a block before its frame is there, opened after.
func (v *validator) opening(offset int, op byte) {
	if v.planning() {
		v.plan.note(noteOpen, offset, 0, int32(len(v.plan.blocks)))
		v.plan.blocks = append(v.plan.blocks, block{op: op})
	}
}

func (v *validator) opened() {
	if !v.planning() || !v.ok() {
		return
	}
	p := v.plan
	index := int32(len(v.frames) - 1)
	v.top.control = control{index: index, outer: index, block: int32(len(p.blocks) - 1), region: p.region}
	switch v.top.op {
	case opLoop:
		p.begin(v.pos, true)
	case opIf:
		from := p.region
		v.top.split = p.split(from, p.begin(v.pos, false))
	}
}

// elsing notes an else while its first arm is open, elsed after.
func (v *validator) elsing(offset int) {
	if v.plan == nil || !v.top.born {
		return
	}
	reached := uint8(0)
	if v.live {
		reached = 1
		v.top.edges++
	} else {
		v.plan.note(noteLive, offset, 0, 0)
	}
	v.plan.blocks[v.top.block].whole = true
	v.plan.note(noteElse, offset, reached, 0)
}

func (v *validator) elsed() {
	if v.planning() {
		v.plan.forks[v.top.split].b = v.plan.begin(v.pos, false)
	}
}

// how says when a branch is taken.
type how uint8

const (
	always how = iota
	sometimes
	byTable
)

// branch notes a way from here to the label of a frame. Of br_table, each is
// noted once.
func (v *validator) branch(offset int, to *frame, taken how) {
	if !v.planning() || !v.ok() {
		return
	}
	p := v.plan
	v.top.outer = min(v.top.outer, to.index)
	if to.index == 0 && taken == always {
		p.note(noteReturn, offset, 0, 0)
		return
	}
	if to.index == 0 {
		p.exits = true
	}
	p.note(noteBranch, offset, 0, to.index)
	to.edges++
	if taken == byTable {
		return // the region has many ends, which no fork describes
	}
	var k int32
	if from := p.region; taken == sometimes {
		k = p.split(from, p.begin(v.pos, false))
	} else {
		k = p.split(from, -1)
	}
	to.fork = k + 1
}

// ending notes an end while its frame is open, ended after.
func (v *validator) ending(offset int) frame {
	closed := *v.top
	if v.plan == nil || !closed.born {
		return closed
	}
	reached := uint8(0)
	if v.live {
		reached = 1
		closed.edges++
	} else {
		v.plan.note(noteLive, offset, 0, 0)
	}
	v.plan.note(noteEnd, offset, reached, 0)
	return closed
}

func (v *validator) ended(closed frame) {
	if v.plan == nil || !closed.born || v.top == nil {
		return
	}
	p := v.plan
	p.blocks[closed.block].calls = closed.calls
	v.top.calls = v.top.calls || closed.calls
	v.top.outer = min(v.top.outer, closed.outer)

	reached := !closed.dead // the end, by the code before it
	edges := closed.edges
	if closed.op == opIf {
		edges++ // the missing else
	}
	switch {
	case closed.outer >= closed.index:
		// There is no way out but the end.
		p.region = closed.region
	case closed.op == opLoop && reached, closed.op == opBlock && reached && edges == 1:
		// What follows belongs to the code before the end.
	default:
		follows := p.begin(v.pos, false)
		if edges != 1 || closed.op == opLoop {
			return
		}
		switch {
		case closed.fork > 0:
			p.forks[closed.fork-1].b = follows
		case closed.op == opIf:
			p.forks[closed.split].b = follows
		}
	}
}
