package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	stdruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// withHTTP adds the socket for routers.
func withHTTP(t testing.TB) rigOption {
	return func(c *rigConfig) { c.HTTP = filepath.Join(filepath.Dir(c.Socket), "http.sock") }
}

// router is a client of the HTTP socket.
func (g *rig) router() *http.Client {
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", g.srv.HTTPPath())
	}}
	g.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func post(t testing.TB, c *http.Client, contentType string, body []byte) (status int, answer string) {
	t.Helper()
	resp, err := c.Post("http://kvrt/v1/formulate", contentType, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// told renders answers of HTTP as the data socket's are.
func told(t testing.TB, answer []byte) string {
	t.Helper()
	var f struct {
		Envelope json.RawMessage
		Policies []struct {
			Name    string
			Actions int
			Error   string
		}
		Error string
	}
	if err := json.Unmarshal(answer, &f); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	if f.Error != "" {
		return f.Error
	}
	var out Formulated
	if string(f.Envelope) != "null" {
		out.Envelope = f.Envelope
	}
	words := []string{}
	for _, p := range f.Policies {
		words = append(words, strings.TrimSuffix(fmt.Sprintf("%s:%d/%s", p.Name, p.Actions, strings.SplitN(p.Error, ":", 2)[0]), "/"))
	}
	return strings.Join(append(words, spell(t, out)), " ")
}

func TestHTTP(t *testing.T) {
	g := newRig(t, withPolicies(t, "one"), withHTTP(t))
	c := g.router()
	a, trap := string(routed("a")), string(routed("t"))
	const bad = `{"request_id":"r"}`
	const malformed = "malformed context: selected is missing at offset 0"
	for _, tt := range []struct {
		kind, body string
		status     int
		want       string // answers, with ; between
	}{
		{"application/json", a, 200, "one:1 one-1"},
		{"", " \n" + a + "\n ", 200, "one:1 one-1"},
		{"application/json; charset=utf-8", trap, 200, "one:0/handler_trap none"},
		{"application/json", bad, 400, malformed},
		{"application/json", "", 400, "malformed context: "},
		{"application/json", "\x81\xa1a\x01", 400, "malformed context: "},
		{"application/json", a + a, 400, "malformed context: "},
		{"application/json", "[" + a + "," + bad + "," + trap + "]", 200, "one:1 one-1; " + malformed + "; one:0/handler_trap none"},
		{"application/json", "[]", 200, ""},
		{"application/json", "[1]", 200, "malformed context: it is not a mapping at offset 0"},
		{"application/json", "[" + a, 400, "the body is no list in JSON: "},
		{"application/x-ndjson", a + "\n\n" + bad + "\r\n" + a, 200, "one:1 one-1; " + malformed + "; one:1 one-1"},
		{"application/jsonl", "", 200, ""},
		{"application/x-www-form-urlencoded", a, 415, "want application/json"},
		{"application/json", "[" + a + "] []", 400, "the body is no list in JSON: "},
		{"application/json", "[" + a + " " + a + "]", 400, "the body is no list in JSON: "},
		{"application/json", "[" + a + ",]", 400, "the body is no list in JSON: "},
		{"application/json", "[" + a + "}", 400, "the body is no list in JSON: "},
		{"application/json", "[" + strings.Repeat("1,", maxBatch) + "1]", 413, "more than 1024 contexts at once"},
		{"application/x-ndjson", strings.Repeat("1\n", maxBatch+1), 413, "more than 1024 contexts at once"},
	} {
		status, answer := post(t, c, tt.kind, []byte(tt.body))
		var answers []string
		switch {
		case status != 200 || !strings.HasPrefix(answer, "[") && !strings.Contains(tt.kind, "l"):
			answers = append(answers, told(t, []byte(answer)))
		case strings.HasPrefix(answer, "["):
			var list []json.RawMessage
			if err := json.Unmarshal([]byte(answer), &list); err != nil {
				t.Fatal(err)
			}
			for _, one := range list {
				answers = append(answers, told(t, one))
			}
		default:
			for line := range strings.Lines(answer) {
				answers = append(answers, told(t, []byte(line)))
			}
		}
		got := strings.Join(answers, "; ")
		if status != tt.status || got != tt.want && (status == 200 || !strings.Contains(got, tt.want)) {
			t.Errorf("%s %.60s: %d\ngot  %s\nwant %s", tt.kind, tt.body, status, got, tt.want)
		}
	}
	for _, tt := range []struct {
		method, path string
		status       int
	}{{"GET", "/v1/formulate", 405}, {"POST", "/v1/nothing", 404}, {"GET", "/-/ready", 200}, {"GET", "/v1/status", 404}, {"GET", "/metrics", 404}} {
		req, err := http.NewRequest(tt.method, "http://kvrt"+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.status {
			t.Errorf("%s %s: %d", tt.method, tt.path, resp.StatusCode)
		}
	}
	if s := g.srv.Stats(); s.HTTP[2] != 9 || s.HTTP[4] != 16 || s.HTTP[5] != 0 {
		t.Errorf("%v", s.HTTP)
	}
}

// TestHTTPDispatch: an envelope by HTTP, with its identity in the query.
func TestHTTPDispatch(t *testing.T) {
	g := newRig(t, withKVFetch(t), withHTTP(t))
	c := g.router()
	do := func(query, body string) (int, string) {
		resp, err := c.Post("http://kvrt/v1/dispatch"+query, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	const fetchHint = `{"actions":[{"action_id":"a1","action_type":"kv.fetch","action_version":"1.0","payload":{"source_control_endpoint":"tcp://127.0.0.1:1","block_hashes":[1]}},{"action_type":"x","payload":{}}]}`
	status, answer := do("?request_id=r&engine=vllm&dp_rank=3&leg=prefill&attempt=1&forward=true", fetchHint)
	var out struct {
		Results []struct{ Status, Reason string }
		Forward struct{ Actions []any }
	}
	if err := json.Unmarshal([]byte(answer), &out); err != nil || status != 200 || len(out.Results) != 2 || out.Results[0].Status != "ACCEPTED" || out.Results[1].Reason != "unsupported_action_type" || len(out.Forward.Actions) != 2 {
		t.Errorf("%d %s %v", status, answer, err)
	}
	id := hint.Identity{Engine: "vllm", DPRank: 3, Leg: abi.LegPrefill, Attempt: 1, RequestID: "r"}
	if st := g.store.Status(id); st.State != abi.FetchStateLive {
		t.Errorf("%+v", st)
	}
	for _, tt := range []struct {
		query, body string
		status      int
		want        string
	}{
		{"", fetchHint, 200, `"forward":null}`},
		{"", `{}`, 400, "malformed envelope: "},
		{"?dialect=none", `{}`, 400, "dialect"},
		{"?leg=x", fetchHint, 400, "leg: want aggregated, prefill or decode"},
		{"?dp_rank=-1", fetchHint, 400, "dp_rank: want an integer"},
		{"?forward=1", fetchHint, 400, "forward: want true or false"},
		{"?id=1", fetchHint, 400, "id: unknown"},
		{"?attempt=1&attempt=2", fetchHint, 400, "attempt: given more than once"},
		{"?request_id=" + strings.Repeat("x", maxRequestID+1), fetchHint, 400, "request_id: want at most 512 bytes"},
	} {
		if status, answer := do(tt.query, tt.body); status != tt.status || !strings.Contains(answer, tt.want) {
			t.Errorf("%s %s: %d %s", tt.query, tt.body, status, answer)
		}
	}
}

// TestHTTPBounds: what is too large is refused, alone and together.
func TestHTTPBounds(t *testing.T) {
	g := newRig(t, withPolicies(t, "one"), withHTTP(t), func(c *rigConfig) { c.MaxFrame, c.MaxBuffered = 300<<10, 100<<10 })
	c := g.router()
	list := func(n int) []byte {
		return []byte("[" + strings.TrimSuffix(strings.Repeat(string(routed("a"))+",", n), ",") + "]")
	}
	if status, answer := post(t, c, "", bytes.Repeat([]byte(" "), 301<<10)); status != 413 && status != 503 {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := post(t, c, "", bytes.Repeat([]byte(" "), 200<<10)); status != 503 || !strings.Contains(answer, "try again later") {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := post(t, c, "", list(1024)); status != 413 && status != 503 {
		t.Errorf("%d %.200s", status, answer)
	}
	if status, answer := post(t, c, "", list(100)); status != 200 {
		t.Errorf("%d %.200s", status, answer)
	}
	if n := g.srv.Stats().Buffered; n != 0 {
		t.Errorf("%d bytes are still accounted for", n)
	}
}

// TestHTTPSlowClients: who does not send, or does not read, is cut off, and others go on.
func TestHTTPSlowClients(t *testing.T) {
	g := newRig(t, withPolicies(t, "one"), withHTTP(t), func(c *rigConfig) {
		c.FrameTimeout, c.WriteTimeout, c.MaxConnections = 200*time.Millisecond, 200*time.Millisecond, 3
	})
	dial := func() net.Conn {
		c, err := net.Dial("unix", g.srv.HTTPPath())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	silent, half, deaf := dial(), dial(), dial()
	io.WriteString(half, "POST /v1/formulate HTTP/1.1\r\nHost: kvrt\r\nContent-Length: 100\r\n\r\n{")
	body := strings.Repeat(string(routed("a"))+"\n", 1000)
	for range 20 {
		deaf.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := fmt.Fprintf(deaf, "POST /v1/formulate HTTP/1.1\r\nHost: kvrt\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			break
		}
	}
	// All places are taken; this waits until one is free.
	if status, answer := post(t, g.router(), "", routed("a")); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
	for name, c := range map[string]net.Conn{"silent": silent, "half": half, "deaf": deaf} {
		c.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHTTPClientGone: a client that leaves costs others nothing.
func TestHTTPClientGone(t *testing.T) {
	g := newRig(t, withPolicies(t, "one"), withHTTP(t))
	body := strings.Repeat(string(routed("a"))+"\n", 500)
	head := fmt.Sprintf("POST /v1/formulate HTTP/1.1\r\nHost: kvrt\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	var gone sync.WaitGroup
	for i := range 20 {
		gone.Go(func() {
			c, err := net.Dial("unix", g.srv.HTTPPath())
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(c, head[:len(head)*(1+i%4)/4])
			c.Close()
		})
	}
	gone.Wait()
	if status, answer := post(t, g.router(), "", routed("a")); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
}

// TestHTTPCloses: a request in flight is answered while the server closes, and a new
// connection is refused by one that drains.
func TestHTTPCloses(t *testing.T) {
	g := newRig(t, withPolicies(t, "one"), withHTTP(t))
	if status, _ := post(t, g.router(), "", routed("a")); status != 200 {
		t.Error(status)
	}
	g.srv.Drain()
	resp, err := g.router().Post("http://kvrt/v1/formulate", "", bytes.NewReader(routed("a")))
	if err == nil {
		resp.Body.Close()
		t.Error("a draining server has answered a new connection")
	}
}

// FuzzHTTPBody: whatever the body, there is one sound answer to each context in it, or a
// refusal.
func FuzzHTTPBody(f *testing.F) {
	g := newRig(f, withPolicies(f, "one"), withHTTP(f))
	for _, s := range []string{string(routed("a")), "[" + string(routed("a")) + ",1,{}]", string(routed("a")) + "\n\n{\n", "[]", "[[", "", "\x00"} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, lines bool) {
		c := &httpCall{body: body, lines: lines}
		if err := g.srv.routers.formulate(context.Background(), c); err != nil {
			return
		}
		answers := [][]byte{c.out}
		if lines {
			answers = bytes.Split(bytes.TrimSuffix(c.out, []byte("\n")), []byte("\n"))
		}
		for _, a := range answers {
			if len(a) > 0 && !json.Valid(a) {
				t.Errorf("%q: %q", body, a)
			}
		}
	})
}

// TestHTTPRuntimeClosed: without a runtime there is no answer but a clear one.
func TestHTTPRuntimeClosed(t *testing.T) {
	g := newRig(t, withPolicies(t, "one"), withHTTP(t))
	if err := g.rt.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if status, answer := post(t, g.router(), "", routed("a")); status != 503 || !strings.Contains(answer, runtime.ErrClosed.Error()) {
		t.Errorf("%d %s", status, answer)
	}
}

// TestHTTPLongList: a list of nothing costs no more memory than the body that it came in.
func TestHTTPLongList(t *testing.T) {
	body := []byte("[" + strings.Repeat("0,", 1<<20) + "0]")
	if _, err := listed(body); err != errBatch {
		t.Fatal(err)
	}
	var before, after stdruntime.MemStats
	stdruntime.ReadMemStats(&before)
	_, _ = listed(body)
	stdruntime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes for a list of %d", got, len(body))
	}
	list, err := listed([]byte(" [ 1 , {\"a\": [2]} ,\"x\", null ]"))
	if err != nil || fmt.Sprintf("%q", list) != `["1" "{\"a\": [2]}" "\"x\"" "null"]` {
		t.Errorf("%q, %v", list, err)
	}
}
