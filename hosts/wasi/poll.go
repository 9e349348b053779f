package wasi

import (
	"encoding/binary"

	"github.com/kvrt/kvrt/runtime"
)

// The layout of a subscription and of an event.
const (
	sizeSubscription = 48
	offTag           = 8  // u8
	offClock         = 16 // u32
	offTimeout       = 24 // u64, ns
	offFlags         = 40 // u16, bit 0: the timeout is a point in time
	sizeEvent        = 32
	offErrno         = 8  // u16
	offType          = 10 // u8
)

// poll is poll_oneoff: all that is waited for has come. Waiting for a time moves the
// call's clocks there, so that a program that sleeps goes on at once and finds that it
// has slept. The lists of subscriptions and events may overlap: each event is written
// after its subscription was read.
func poll(c *runtime.Call, mem []byte, stack []uint64) uint64 {
	n := uint64(uint32(stack[2]))
	if n == 0 {
		return inval
	}
	from, in := run(mem, stack[0], sizeSubscription*n)
	to, in2 := run(mem, stack[1], sizeEvent*n)
	count, in3 := run(mem, stack[3], 4)
	if !in || !in2 || !in3 {
		return fault
	}
	if !c.ChargeCopy((sizeSubscription + sizeEvent) * n) {
		return inval
	}
	var wait uint64
	for i := range n {
		sub, event := from[sizeSubscription*i:][:sizeSubscription], to[sizeEvent*i:][:sizeEvent]
		user, tag := binary.LittleEndian.Uint64(sub), sub[offTag]
		errno := uint16(badf)
		if tag == 0 {
			errno = inval
			if ns, known := now(c, binary.LittleEndian.Uint32(sub[offClock:])); known {
				errno = ok
				timeout := binary.LittleEndian.Uint64(sub[offTimeout:])
				if sub[offFlags]&1 != 0 {
					timeout = uint64(max(int64(min(timeout, 1<<63-1))-ns, 0))
				}
				wait = max(wait, timeout)
			}
		}
		clear(event)
		binary.LittleEndian.PutUint64(event, user)
		binary.LittleEndian.PutUint16(event[offErrno:], errno)
		event[offType] = tag
	}
	if wait > 0 {
		c.Wait(wait)
	}
	binary.LittleEndian.PutUint32(count, uint32(n))
	return ok
}
