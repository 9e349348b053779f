package runtime

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"unicode/utf8"

	"github.com/kvrt/kvrt/abi"
)

// program is what a Call has for guests that are written as programs: with output in
// pieces, random bytes, waiting and exits. It costs nothing where it is not used.
type program struct {
	text   []byte // of a line that has not ended
	level  abi.Level
	random *rand.ChaCha8
	seeded bool
	exit   *Trap // why the call ended, when the engine does not know
}

// Print writes text that comes in pieces. Each line of it is one line of the guest's
// log, as [Call.Log] writes it; of a line, abi.MaxLogLine bytes are kept. The last line
// ends with the call.
func (c *Call) Print(level abi.Level, text []byte) {
	p := &c.program
	if level != p.level {
		c.endLine()
		p.level = level
	}
	for {
		if c.logLines >= c.limits.LogLines { // nothing of it is kept
			c.logDropped += uint64(bytes.Count(text, []byte("\n")))
			return
		}
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		if room := abi.MaxLogLine - len(p.text); len(line) > room {
			line = line[:room]
		}
		if p.text = append(p.text, line...); !ended {
			return
		}
		c.line()
		text = rest
	}
}

// line writes the line that is there. What is not UTF-8 of it is replaced.
func (c *Call) line() {
	text := c.program.text
	c.program.text = text[:0]
	for n := len(text); n == abi.MaxLogLine && len(text) > n-utf8.UTFMax && !utf8.Valid(text); {
		text = text[:len(text)-1] // cut in the middle of a character, perhaps
	}
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\ufffd"))
	}
	if c.LogEnabled(c.program.level) {
		c.Log(c.program.level, text)
	} else {
		c.logLines++
	}
}

// endLine writes a line that was not ended.
func (c *Call) endLine() {
	if len(c.program.text) > 0 {
		c.line()
	}
}

// Random fills p. The bytes follow from the call's clocks, so that a recorded call can
// be replayed; while an instance is started they are the same always, so that all
// instances of a guest are alike. They are no secret.
func (c *Call) Random(p []byte) {
	if c.program.random == nil {
		c.program.random = new(rand.ChaCha8)
	}
	if !c.program.seeded {
		c.program.seeded = true
		var seed [32]byte
		if !c.starting {
			binary.LittleEndian.PutUint64(seed[:], uint64(c.Now()))
			binary.LittleEndian.PutUint64(seed[8:], uint64(c.Monotonic()))
		}
		c.program.random.Seed(seed)
	}
	c.program.random.Read(p) // never fails
}

// Wait moves the call's clocks on by ns: nobody waits.
func (c *Call) Wait(ns uint64) {
	const most = 1 << 60 // the clocks stay far from overflowing
	c.readClocks()
	c.Random(nil) // its seed is from the clocks that the call began with
	c.wall = min(c.wall+int64(min(ns, most)), most<<2-1)
	c.mono = min(c.mono+int64(min(ns, most)), most<<2-1)
}

// Exit ends the call as a trap of the guest. It does not return: a host function calls
// it last, and the engine takes it for a panic.
func (c *Call) Exit(code uint32) {
	c.program.exit = &Trap{TrapGuest, fmt.Sprintf("the guest exited with code %d", code)}
	panic(c.program.exit)
}

// invoke calls an export of the instance.
func (in *instance) invoke(f Export, stack []uint64) error {
	err := in.wasm.Call(in.call, f, stack)
	if err != nil && in.call.program.exit != nil {
		return in.call.program.exit
	}
	return err
}
