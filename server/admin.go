package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"os"
	"time"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/runtime"
)

// The admin API's bounds in time. A change compiles a module, so an answer may take a
// while; reading a request may not.
const (
	adminHeaderTimeout = 5 * time.Second
	adminReadTimeout   = 30 * time.Second
	adminWriteTimeout  = 5 * time.Minute
	adminIdleTimeout   = 2 * time.Minute
)

func (s *Server) listenAdmin(ctx context.Context) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", s.cfg.Admin)
	if err != nil {
		return fmt.Errorf("admin address: %w", err)
	}
	s.adminLn = ln
	s.admin = &http.Server{
		Handler:           s.guard(s.routes()),
		ReadHeaderTimeout: adminHeaderTimeout,
		ReadTimeout:       adminReadTimeout,
		WriteTimeout:      adminWriteTimeout,
		IdleTimeout:       adminIdleTimeout,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	return nil
}

// routes is the whole admin API.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"healthy": true})
	})
	mux.HandleFunc("GET /-/ready", s.getReady)
	mux.HandleFunc("POST /-/reload", s.change(s.postReload))
	mux.HandleFunc("POST /-/drain", s.postDrain)
	mux.HandleFunc("GET /v1/status", s.getStatus)
	mux.HandleFunc("GET /v1/guests", s.getGuests)
	mux.HandleFunc("GET /v1/guests/{name}", s.getGuest)
	mux.HandleFunc("PUT /v1/guests/{name}", s.change(s.putGuest))
	mux.HandleFunc("DELETE /v1/guests/{name}", s.change(s.deleteGuest))
	mux.HandleFunc("POST /v1/guests/{name}/rollback", s.change(s.postRollback))
	mux.HandleFunc("POST /v1/guests/{name}/resume", s.change(s.postResume))
	mux.HandleFunc("GET /v1/workers", s.getWorkers)
	mux.HandleFunc("GET /v1/workers/{id}", s.oneWorker(s.getWorker))
	mux.HandleFunc("PUT /v1/workers/{id}", s.oneWorker(s.putWorker))
	mux.HandleFunc("DELETE /v1/workers/{id}", s.oneWorker(s.deleteWorker))
	if s.metrics != nil {
		mux.Handle("GET /metrics", s.metrics)
	}
	if s.cfg.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return jsonErrors(mux)
}

// guard refuses what a web page could make a browser send: a request under a name that
// somebody pointed at this address, one that another site started, and a write in a
// form that needs no permission across sites.
func (s *Server) guard(next http.Handler) http.Handler {
	listen, _, _ := net.SplitHostPort(s.cfg.Admin)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !hostAllowed(r.Host, listen, s.cfg.AdminInsecure) {
			writeError(w, http.StatusMisdirectedRequest, "the host "+r.Host+" is not this daemon's: use the address that it listens on", nil)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if r.Header.Get("Origin") != "" || fetchedAcross(r) {
				writeError(w, http.StatusForbidden, "changes are not taken from web pages", nil)
				return
			}
			if t := r.Header.Get("Content-Type"); t != "" && !isJSON(t) {
				writeError(w, http.StatusUnsupportedMediaType, "want the content type application/json", nil)
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, s.cfg.MaxAdminBody)
		}
		next.ServeHTTP(w, r)
	})
}

// hostAllowed tells whether a Host header may stand for this daemon: an address that is
// loopback, localhost, or the host that it was told to listen on. Beyond loopback any
// address counts, but still no other name.
func hostAllowed(host, listen string, insecure bool) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	} else if n := len(host); n > 1 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	if host == "localhost" || host == listen && host != "" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (insecure || ip.IsLoopback())
}

func fetchedAcross(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "none" && site != "same-origin"
}

func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && t == "application/json"
}

// jsonErrors makes the mux's own answers, 404 and 405, like all others.
func jsonErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		var rec statusRecorder
		mux.ServeHTTP(&rec, r)
		if allow := rec.Header().Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
		}
		if rec.status == http.StatusMethodNotAllowed {
			writeError(w, rec.status, r.Method+" is not for "+r.URL.Path, nil)
			return
		}
		writeError(w, http.StatusNotFound, "there is nothing at "+r.URL.Path, nil)
	})
}

// statusRecorder keeps the status of an answer and drops its text.
type statusRecorder struct {
	header http.Header
	status int
}

func (r *statusRecorder) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}
func (r *statusRecorder) WriteHeader(status int)      { r.status = status }
func (r *statusRecorder) Write(b []byte) (int, error) { return len(b), nil }

// apiError is a refusal with its status.
type apiError struct {
	status int
	text   string
}

func (e *apiError) Error() string { return e.text }

func refusal(status int, format string, args ...any) error {
	return &apiError{status, fmt.Sprintf(format, args...)}
}

// change wraps a handler that changes what is loaded: one at a time, and only at the
// generation that the caller has seen, when it says which.
func (s *Server) change(h func(r *http.Request) (*Change, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer // read before the lock: a client may be slow
		body.Grow(int(min(max(r.ContentLength, 0), s.cfg.MaxAdminBody)) + bytes.MinRead)
		if _, err := body.ReadFrom(r.Body); err != nil {
			writeFailure(w, err)
			return
		}
		r.Body = io.NopCloser(&body)
		defer s.trimmer.soon()
		s.changes.Lock()
		defer s.changes.Unlock()
		if want := r.Header.Get("If-Match"); want != "" && want != "*" {
			if at := etag(s.cfg.Runtime.Generation()); want != at {
				w.Header().Set("ETag", at)
				writeError(w, http.StatusPreconditionFailed, "the daemon is at generation "+at+", not "+want+": look again", nil)
				return
			}
		}
		c, err := h(r)
		if err != nil {
			writeFailure(w, err)
			return
		}
		c.Generation = s.cfg.Runtime.Generation()
		w.Header().Set("ETag", etag(c.Generation))
		writeJSON(w, http.StatusOK, c)
	}
}

func (s *Server) getReady(w http.ResponseWriter, _ *http.Request) {
	status, reasons := http.StatusOK, s.notReady()
	if len(reasons) > 0 {
		status = http.StatusServiceUnavailable
	}
	answer := map[string]any{"ready": len(reasons) == 0, "reasons": append([]string{}, reasons...)}
	if f := s.cfg.Fleet; f != nil { // a request goes on without lineage: feeds that are not live are no reason
		answer["feeds"] = feedsReady(f.Feeds())
	}
	writeJSON(w, status, answer)
}

func (s *Server) postReload(r *http.Request) (*Change, error) {
	if err := s.reloadLocked(r.Context()); err != nil {
		return nil, err
	}
	return &Change{}, nil
}

func (s *Server) postDrain(w http.ResponseWriter, _ *http.Request) {
	s.Drain()
	writeJSON(w, http.StatusOK, map[string]any{"draining": true, "connections": s.Stats().Connections})
}

// writeFailure answers an error with the status that it deserves.
func writeFailure(w http.ResponseWriter, err error) {
	var (
		api     *apiError
		refused *runtime.LoadError
		cfg     *config.Error
		large   *http.MaxBytesError
	)
	switch {
	case workerFailure(w, err):
	case errors.As(err, &large):
		writeError(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("a body of more than %d bytes", large.Limit), nil)
	case errors.As(err, &api):
		writeError(w, api.status, api.text, nil)
	case errors.As(err, &refused):
		problems := make([]problemBody, len(refused.Problems))
		for i, p := range refused.Problems {
			problems[i] = problemBody(p)
		}
		writeError(w, http.StatusUnprocessableEntity, "guest "+refused.Guest+" refused", problems)
	case errors.As(err, &cfg):
		problems := make([]problemBody, len(cfg.Problems))
		for i, p := range cfg.Problems {
			problems[i] = problemBody{"config", p.Path, p.String()}
		}
		writeError(w, http.StatusUnprocessableEntity, "the configuration is refused", problems)
	case errors.Is(err, runtime.ErrUnknownGuest):
		writeError(w, http.StatusNotFound, err.Error(), nil)
	case errors.Is(err, runtime.ErrNoHistory), errors.Is(err, errNoReload):
		writeError(w, http.StatusConflict, err.Error(), nil)
	case errors.Is(err, runtime.ErrClosed):
		writeError(w, http.StatusServiceUnavailable, err.Error(), nil)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.ErrUnexpectedEOF):
		writeError(w, http.StatusRequestTimeout, "the body: "+err.Error(), nil)
	default:
		writeError(w, http.StatusInternalServerError, err.Error(), nil)
	}
}

func writeError(w http.ResponseWriter, status int, text string, problems []problemBody) {
	if problems == nil {
		problems = []problemBody{}
	}
	writeJSON(w, status, errorBody{text, problems})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be encoded","problems":[]}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client may have gone
}

// readJSON reads one JSON value, strictly.
func readJSON(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return refusal(http.StatusBadRequest, "the body: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return refusal(http.StatusBadRequest, "the body: more than one JSON value")
	}
	return nil
}
