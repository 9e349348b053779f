package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"time"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// flushBytes is how much may be written behind before it goes out, although more
// requests are in the buffer already.
const flushBytes = 64 << 10

// lastLook is how long a connection that is told to stop still waits for frames that
// were sent and not read yet.
const lastLook = 5 * time.Millisecond

// conn is one connection: one goroutine, which reads, dispatches and writes.
type conn struct {
	socket *socket
	server *Server
	nc     *net.UnixConn
	in     frames
	out    []byte
	charge int // what out takes of the budget
	q      request
	req    runtime.Request
	res    *runtime.Response
	ask    runtime.FormulateRequest
	formed *runtime.Formulation // nil until the first formulate

	greeted bool
	looked  bool      // told to stop, and has looked for the last time
	seen    uint64    // frames
	timed   uint64    // the frame that the read deadline is for, from 1; 0: none is set
	writeBy time.Time // the write deadline

	followed following
	counters counters
}

func newConn(k *socket, nc *net.UnixConn) *conn {
	return &conn{socket: k, server: k.server, nc: nc, res: k.server.cfg.Runtime.NewResponse(),
		in: frames{limit: k.server.cfg.MaxFrame, budget: k.budget}}
}

// serve runs the connection.
func (c *conn) serve() {
	defer c.end()
	c.nc.SetReadDeadline(time.Now().Add(c.server.cfg.FrameTimeout))
	c.timed = 1
	for c.read() && c.process() {
	}
}

func (c *conn) end() {
	if p := recover(); p != nil {
		c.server.log.Error("a connection has failed", "panic", p, "stack", string(debug.Stack()))
		c.fail(CodeFatal, "the daemon failed under this connection: its log says more", 0)
	}
	c.nc.Close()
	c.endFollowing()
	c.in.release()
	c.socket.budget.give(c.charge)
	c.socket.remove(c)
}

// read waits for more bytes. It is false when the connection is over.
func (c *conn) read() bool {
	for {
		if !c.setDeadline() {
			return c.fail(CodeDraining, "the daemon is going away", 0)
		}
		n, err := c.in.fill(c.nc)
		c.counters.bytesIn.Add(uint64(n))
		switch {
		case n > 0:
			return true
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			if late := c.timed != 0 && !c.socket.stopping.Load(); late && c.greeted {
				return c.fail(CodeFrameTimeout, fmt.Sprintf("the rest of a frame did not come within %v", c.server.cfg.FrameTimeout), 0)
			} else if late {
				return c.fail(CodeFrameTimeout, fmt.Sprintf("no hello came within %v", c.server.cfg.FrameTimeout), 0)
			}
		default:
			var full errBudget
			if errors.As(err, &full) {
				return c.fail(CodeOverloaded, full.Error(), 0)
			}
			return false
		}
	}
}

// setDeadline sees to the read deadline: none while idle, FrameTimeout for a frame that
// has begun. A stopping server ends the connection, but for a frame that has begun and
// for what a last look finds.
func (c *conn) setDeadline() bool {
	if frame := c.seen + 1; !c.greeted {
		// the deadline of the hello stands
	} else if c.in.partial() && c.timed != frame {
		c.nc.SetReadDeadline(time.Now().Add(c.server.cfg.FrameTimeout))
		c.timed = frame
	} else if !c.in.partial() && c.timed != 0 {
		c.nc.SetReadDeadline(time.Time{})
		c.timed = 0
	}
	if !c.socket.stopping.Load() {
		return true
	}
	now, until := time.Now(), time.Unix(0, c.socket.stopBy.Load())
	switch {
	case c.in.partial() && now.Before(until):
		c.nc.SetReadDeadline(until)
	case !c.looked:
		c.looked = true
		c.nc.SetReadDeadline(now.Add(lastLook))
	default:
		return false
	}
	return true
}

// process handles the frames that are complete, and writes the answers in one go. It
// is the path of every hint, and allocates nothing for a well-formed one.
func (c *conn) process() bool {
	for {
		frame, ok, err := c.in.next()
		if err != nil {
			return c.fail(CodeFrameTooLarge, err.Error(), 0)
		}
		if !ok {
			return c.flush()
		}
		c.seen++
		if !c.handle(frame) {
			return false
		}
		if len(c.out) >= flushBytes && !c.flush() {
			return false
		}
	}
}

// handle carries out one request. It is false when the connection is over.
func (c *conn) handle(frame []byte) bool {
	q := &c.q
	bad := q.decode(frame)
	if q.named && q.op.known() {
		c.counters.requests[q.op].Add(1)
	}
	switch {
	case !c.greeted && (bad != nil || q.op != opHello):
		return c.fail(CodeHelloExpected, "the first frame must be a hello", 0)
	case bad != nil && !q.named:
		c.counters.errors[CodeBadRequest].Add(1)
		c.out = appendErrorReply(c.out, opError, 0, CodeBadRequest, "malformed request: "+bad.Error(), bad.offset)
		return true
	case bad != nil:
		c.refuse(CodeBadRequest, "malformed request: "+bad.Error(), bad.offset)
		return true
	}
	switch q.op {
	case opHello:
		if q.version != ProtocolVersion {
			return c.fail(CodeUnsupportedVersion, fmt.Sprintf("protocol version %d is not spoken here: version %d is", q.version, ProtocolVersion), 0)
		}
		c.greeted = true
		c.out = appendHelloReply(c.out, q.seq, c.server.cfg.Version, c.in.limit, c.server.cfg.Runtime.Generation())
	case opPing:
		c.out = appendPingReply(c.out, q.seq, c.server.cfg.Runtime.Generation(), c.server.draining.Load())
	case opSubmit, opFormulate, opFormulateBatch:
		return c.work(len(frame))
	case opFinish, opDiscard, opStatus:
		c.lifecycle()
	case opDescribe:
		c.describe()
	case opOutcomes:
		return c.outcomes()
	case opFollow:
		return c.follow()
	case opFetch:
		return c.fetch()
	case opPutBlock, opGetBlock:
		return c.block()
	default:
		c.refuse(CodeUnknownOp, fmt.Sprintf("this daemon does not know operation %d", q.op), 0)
	}
	return true
}

// work carries out what guests run for.
func (c *conn) work(size int) bool {
	taken := c.server.turns.begin(size)
	defer c.server.turns.end(taken)
	switch c.q.op {
	case opFormulate:
		return c.formulate(size)
	case opFormulateBatch:
		return c.formulateBatch(size)
	}
	return c.submit(size)
}

// submit dispatches one envelope.
func (c *conn) submit(size int) bool {
	q := &c.q
	forward := q.flags&flagForward != 0
	c.req = runtime.Request{Body: q.body, Format: q.format, Dialect: q.dialect, Identity: q.identity, Forward: forward && !q.oneway()}
	err := c.server.cfg.Runtime.Dispatch(&c.req, c.res)
	c.server.dispatched(q.identity, c.res)
	switch {
	case err != nil:
		c.dispatchFailed(err)
	case q.oneway():
		c.counters.oneway.Add(1)
	default:
		at := len(c.out)
		c.out = appendSubmitReply(c.out, q.seq, c.res.Results, forward, c.res.Forward)
		if n := len(c.out) - at - frameHead; n > c.in.limit {
			c.out = c.out[:at]
			c.refuse(CodeReplyTooLarge, fmt.Sprintf("the request was carried out, and its reply of %d bytes is larger than a frame may be", n), 0)
		}
	}
	if size > keepBuffer || cap(c.res.Results) > 256 {
		c.res = c.server.cfg.Runtime.NewResponse() // gives up what a large envelope made large
	}
	return c.chargeOut()
}

// chargeOut accounts for an answer that is large. When there is no room for it, the
// connection ends.
func (c *conn) chargeOut() bool {
	more := max(0, cap(c.out)-keepBuffer-flushBytes) - c.charge
	if more <= 0 {
		return true
	}
	if !c.socket.budget.take(more) {
		c.out = nil
		return c.fail(CodeOverloaded, errBudget{c.socket.budget.limit}.Error(), 0)
	}
	c.charge += more
	return true
}

// dispatchFailed answers an error of the whole request.
func (c *conn) dispatchFailed(err error) {
	code, text, offset := c.failure(err)
	c.refuse(code, text, offset)
}

// failure says how an error of the runtime is told. The log has those of the native side.
func (c *conn) failure(err error) (code Code, text string, offset int) {
	switch e := err.(type) {
	case *hint.MalformedError:
		return CodeMalformed, e.Error(), e.Offset
	case *hint.ActionError:
		return CodeUnencodable, "the composed envelope cannot be written in the output's encoding: " + e.Error(), 0
	case *runtime.ParseError:
		if e.Malformed() {
			return CodeMalformed, e.Error(), 0
		}
		return CodeUnavailable, e.Error(), 0
	case *runtime.FatalError:
		c.server.log.Error("a request failed", "request_id", c.q.identity.RequestID, "error", e)
		return CodeFatal, e.Error(), 0
	}
	code = CodeFatal
	if errors.Is(err, runtime.ErrUnknownDialect) {
		code = CodeUnknownDialect
	} else if errors.Is(err, runtime.ErrIdentity) {
		code = CodeBadRequest
	} else if errors.Is(err, runtime.ErrClosed) {
		code = CodeUnavailable
	}
	return code, err.Error(), 0
}

// lifecycle carries out finish, discard and status.
func (c *conn) lifecycle() {
	q, store := &c.q, c.server.cfg.Store
	if store == nil {
		c.refuse(CodeUnavailable, "this daemon keeps no hints", 0)
		return
	}
	switch q.op {
	case opFinish:
		store.Finish(q.identity, q.aborted)
	case opDiscard:
		store.Discard(q.identity)
	case opStatus:
		st := store.Status(q.identity)
		if !q.oneway() {
			c.out = appendStatusReply(c.out, q.seq, &st)
		}
		return
	}
	if !q.oneway() {
		c.out = appendDone(c.out, q.op, q.seq)
	}
}

// refuse answers the current request with an error, and counts it. A request without a
// reply gets none.
func (c *conn) refuse(code Code, msg string, offset int) {
	c.counters.errors[code].Add(1)
	if !c.q.oneway() {
		c.out = appendErrorReply(c.out, c.q.op, c.q.seq, code, msg, offset)
	}
}

// fail ends the connection and says why. It returns false, for the caller to return.
func (c *conn) fail(code Code, msg string, offset int) bool {
	c.counters.errors[code].Add(1)
	c.server.log.Debug("connection ended", "code", code.String(), "why", msg)
	c.out = appendErrorReply(c.out, opError, 0, code, msg, offset)
	c.flush()
	return false
}

// flush writes what is waiting. A client that does not read is cut off.
func (c *conn) flush() bool {
	if len(c.out) == 0 {
		return true
	}
	// Setting a deadline costs more than a clock read, so one serves for a while.
	timeout := c.server.cfg.WriteTimeout
	if now := time.Now(); c.writeBy.Sub(now) < timeout-timeout/4 {
		c.writeBy = now.Add(timeout)
		c.nc.SetWriteDeadline(c.writeBy)
	}
	n, err := c.nc.Write(c.out)
	c.counters.bytesOut.Add(uint64(n))
	c.out = c.out[:0]
	if cap(c.out) > keepBuffer+flushBytes {
		c.out = nil
		c.socket.budget.give(c.charge)
		c.charge = 0
	}
	return err == nil
}
