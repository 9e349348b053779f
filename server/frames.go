package server

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync/atomic"
)

// frameHead is the length in front of a frame, in bytes.
const frameHead = 4

// Buffers start with firstBuffer bytes. One that a large frame made larger than
// keepBuffer is given up after it.
const (
	firstBuffer = 16 << 10
	keepBuffer  = 64 << 10
)

// budget is what the buffers of all connections may take beyond keepBuffer each.
type budget struct {
	used  atomic.Int64
	limit int64
}

func (b *budget) take(n int) bool {
	if b == nil {
		return true
	}
	if b.used.Add(int64(n)) > b.limit {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

func (b *budget) give(n int) {
	if b != nil {
		b.used.Add(-int64(n))
	}
}

// tooLarge is a length that is not allowed. The bytes behind it are not read, so
// framing is lost.
type tooLarge struct{ size, limit int }

func (e *tooLarge) Error() string {
	return fmt.Sprintf("a frame of %d bytes, %d are allowed", e.size, e.limit)
}

// errBudget is a frame for which there is no memory now.
type errBudget struct{ limit int64 }

func (e errBudget) Error() string {
	return fmt.Sprintf("the large frames of all connections take more than %d bytes together: try again later", e.limit)
}

// frames cuts a stream into frames. It reads as much as its buffer takes, so that many
// small frames cost one read.
type frames struct {
	buf    []byte
	r, w   int // what is unread lies in buf[r:w]
	limit  int // of a frame in bytes
	budget *budget
}

// next returns the next frame that is complete in the buffer, valid until fill.
func (f *frames) next() (frame []byte, ok bool, err error) {
	n, ok := f.size()
	if !ok {
		return nil, false, nil
	}
	if n > f.limit {
		return nil, false, &tooLarge{n, f.limit}
	}
	if f.w-f.r-frameHead < n {
		return nil, false, nil
	}
	f.r += frameHead + n
	return f.buf[f.r-n : f.r : f.r], true, nil
}

// size is the length of the frame that begins in the buffer.
func (f *frames) size() (int, bool) {
	if f.w-f.r < frameHead {
		return 0, false
	}
	return int(binary.BigEndian.Uint32(f.buf[f.r:])), true
}

// partial tells whether a frame has begun and not ended.
func (f *frames) partial() bool { return f.r < f.w }

// fill makes one read. It wants next to have returned everything.
func (f *frames) fill(src io.Reader) (int, error) {
	if err := f.makeRoom(); err != nil {
		return 0, err
	}
	n, err := src.Read(f.buf[f.w:])
	f.w += n
	if n > 0 {
		err = nil // it comes again with the next read
	}
	return n, err
}

// makeRoom sees to free space behind w. A buffer grows with the bytes that have come,
// not with the length that was announced.
func (f *frames) makeRoom() error {
	if f.r == f.w {
		f.r, f.w = 0, 0
		if len(f.buf) > keepBuffer {
			f.release()
		}
	}
	if f.buf == nil {
		f.buf = make([]byte, firstBuffer)
	}
	held := f.w - f.r
	if f.r > 0 && len(f.buf)-f.w < len(f.buf)/4 {
		from := f.buf[f.r:f.w]
		if len(f.buf) > keepBuffer && held < firstBuffer {
			f.release()
			f.buf = make([]byte, firstBuffer)
		}
		copy(f.buf, from)
		f.r, f.w = 0, held
	}
	if f.w == len(f.buf) {
		return f.grow()
	}
	return nil
}

func (f *frames) grow() error {
	size := 2 * len(f.buf)
	if n, ok := f.size(); ok {
		size = max(min(size, frameHead+n), len(f.buf)+1)
	}
	if more := max(0, size-keepBuffer) - max(0, len(f.buf)-keepBuffer); !f.budget.take(more) {
		return errBudget{f.budget.limit}
	}
	buf := make([]byte, size)
	held := copy(buf, f.buf[f.r:f.w])
	f.buf, f.r, f.w = buf, 0, held
	return nil
}

// release gives the buffer up.
func (f *frames) release() {
	f.budget.give(max(0, len(f.buf)-keepBuffer))
	f.buf, f.r, f.w = nil, 0, 0
}

// beginFrame leaves room for the length, and endFrame writes it: at is where the frame
// began.
func beginFrame(b []byte) ([]byte, int) { return append(b, 0, 0, 0, 0), len(b) }

func endFrame(b []byte, at int) []byte {
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-frameHead))
	return b
}
