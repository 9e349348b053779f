package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/runtime"
)

func withAdmin(c *rigConfig) { c.Admin = "127.0.0.1:0" }

func (g *rig) admin() *Admin { return NewAdmin(g.srv.AdminAddr()) }

// ask makes a request and returns status, header and body.
func (g *rig) ask(method, path string, header map[string]string, body string) (int, http.Header, string) {
	g.t.Helper()
	req, err := http.NewRequest(method, "http://"+g.srv.AdminAddr()+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for k, v := range header {
		if k == "Host" {
			req.Host = v
		} else {
			req.Header.Set(k, v)
		}
	}
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func TestAdminGuests(t *testing.T) {
	g := newRig(t, withAdmin)
	a, ctx := g.admin(), context.Background()
	list, err := a.Guests(ctx)
	if err != nil || list.Generation != 1 || len(list.Guests) != 1 {
		t.Fatalf("%+v %v", list, err)
	}
	x := list.Guests[0]
	if x.Name != "demo" || x.Version != "1.0.0" || len(x.SHA256) != 64 || x.Generation != 1 || fmt.Sprint(x.Roles, x.ActionTypes, x.Capabilities, x.Grants, x.Dialects) !=
		"[handler] [demo.echo demo.other] [kvrt_fetch] [kvrt_fetch] []" || x.Limits.Instances != 4 || x.Instances != 4 || x.History != 0 {
		t.Errorf("%+v", x)
	}
	c := g.dial()
	c.Submit(ctx, Submit{Body: envelope("a r t")})
	if x, err := a.Guest(ctx, "demo"); err != nil || x.Calls != 3 || x.Accepted != 1 || fmt.Sprint(x.Rejected, x.Traps) != "map[handler_trap:1 invalid_payload:1] map[guest:1]" {
		t.Errorf("%+v %v", x, err)
	}

	// A swap keeps what it does not name.
	next := demoGuest(t, '1')
	change, err := a.Swap(ctx, "demo", GuestRequest{Module: next.Module, Source: "demo.wasm"})
	if err != nil || change.Generation != 2 || change.Guest.Version != "1.0.1" || change.Guest.Source != "demo.wasm" || fmt.Sprint(change.Guest.Grants) != "[kvrt_fetch]" ||
		change.Guest.Limits.Instances != 4 || change.Guest.History != 1 || change.Guest.Calls != 0 {
		t.Fatalf("%+v %v", change, err)
	}
	if reply, err := c.Submit(ctx, Submit{Body: envelope("d")}); err != nil || string(reply.Results[0].Detail) != "version1" {
		t.Errorf("after the swap: %+v %v", reply, err)
	}
	if change, err = a.Swap(ctx, "demo", GuestRequest{Limits: &GuestLimits{Instances: 2, Memory: 1 << 20, InitFuel: 50_000_000}}); err != nil || change.Guest.Instances != 2 || change.Guest.Version != "1.0.1" {
		t.Errorf("a swap of the limits: %+v %v", change, err)
	}
	if change, err = a.Rollback(ctx, "demo"); err != nil || change.Guest.Instances != 4 || change.Guest.History != 1 {
		t.Errorf("a rollback: %+v %v", change, err)
	}
	if change, err = a.Rollback(ctx, "demo"); err != nil || change.Guest.Version != "1.0.0" || change.Generation != 5 {
		t.Errorf("a second rollback: %+v %v", change, err)
	}
	if change, err = a.Unload(ctx, "demo"); err != nil || change.Guest != nil || change.Generation != 6 {
		t.Errorf("an unload: %+v %v", change, err)
	}
	if change, err = a.Load(ctx, "again", GuestRequest{Module: next.Module, Grants: &[]string{"kvrt_fetch"}, Parameters: json.RawMessage(`{"a":1}`)}); err != nil || change.Guest.Name != "again" || string(change.Guest.Parameters) != `{"a":1}` {
		t.Errorf("a load: %+v %v", change, err)
	}
	st, err := a.Status(ctx)
	if err != nil || !st.Ready || st.Generation != 7 || st.Connections != 1 || st.Dispatches != 2 || st.Swaps != 7 || st.Socket != g.path || st.Admin != g.srv.AdminAddr() || st.Version != "1.2.3" || len(st.Guests) != 1 {
		t.Errorf("%+v %v", st, err)
	}
}

// refusedWith wants an AdminError of this status whose text or problems say this.
func refusedWith(t *testing.T, what string, err error, status int, text string) {
	t.Helper()
	var e *AdminError
	if !errors.As(err, &e) || e.Status != status || !strings.Contains(e.Error(), text) {
		t.Errorf("%s: got %v, want %d with %q", what, err, status, text)
	}
}

func TestAdminRefusals(t *testing.T) {
	g := newRig(t, withAdmin)
	a, ctx := g.admin(), context.Background()
	next := demoGuest(t, '1')
	_, err := a.Load(ctx, "demo", GuestRequest{Module: next.Module})
	refusedWith(t, "a load over a guest", err, 409, "a guest named demo is loaded")
	_, err = a.Swap(ctx, "other", GuestRequest{Module: next.Module})
	refusedWith(t, "a swap of nothing", err, 404, "no guest is named other")
	_, err = a.Load(ctx, "other", GuestRequest{})
	refusedWith(t, "a load without a module", err, 400, "module is missing")
	_, err = a.Load(ctx, "other", GuestRequest{Module: next.Module})
	refusedWith(t, "a load without the grant", err, 422, "capability/not-granted: kvrt_fetch")
	_, err = a.Load(ctx, "Not A Name/..", GuestRequest{Module: next.Module, Grants: &[]string{"kvrt_fetch"}})
	refusedWith(t, "a bad name", err, 422, "spec/name")
	_, err = a.Swap(ctx, "demo", GuestRequest{Module: []byte("garbage"), SHA256: "00"})
	refusedWith(t, "garbage", err, 422, "guest demo refused")
	if x, _ := a.Guest(ctx, "demo"); x.LastError == nil || !strings.Contains(x.LastError.Error, "guest demo refused") || x.Version != "1.0.0" {
		t.Errorf("after a refused swap: %+v", x)
	}
	_, err = a.Swap(ctx, "demo", GuestRequest{Parameters: json.RawMessage(`[1]`)})
	refusedWith(t, "parameters that are a list", err, 400, "want an object")
	if _, err = a.Swap(ctx, "demo", GuestRequest{Module: next.Module}); err != nil {
		t.Fatal(err)
	}
	if x, _ := a.Guest(ctx, "demo"); x.LastError != nil {
		t.Errorf("after a good swap: %+v", x.LastError)
	}
	_, err = a.Guest(ctx, "nobody")
	refusedWith(t, "a guest that is not there", err, 404, "no guest is named nobody")
	_, err = a.Unload(ctx, "nobody")
	refusedWith(t, "an unload of nobody", err, 404, "no such guest")
	_, err = a.Rollback(ctx, "nobody")
	refusedWith(t, "a rollback of nobody", err, 404, "no such guest")
	_, err = a.Resume(ctx, "nobody")
	refusedWith(t, "a resume of nobody", err, 404, "no such guest")
	if change, err := a.Resume(ctx, "demo"); err != nil || change.Guest.Quarantined {
		t.Errorf("a resume of one that is not quarantined: %+v %v", change, err)
	}
	a.Rollback(ctx, "demo")
	_, err = a.Rollback(ctx, "demo")
	refusedWith(t, "a rollback to nothing", err, 409, "nothing to roll back to")
	_, err = a.Reload(ctx)
	refusedWith(t, "a reload without a configuration", err, 409, "nothing to reload")
	if st, _ := a.Status(ctx); st.Refused == 0 || st.Guests[0].Version != "1.0.0" {
		t.Errorf("%+v", st)
	}
	if _, err := NewAdmin("127.0.0.1:1").Status(ctx); !errors.Is(err, ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	late, cancel := context.WithTimeout(ctx, 0)
	defer cancel()
	if _, err := a.Status(late); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("out of time: %v", err)
	}
}

func TestAdminConcurrency(t *testing.T) {
	g := newRig(t, withAdmin)
	a, ctx := g.admin(), context.Background()
	_, h, _ := g.ask("GET", "/v1/guests/demo", nil, "")
	if h.Get("ETag") != `"1"` {
		t.Errorf("ETag %s", h.Get("ETag"))
	}
	first, second := a.IfGeneration(1), a.IfGeneration(1)
	if _, err := first.Swap(ctx, "demo", GuestRequest{Module: demoGuest(t, '1').Module}); err != nil {
		t.Fatal(err)
	}
	_, err := second.Swap(ctx, "demo", GuestRequest{Module: demoGuest(t, '2').Module})
	refusedWith(t, "a swap at an old generation", err, 412, `the daemon is at generation "2"`)
	_, err = second.Unload(ctx, "demo")
	refusedWith(t, "an unload at an old generation", err, 412, "look again")
	if _, err := a.IfGeneration(2).Rollback(ctx, "demo"); err != nil {
		t.Error(err)
	}
}

func TestAdminReload(t *testing.T) {
	var next error
	g := newRig(t, withAdmin, func(c *rigConfig) { c.Reload = func(context.Context) error { return next } })
	a, ctx := g.admin(), context.Background()
	if _, err := a.Reload(ctx); err != nil {
		t.Error(err)
	}
	if st, _ := a.Status(ctx); !st.Reload.OK || st.Reload.Time.IsZero() || st.Reload.LastOK != st.Reload.Time {
		t.Errorf("%+v", st.Reload)
	}
	for _, c := range []struct {
		err    error
		status int
		text   string
	}{
		{&runtime.LoadError{Guest: "demo", Problems: []runtime.Problem{{Rule: "abi/role", Item: "x", Msg: "y"}}}, 422, "abi/role: x: y"},
		{fmt.Errorf("the file: %w", &config.Error{Problems: []config.Problem{{File: "kvrt.yaml", Line: 3, Column: 5, Path: "guests[0].name", Message: "is not set"}}}), 422, "kvrt.yaml:3:5: guests[0].name: is not set"},
		{errors.New("the disk is gone"), 500, "the disk is gone"},
	} {
		next = c.err
		_, err := a.Reload(ctx)
		refusedWith(t, "reload", err, c.status, c.text)
		if st, _ := a.Status(ctx); st.Reload.OK || st.Reload.Error != c.err.Error() || !st.Reload.LastOK.Before(st.Reload.Time) {
			t.Errorf("%+v", st.Reload)
		}
	}
}

func TestAdminReadiness(t *testing.T) {
	var why []string
	g := newRig(t, withAdmin, func(c *rigConfig) { c.NotReady = func() []string { return why } })
	a, ctx := g.admin(), context.Background()
	want := func(ready bool, reasons string) {
		t.Helper()
		if ok, got, err := a.Ready(ctx); ok != ready || fmt.Sprint(got) != reasons || err != nil {
			t.Errorf("%t %v %v, want %t %s", ok, got, err, ready, reasons)
		}
	}
	want(true, "[]")
	why = []string{"a required guest is quarantined"}
	want(false, "[a required guest is quarantined]")
	if status, _, _ := g.ask("GET", "/-/ready", nil, ""); status != 503 {
		t.Errorf("status %d", status)
	}
	why = nil
	if err := a.Drain(ctx); err != nil {
		t.Error(err)
	}
	want(false, "[draining]")
	if status, _, body := g.ask("GET", "/-/healthy", nil, ""); status != 200 || !strings.Contains(body, "true") {
		t.Errorf("%d %s", status, body)
	}
	empty, _ := runtime.New(runtime.Config{Engine: noEngine{}})
	s, err := New(Config{Runtime: empty, Admin: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.notReady()); got != "[the guests are not loaded]" {
		t.Errorf("before the first generation: %s", got)
	}
}

type noEngine struct{}

func (noEngine) Name() string { return "none" }
func (noEngine) Compile(context.Context, []byte, runtime.CompileOptions) (runtime.Module, error) {
	return nil, errors.New("none")
}

// Everything that is refused is JSON with an error, whoever refused it.
func TestAdminGuard(t *testing.T) {
	g := newRig(t, withAdmin, func(c *rigConfig) { c.MaxAdminBody = 1000; c.Reload = func(context.Context) error { return nil } })
	for _, c := range []struct {
		name, method, path string
		header             map[string]string
		body               string
		status             int
		text               string
	}{
		{"a name pointed at us", "GET", "/v1/status", map[string]string{"Host": "evil.example:9640"}, "", 421, "evil.example"},
		{"a name that begins well", "GET", "/v1/status", map[string]string{"Host": "localhost.evil.example"}, "", 421, ""},
		{"another address", "GET", "/v1/status", map[string]string{"Host": "10.0.0.1"}, "", 421, ""},
		{"localhost", "GET", "/v1/status", map[string]string{"Host": "localhost:9640"}, "", 200, ""},
		{"IPv6 loopback", "GET", "/v1/status", map[string]string{"Host": "[::1]:9640"}, "", 200, ""},
		{"IPv6 loopback without a port", "GET", "/v1/status", map[string]string{"Host": "[::1]"}, "", 200, ""},
		{"a page's read", "GET", "/v1/status", map[string]string{"Origin": "http://localhost:3000"}, "", 200, ""},
		{"a page's reload", "POST", "/-/reload", map[string]string{"Origin": "http://localhost:3000"}, "", 403, "web pages"},
		{"a sandboxed page's reload", "POST", "/-/reload", map[string]string{"Origin": "null"}, "", 403, "web pages"},
		{"a cross-site reload", "POST", "/-/reload", map[string]string{"Sec-Fetch-Site": "cross-site"}, "", 403, "web pages"},
		{"a form", "POST", "/-/reload", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, "a=1", 415, "application/json"},
		{"plain text", "PUT", "/v1/guests/x", map[string]string{"Content-Type": "text/plain"}, "{}", 415, "application/json"},
		{"a reload", "POST", "/-/reload", nil, "", 200, "generation"},
		{"a large body", "PUT", "/v1/guests/x", map[string]string{"Content-Type": "application/json"}, `{"source":"` + strings.Repeat("x", 2000) + `"}`, 413, "more than 1000 bytes"},
		{"a body that is no JSON", "PUT", "/v1/guests/x", nil, `{`, 400, "the body"},
		{"an unknown field", "PUT", "/v1/guests/x", nil, `{"modul":""}`, 400, "modul"},
		{"two values", "PUT", "/v1/guests/x", nil, `{} {}`, 400, "more than one"},
		{"a bad limit", "PUT", "/v1/guests/x", nil, `{"limits":{"fuel":"soon"}}`, 400, "string"},
		{"a bad mode", "PUT", "/v1/guests/x?mode=try", nil, `{}`, 400, "want load or swap"},
		{"nothing there", "GET", "/v1/nothing", nil, "", 404, "/v1/nothing"},
		{"the wrong method", "POST", "/v1/status", nil, "", 405, "POST"},
		{"no metrics", "GET", "/metrics", nil, "", 404, ""},
		{"no profiles", "GET", "/debug/pprof/", nil, "", 404, ""},
	} {
		status, h, body := g.ask(c.method, c.path, c.header, c.body)
		var e struct {
			Error    *string         `json:"error"`
			Problems json.RawMessage `json:"problems"`
		}
		err := json.Unmarshal([]byte(body), &e)
		if status != c.status || !strings.Contains(body, c.text) || err != nil || status >= 400 && (e.Error == nil || e.Problems == nil) {
			t.Errorf("%s: %d %s (%v), want %d with %q", c.name, status, body, err, c.status, c.text)
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("Content-Type") != "application/json" {
			t.Errorf("%s: header %v", c.name, h)
		}
	}
	if _, h, _ := g.ask("POST", "/v1/status", nil, ""); h.Get("Allow") == "" {
		t.Error("405 without Allow")
	}
}

func TestAdminAddress(t *testing.T) {
	rt, _ := runtime.New(runtime.Config{Engine: noEngine{}})
	for addr, want := range map[string]string{
		"127.0.0.1:9640": "", "localhost:0": "", "[::1]:1": "", "127.8.9.1:1": "",
		"0.0.0.0:9640": "is not loopback", ":9640": "is not loopback", "10.0.0.1:1": "is not loopback", "example.org:1": "is not loopback", "127.0.0.1": "want host:port",
	} {
		_, err := New(Config{Runtime: rt, Admin: addr})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if _, err := New(Config{Runtime: rt, Admin: "0.0.0.0:9640", AdminInsecure: true}); err != nil {
		t.Error(err)
	}
	for _, c := range []Config{{}, {Runtime: rt}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

func TestPprof(t *testing.T) {
	g := newRig(t, withAdmin, func(c *rigConfig) { c.Pprof = true })
	if status, _, body := g.ask("GET", "/debug/pprof/goroutine?debug=1", nil, ""); status != 200 || !strings.Contains(body, "goroutine profile") {
		t.Errorf("%d %.100s", status, body)
	}
}

// A client that sends its body slowly keeps nobody else from a change.
func TestAdminSlowBody(t *testing.T) {
	g := newRig(t, withAdmin)
	conn, err := net.Dial("tcp", g.srv.AdminAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "PUT /v1/guests/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\nContent-Type: application/json\r\n\r\n{")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for version := range byte(3) {
		if _, err := g.admin().Swap(ctx, "demo", GuestRequest{Module: demoGuest(t, '1'+version).Module}); err != nil {
			t.Error(err)
		}
	}
}

// Swaps go on while clients submit; no hint is lost.
func TestSwapUnderLoad(t *testing.T) {
	g := newRig(t, withAdmin)
	stop := g.witness()
	a := g.admin()
	versions := [][]byte{demoGuest(t, '1').Module, demoGuest(t, '2').Module}
	for i := range 6 {
		if _, err := a.Swap(context.Background(), "demo", GuestRequest{Module: versions[i%2]}); err != nil {
			t.Error(err)
		}
	}
	stop()
	if !bytes.Contains(versions[0], []byte("version1")) {
		t.Error("the modules are the same")
	}
}
