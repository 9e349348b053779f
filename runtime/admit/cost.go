package admit

// CostModel names the cost model of this version. The same module costs the same
// under it, on every engine and every later version.
const CostModel = "fuel/1"

// The costs in excess of the 1 that an instruction is.
const (
	// For memory.grow, table.grow and ref.func, an engine leaves compiled
	// code: wazero takes 40 to 60 ns, where others take 0.1 to 5.
	costLeave = 63
	// Multiplication, division and square roots of floating-point numbers, of scalars
	// and of vectors, take Intel's processors 40 to 60 ns where a number is subnormal,
	// which no one can know in advance: 20 times what others take at worst.
	costSubnormal = 15
	// Bytes that memory.fill, memory.copy and memory.init move for 1,
	// rounded down, as a power of two.
	bulkBytesLog2 = 4
	// What a page that a memory grows by costs, as a power of two: as much
	// as filling its 64 KiB.
	growPageLog2 = 16 - bulkBytesLog2
)

// What an entry of a function weighs in depth, in bytes, unless it is less than
// weightLeast: so much for each parameter, local and operand, and so much more.
const (
	weightSlot  = 16
	weightFrame = 64
	// At this weight a depth of 256 KiB holds 1,820 calls. Engines may bound
	// the number of calls as well: wazero's interpreter stops at 2,000.
	weightLeast = 144
)

// DefaultDepth is the depth that calls may reach where nothing else is asked
// for, in bytes.
const DefaultDepth = 256 << 10

// weight is what an entry of a function weighs.
func weight(slots int) int { return max(weightSlot*slots+weightFrame, weightLeast) }
