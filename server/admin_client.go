package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// Admin talks to a daemon's admin API. It keeps no connection that would have to be
// closed.
type Admin struct {
	base    string
	ifMatch string
	http    http.Client
}

// NewAdmin makes a client for the admin API at addr, a host:port.
func NewAdmin(addr string) *Admin {
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	// No proxy, and no keep-alive: an admin client makes a call or two.
	return &Admin{base: strings.TrimRight(addr, "/"), http: http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// IfGeneration returns a client whose changes are refused unless the daemon is at that
// generation, so that two operators do not undo each other's work unseen.
func (a *Admin) IfGeneration(generation uint64) *Admin {
	b := *a
	b.ifMatch = etag(generation)
	return &b
}

// AdminError is a refusal by the admin API.
type AdminError struct {
	Status   int // of HTTP
	Text     string
	Problems []runtime.Problem
}

func (e *AdminError) Error() string {
	lines := []string{e.Text}
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.String())
	}
	return strings.Join(lines, "\n")
}

// GuestRequest describes a guest to load, or what is new about one to swap.
type GuestRequest struct {
	Source string `json:"source,omitempty"` // for people: where the module came from
	Module []byte `json:"module,omitempty"` // base64 in JSON
	SHA256 string `json:"sha256,omitempty"`
	// A swap keeps what is left out of the following, and the module too; an empty
	// list or object is not left out.
	Grants     *[]string       `json:"grants,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Limits     *GuestLimits    `json:"limits,omitempty"`
}

// Change is the answer to a change that was carried out.
type Change struct {
	Generation uint64       `json:"generation"`
	Guest      *GuestStatus `json:"guest,omitempty"`
}

// Guests lists what is loaded.
func (a *Admin) Guests(ctx context.Context) (*GuestList, error) {
	var out GuestList
	return &out, a.call(ctx, http.MethodGet, "/v1/guests", nil, &out)
}

// Guest describes one guest.
func (a *Admin) Guest(ctx context.Context, name string) (*GuestStatus, error) {
	var out GuestStatus
	return &out, a.call(ctx, http.MethodGet, guestPath(name), nil, &out)
}

// Load adds a guest.
func (a *Admin) Load(ctx context.Context, name string, g GuestRequest) (*Change, error) {
	var out Change
	return &out, a.call(ctx, http.MethodPut, guestPath(name)+"?mode=load", &g, &out)
}

// Swap replaces a guest.
func (a *Admin) Swap(ctx context.Context, name string, g GuestRequest) (*Change, error) {
	var out Change
	return &out, a.call(ctx, http.MethodPut, guestPath(name)+"?mode=swap", &g, &out)
}

// Resume ends a guest's quarantine.
func (a *Admin) Resume(ctx context.Context, name string) (*Change, error) {
	var out Change
	return &out, a.call(ctx, http.MethodPost, guestPath(name)+"/resume", nil, &out)
}

// Rollback replaces a guest by what it was before its last change.
func (a *Admin) Rollback(ctx context.Context, name string) (*Change, error) {
	var out Change
	return &out, a.call(ctx, http.MethodPost, guestPath(name)+"/rollback", nil, &out)
}

// Unload removes a guest.
func (a *Admin) Unload(ctx context.Context, name string) (*Change, error) {
	var out Change
	return &out, a.call(ctx, http.MethodDelete, guestPath(name), nil, &out)
}

// Workers lists the fleet.
func (a *Admin) Workers(ctx context.Context) (*WorkerList, error) {
	var out WorkerList
	return &out, a.call(ctx, http.MethodGet, "/v1/workers", nil, &out)
}

// SetWorker adds a worker, or replaces it.
func (a *Admin) SetWorker(ctx context.Context, id hint.WorkerID, w WorkerSpec) (*WorkerChange, error) {
	var out WorkerChange
	return &out, a.call(ctx, http.MethodPut, workerPath(id), &w, &out)
}

// RemoveWorker removes a worker with its feeds and its lineage.
func (a *Admin) RemoveWorker(ctx context.Context, id hint.WorkerID) (*WorkerChange, error) {
	var out WorkerChange
	return &out, a.call(ctx, http.MethodDelete, workerPath(id), nil, &out)
}

// Reload makes the daemon read its configuration again.
func (a *Admin) Reload(ctx context.Context) (*Change, error) {
	var out Change
	return &out, a.call(ctx, http.MethodPost, "/-/reload", nil, &out)
}

// Drain makes the daemon refuse new connections and report that it is not ready.
// Connections that are open are served on.
func (a *Admin) Drain(ctx context.Context) error {
	return a.call(ctx, http.MethodPost, "/-/drain", nil, nil)
}

// Status tells how the daemon is.
func (a *Admin) Status(ctx context.Context) (*StatusReport, error) {
	var out StatusReport
	return &out, a.call(ctx, http.MethodGet, "/v1/status", nil, &out)
}

// Ready tells whether the daemon takes work, and if not, why.
func (a *Admin) Ready(ctx context.Context) (ready bool, reasons []string, err error) {
	var out struct {
		Ready   bool     `json:"ready"`
		Reasons []string `json:"reasons"`
	}
	err = a.call(ctx, http.MethodGet, "/-/ready", nil, &out)
	return out.Ready, out.Reasons, err
}

func guestPath(name string) string { return "/v1/guests/" + url.PathEscape(name) }

func etag(generation uint64) string { return `"` + strconv.FormatUint(generation, 10) + `"` }

// maxAdminAnswer bounds what is read of an answer, in bytes.
const maxAdminAnswer = 16 << 20

// call makes one request. A 503 of the readiness probe is an answer like another.
func (a *Admin) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.ifMatch != "" && method != http.MethodGet {
		req.Header.Set("If-Match", a.ifMatch)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		if done := ctx.Err(); done != nil {
			return fmt.Errorf("no answer from the daemon in time: %w", done)
		}
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAdminAnswer))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if resp.StatusCode >= 400 && !(resp.StatusCode == http.StatusServiceUnavailable && path == "/-/ready") {
		refused := &AdminError{Status: resp.StatusCode}
		var e errorBody
		if json.Unmarshal(answer, &e) == nil && e.Error != "" {
			refused.Text = e.Error
			for _, p := range e.Problems {
				refused.Problems = append(refused.Problems, runtime.Problem(p))
			}
		} else {
			refused.Text = "the daemon answered " + resp.Status
		}
		return refused
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("the daemon's answer cannot be read: %w", err)
	}
	return nil
}

// errorBody is the JSON of every refusal.
type errorBody struct {
	Error    string        `json:"error"`
	Problems []problemBody `json:"problems"`
}

type problemBody struct {
	Rule string `json:"rule"`
	Item string `json:"item"`
	Msg  string `json:"msg"`
}
