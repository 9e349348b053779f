package gpu

// Driver is what a device has to offer. A driver keeps no books on who uses what: the
// Device releases memory and closes streams only when nothing is in flight on them.
// Methods are safe for concurrent use, except that a stream's Submit is called by one
// goroutine at a time.
type Driver interface {
	Info() Info
	// Alloc makes memory, of the host (reachable by copies without a bounce buffer) or of
	// the device.
	Alloc(kind Kind, size uint64) (Memory, error)
	// Register makes host memory fit for copies. The memory is mapped, not from Go's heap,
	// and stays mapped until Release has returned.
	Register(host []byte) (Memory, error)
	Release(Memory) error
	// Stream opens a stream that reports to sink.
	Stream(sink Sink) (Stream, error)
	// Close ends the driver. Streams are closed and memory is released by then, unless the
	// device was lost.
	Close() error
}

// Adopter is a Driver that can copy to and from device memory of another owner, as a
// serving engine's.
type Adopter interface {
	// Adopt checks that the range lies in one allocation on this device.
	Adopt(addr, size uint64) (Memory, error)
}

// Stream runs batches one after the other.
type Stream interface {
	// Submit starts a batch once all waits are over. It does not wait for them.
	//
	// When started is true, Sink.Ended follows exactly once, possibly before Submit returns,
	// and the arrays are the stream's until then. An error with started means that a part of
	// the batch was taken and the batch has failed: Ended, with the same error, tells when
	// that part is over.
	Submit(seq uint64, c Copies, waits []Wait) (started bool, err error)
	// Close ends the stream, on which nothing is in flight.
	Close() error
}

// Sink learns what became of a stream's batches.
type Sink interface {
	// Ended is called once for each batch that was started, in their order. An error that
	// wraps ErrLost means that the device will never copy again.
	Ended(seq uint64, err error)
}

// Copies are checked copies, in addresses, of equal lengths. Their order is free.
type Copies struct{ Dst, Src, Size []uint64 }

// Wait is what a batch waits for: a batch of a stream of the same driver, or an event of
// the device's own kind, such as a CUevent that a serving engine recorded.
type Wait struct {
	Stream Stream
	Seq    uint64
	Event  uintptr // when not 0
}

// Memory is a stretch of memory in a driver's addresses.
type Memory struct {
	Kind Kind
	Addr uint64
	Size uint64
	// Chunk is how many bytes were registered at a time, from Addr on; no copy may cross
	// such a border. 0: all at once.
	Chunk uint64
	// Host is the memory as the host sees it, nil where it must not touch it.
	Host []byte
}

// Kind says where memory lies.
type Kind uint8

// Kinds of memory.
const (
	HostMemory Kind = iota
	DeviceMemory
)

// Info describes a device.
type Info struct {
	Driver string // "hostmem", "cuda"
	Name   string // of the device
	Memory uint64 // bytes of device memory; 0: not known
	Detail string // what a person wants to know: the library, its version, how it copies
}
