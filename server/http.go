package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// httpIdleTimeout is how long a router's connection is kept between two requests.
const httpIdleTimeout = 2 * time.Minute

// routers is the socket on which routers in any language post JSON over HTTP.
type routers struct {
	server *Server
	unixSocket
	http     http.Server
	calls    sync.Pool // of *httpCall
	open     chan struct{}
	statuses [6]atomic.Uint64 // requests by the first digit
}

func newRouters(s *Server) *routers {
	k := &routers{server: s, unixSocket: unixSocket{path: s.cfg.HTTP}, open: make(chan struct{}, s.cfg.MaxConnections)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/formulate", k.post(k.formulate))
	mux.HandleFunc("POST /v1/dispatch", k.post(k.dispatch))
	mux.HandleFunc("GET /-/ready", s.getReady)
	k.http = http.Server{
		Handler:           k.counted(jsonErrors(mux)),
		ReadHeaderTimeout: s.cfg.FrameTimeout,
		ReadTimeout:       s.cfg.FrameTimeout,
		WriteTimeout:      s.cfg.FrameTimeout + s.cfg.WriteTimeout, // it begins with the request
		IdleTimeout:       httpIdleTimeout,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	return k
}

func (k *routers) serve() {
	if err := k.http.Serve(k); !errors.Is(err, http.ErrServerClosed) {
		k.server.log.Error("the HTTP socket has stopped", "error", err)
	}
}

// Accept waits while as many connections are open as may be, and refuses new ones of a
// server that is draining. With Close and Addr it makes a net.Listener.
func (k *routers) Accept() (net.Conn, error) {
	k.open <- struct{}{}
	for {
		c, err := k.ln.Accept()
		if err == nil && k.server.draining.Load() {
			c.Close()
			continue
		}
		if err != nil {
			k.leave()
			return nil, err
		}
		return &routerConn{Conn: c, leave: k.leave}, nil
	}
}

// leave gives the place of a connection back.
func (k *routers) leave() {
	select {
	case <-k.open:
	default: // after Close
	}
}

// Close is the listener's.
func (k *routers) Close() error {
	k.unlisten()
	k.leave() // or an Accept that waits for a connection to end would go on waiting
	return nil
}

// Addr is the listener's.
func (k *routers) Addr() net.Addr { return k.ln.Addr() }

// routerConn gives its place back.
type routerConn struct {
	net.Conn
	leave  func()
	closed sync.Once
}

func (c *routerConn) Close() error {
	c.closed.Do(c.leave)
	return c.Conn.Close()
}

// close lets requests in flight finish until ctx is done.
func (k *routers) close(ctx context.Context) error {
	if k.ln == nil {
		return nil
	}
	if k.http.Shutdown(ctx) != nil {
		k.http.Close()
		return errCutOff
	}
	return nil
}

// counted counts requests by their status.
func (k *routers) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &countedWriter{ResponseWriter: w, status: http.StatusInternalServerError} // of a handler that panics
		defer func() { k.statuses[min(c.status/100, len(k.statuses)-1)].Add(1) }()
		next.ServeHTTP(c, r)
	})
}

type countedWriter struct {
	http.ResponseWriter
	status int
}

func (w *countedWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// httpCall is what one request needs. It is used again.
type httpCall struct {
	body, out []byte
	charge    int // of the budget
	lines     bool
	ask       runtime.FormulateRequest
	formed    *runtime.Formulation
	query     url.Values        // of dispatch
	res       *runtime.Response // of dispatch
}

// post reads a body within its bounds and answers with what handle leaves in out.
func (k *routers) post(handle func(ctx context.Context, c *httpCall) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, _ := k.calls.Get().(*httpCall)
		if c == nil {
			c = &httpCall{}
		}
		defer func() { k.server.budget.give(c.charge); c.charge = 0 }()
		c.body, c.out = c.body[:0], c.out[:0]
		err := c.contentType(r.Header.Get("Content-Type"))
		if err == nil {
			err = k.read(c, http.MaxBytesReader(w, r.Body, int64(k.server.cfg.MaxFrame)))
		}
		if err == nil {
			c.query = r.URL.Query()
			err = k.inTurn(r.Context(), c, handle)
		}
		if err == nil {
			err = k.chargeOut(c)
		}
		if err != nil {
			var fatal *runtime.FatalError
			if errors.As(err, &fatal) {
				k.server.log.Error("a request failed", "path", r.URL.Path, "error", err)
			}
			routerFailure(w, err)
		} else {
			kind := "application/json"
			if c.lines {
				kind = "application/x-ndjson"
			}
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write(c.out) // the client may have gone
		}
		if cap(c.body) <= keepBuffer && cap(c.out) <= keepBuffer {
			k.calls.Put(c)
		}
	}
}

// inTurn handles a request that has come. Its answer is written when the turn is over.
func (k *routers) inTurn(ctx context.Context, c *httpCall, handle func(context.Context, *httpCall) error) error {
	taken := k.server.turns.begin(len(c.body))
	defer k.server.turns.end(taken)
	return handle(ctx, c)
}

// contentType tells documents from lines of them.
func (c *httpCall) contentType(t string) error {
	c.lines = false
	if t == "" {
		return nil
	}
	switch name, _, err := mime.ParseMediaType(t); {
	case err == nil && name == "application/json":
		return nil
	case err == nil && (name == "application/x-ndjson" || name == "application/jsonl"):
		c.lines = true
		return nil
	}
	return refusal(http.StatusUnsupportedMediaType, "content type %s: want application/json, or application/x-ndjson for JSON lines", t)
}

// read reads a body. Its buffer grows with what has come.
func (k *routers) read(c *httpCall, body io.Reader) error {
	for {
		if len(c.body) == cap(c.body) {
			size := max(firstBuffer, 2*cap(c.body))
			if more := max(0, size-keepBuffer) - c.charge; more > 0 {
				if !k.server.budget.take(more) {
					return errBudget{k.server.budget.limit}
				}
				c.charge += more
			}
			c.body = append(make([]byte, 0, size), c.body...)
		}
		n, err := body.Read(c.body[len(c.body):cap(c.body)])
		c.body = c.body[:len(c.body)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (k *routers) chargeOut(c *httpCall) error {
	more := max(0, cap(c.out)-keepBuffer)
	if !k.server.budget.take(more) {
		return errBudget{k.server.budget.limit}
	}
	c.charge += more
	return nil
}

// formulate answers one context with one object, a list with a list, lines with lines.
func (k *routers) formulate(ctx context.Context, c *httpCall) error {
	body := bytes.TrimSpace(c.body)
	switch {
	case c.lines:
		n := 0
		for line := range bytes.Lines(body) {
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			if n++; n > maxBatch {
				return errBatch
			}
			if err := k.each(ctx, c, line); err != nil {
				return err
			}
			c.out = append(c.out, '\n')
		}
		return nil
	case len(body) > 0 && body[0] == '[':
		list, err := listed(body)
		if err != nil {
			return err
		}
		c.out = append(c.out, '[')
		for i, one := range list {
			if i > 0 {
				c.out = append(c.out, ',')
			}
			if err := k.each(ctx, c, one); err != nil {
				return err
			}
		}
		c.out = append(c.out, "]\n"...)
		return nil
	}
	if err := k.run(ctx, c, body); err != nil {
		return err
	}
	c.out = append(hint.AppendFormulatedJSON(c.out, c.formed.Envelope, c.formed.Policies), '\n')
	return nil
}

// listed takes a list in JSON apart. It stops at what is too much: the elements of a long
// list of nothing would take many times the memory of the body.
func listed(body []byte) ([][]byte, error) {
	var list [][]byte
	var one json.RawMessage
	d := json.NewDecoder(bytes.NewReader(body))
	_, err := d.Token() // the bracket
	for err == nil && d.More() {
		if len(list) == maxBatch {
			return nil, errBatch
		}
		if err = d.Decode(&one); err == nil {
			end := int(d.InputOffset())
			list = append(list, body[end-len(one):end])
		}
	}
	if err == nil {
		_, err = d.Token() // the other bracket
	}
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return list, nil
		}
		err = cmp.Or(err, errors.New("there is more behind it"))
	}
	return nil, refusal(http.StatusBadRequest, "the body is no list in JSON: %v", err)
}

var errBatch = refusal(http.StatusRequestEntityTooLarge, "more than %d contexts at once", maxBatch)

// each answers one of several. What is wrong with it stands in its own answer.
func (k *routers) each(ctx context.Context, c *httpCall, body []byte) error {
	err := k.run(ctx, c, body)
	var malformed *hint.MalformedError
	var action *hint.ActionError
	switch {
	case errors.As(err, &malformed), errors.As(err, &action):
		text, err := json.Marshal(map[string]string{"error": err.Error()})
		if err != nil {
			return err
		}
		c.out = append(c.out, text...)
	case err != nil:
		return err
	default:
		c.out = hint.AppendFormulatedJSON(c.out, c.formed.Envelope, c.formed.Policies)
	}
	if len(c.out) > k.server.cfg.MaxFrame {
		return refusal(http.StatusRequestEntityTooLarge, "the answers have more than %d bytes: send fewer contexts at once", k.server.cfg.MaxFrame)
	}
	return nil
}

// run fills c.formed. The answer is JSON, whatever the context is in.
func (k *routers) run(ctx context.Context, c *httpCall, body []byte) error {
	if err := ctx.Err(); err != nil { // nobody waits for the answer
		return err
	}
	if c.formed == nil {
		c.formed = k.server.cfg.Runtime.NewFormulation()
	}
	c.ask = runtime.FormulateRequest{Body: body, Format: abi.FormatJSON, Output: abi.FormatJSON, Seed: k.server.seed}
	return k.server.cfg.Runtime.Formulate(ctx, &c.ask, c.formed)
}

// routerFailure answers an error with the status that it deserves.
func routerFailure(w http.ResponseWriter, err error) {
	var (
		malformed *hint.MalformedError
		action    *hint.ActionError
		full      errBudget
	)
	switch {
	case dispatchFailure(w, err):
	case errors.As(err, &malformed):
		writeError(w, http.StatusBadRequest, err.Error(), nil)
	case errors.As(err, &action):
		writeError(w, http.StatusUnprocessableEntity, "the composed envelope cannot be written as JSON: "+err.Error(), nil)
	case errors.As(err, &full):
		w.Header().Set("Retry-After", "1")
		writeError(w, http.StatusServiceUnavailable, fmt.Sprintf("the large bodies of all connections take more than %d bytes together: try again later", full.limit), nil)
	default:
		writeFailure(w, err)
	}
}
