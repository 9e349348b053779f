package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/fleet"
	"github.com/kvrt/kvrt/hint"
)

func newFleetRig(t *testing.T) (*rig, *fleet.Fleet) {
	f := fleet.New(fleet.Config{MaxWorkers: 3})
	t.Cleanup(f.Close)
	g := newRig(t, func(c *rigConfig) { c.Admin, c.Fleet = "127.0.0.1:0", f })
	return g, f
}

// ask makes one request of the admin API.
func ask(t *testing.T, g *rig, method, path, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+g.srv.AdminAddr()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(bytes.TrimSpace(b))
}

func TestWorkerIDs(t *testing.T) {
	for _, c := range []struct {
		text string
		id   hint.WorkerID
		back string // "": as it came
	}{
		{"7", hint.UintWorker(7), ""},
		{"-7", hint.IntWorker(-7), ""},
		{"18446744073709551615", hint.UintWorker(1<<64 - 1), ""},
		{`"7"`, hint.NamedWorker("7"), ""},
		{"prefill-0", hint.NamedWorker("prefill-0"), ""},
		{`"prefill-0"`, hint.NamedWorker("prefill-0"), "prefill-0"},
		{"a/b c", hint.NamedWorker("a/b c"), ""},
		{`"\"q"`, hint.NamedWorker(`"q`), ""},
		{`"."`, hint.NamedWorker("."), ""},
		{`".."`, hint.NamedWorker(".."), ""},
		{"-", hint.NamedWorker("-"), ""},
	} {
		id, err := ParseWorkerID(c.text)
		if want := c.back; err != nil || id != c.id || want == "" && FormatWorkerID(id) != c.text || want != "" && FormatWorkerID(id) != want {
			t.Errorf("%s: %v %v, formatted %s", c.text, id, err, FormatWorkerID(id))
		}
	}
	for _, bad := range []string{"", "007", "-0", "18446744073709551616", `"`, `""`, `"a"b`, "\xff", strings.Repeat("x", hint.MaxIdentity+1)} {
		if id, err := ParseWorkerID(bad); err == nil {
			t.Errorf("%q: %v", bad, id)
		}
	}
}

func TestWorkersAPI(t *testing.T) {
	g, _ := newFleetRig(t)
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/v1/workers", "", `200 {"workers":[]}`},
		{"PUT", "/v1/workers/7", `{"type":"agg","block_size":16,"capabilities":[],"ranks":[{"dp_rank":1,"source":"tcp://10.0.0.9:1"},{"dp_rank":0}]}`,
			`201 {"worker":{"id":7,"type":"aggregated","block_size":16,"capabilities":[],"ranks":[{"dp_rank":0},{"dp_rank":1,"source":"tcp://10.0.0.9:1"}],"origin":"api"},"created":true}`},
		{"PUT", "/v1/workers/%227%22", `{"id":"7"}`, `201 {"worker":{"id":"7","ranks":[{}],"origin":"api"},"created":true}`},
		{"PUT", "/v1/workers/a%2Fb", `{"id":"a/b","capabilities":null}`, `201 {"worker":{"id":"a/b","ranks":[{}],"origin":"api"},"created":true}`},
		{"PUT", "/v1/workers/7", `{"namespace":"n"}`, `200 {"worker":{"id":7,"namespace":"n","ranks":[{}],"origin":"api"}}`},
		{"PUT", "/v1/workers/8", `{}`, `409 {"error":"the catalogue is full: remove a worker, or raise its limit","problems":[]}`},
		{"GET", "/v1/workers/a%2Fb", "", `200 {"id":"a/b","ranks":[{}],"origin":"api"}`},
		{"GET", "/v1/workers", "", `200 {"workers":[{"id":7,"namespace":"n","ranks":[{}],"origin":"api"},{"id":"7","ranks":[{}],"origin":"api"},{"id":"a/b","ranks":[{}],"origin":"api"}]}`},
		{"DELETE", "/v1/workers/7", "", `200 {"removed":true}`},
		{"DELETE", "/v1/workers/7", "", `404 {"error":"there is no worker 7","problems":[]}`},
		{"GET", "/v1/workers/9", "", `404 {"error":"there is no worker 9","problems":[]}`},
		{"POST", "/v1/workers/9", "{}", `405 {"error":"POST is not for /v1/workers/9","problems":[]}`},
	} {
		status, answer := ask(t, g, c.method, c.path, c.body)
		if got := strconv.Itoa(status) + " " + answer; got != c.want {
			t.Errorf("%s %s %s:\ngot  %s\nwant %s", c.method, c.path, c.body, got, c.want)
		}
	}
}

// TestWorkersAPIRefusals: every refusal names the field.
func TestWorkersAPIRefusals(t *testing.T) {
	g, f := newFleetRig(t)
	for _, c := range []struct {
		path, body string
		status     int
		item, msg  string
	}{
		{"007", `{}`, 400, "id", "no integer"},
		{"7", `{"id":8}`, 400, "id", "8 is not the worker of the path, 7"},
		{"7", `{"id":"7"}`, 400, "id", `"7" is not the worker of the path, 7`},
		{"7", `{"id":1.5}`, 400, "id", "want an integer or a text"},
		{"7", `{"blocksize":16}`, 400, "blocksize", "unknown key"},
		{"7", `{"ranks":[{"rank":0}]}`, 400, "rank", "unknown key"},
		{"7", `{"block_size":"16"}`, 400, "block_size", "want an integer in [0, 2^32), not string"},
		{"7", `{"block_size":-1}`, 400, "block_size", "want an integer in [0, 2^32), not number -1"},
		{"7", `{"ranks":{}}`, 400, "ranks", "want a list, not object"},
		{"7", `{"ranks":[{"events":7}]}`, 400, "ranks.events", "want a string, not number"},
		{"7", `{"block_size":9999999}`, 422, "block_size", "want at most"},
		{"7", `{"ranks":[{"dp_rank":0},{}]}`, 422, "ranks[1].dp_rank", "missing"},
		{"7", `{"ranks":[{"events":"udp://x"}]}`, 422, "ranks[0].events", "udp"},
		{"7", `{"ranks":[{"source":"http://x"}]}`, 422, "ranks[0].source", "want tcp://"},
		{"7", `{"capabilities":["a","a"]}`, 422, "capabilities[1]", "twice"},
		{"7", ``, 400, "", "want a JSON object"},
		{"7", `[]`, 400, "", "want a JSON object"},
		{"7", `{} {}`, 400, "", "more than one JSON value"},
		{"7", `{"type":`, 400, "", "unexpected EOF"},
	} {
		status, answer := ask(t, g, "PUT", "/v1/workers/"+c.path, c.body)
		var e errorBody
		if err := json.Unmarshal([]byte(answer), &e); err != nil {
			t.Fatal(err)
		}
		ok := status == c.status && strings.Contains(e.Error, c.msg) && (c.item == "") == (len(e.Problems) == 0)
		if ok && c.item != "" {
			ok = e.Problems[0].Item == c.item && e.Problems[0].Rule == "worker"
		}
		if !ok {
			t.Errorf("%s: %d %s", c.body, status, answer)
		}
	}
	if n := f.Catalogue().Len(); n != 0 {
		t.Errorf("%d workers", n)
	}
}

// TestWorkersClient is the Go client, and what the status says of feeds.
func TestWorkersClient(t *testing.T) {
	g, _ := newFleetRig(t)
	ctx := context.Background()
	a := NewAdmin(g.srv.AdminAddr())
	dir := t.TempDir()
	id := hint.NamedWorker("../7")
	c, err := a.SetWorker(ctx, id, WorkerSpec{Ranks: []RankSpec{{Events: "ipc://" + dir + "/e"}}})
	if err != nil || !c.Created || *c.Worker.ID != id {
		t.Fatal(c, err)
	}
	list, err := a.Workers(ctx)
	if err != nil || len(list.Workers) != 1 || *list.Workers[0].ID != id {
		t.Error(list, err)
	}
	st, err := a.Status(ctx)
	if err != nil || st.Workers != 1 || len(st.Feeds) != 1 || st.Feeds[0].State != "waiting" || st.Feeds[0].Worker != id || len(st.Lineage) != 1 {
		t.Errorf("%+v %v", st, err)
	}
	status, answer := ask(t, g, "GET", "/-/ready", "")
	if want := `{"feeds":{"live":0,"all":1,"not_live":["\"../7\""]},"ready":true,"reasons":[]}`; status != 200 || answer != want {
		t.Errorf("%d %s", status, answer)
	}
	if c, err := a.RemoveWorker(ctx, id); err != nil || !c.Removed {
		t.Error(c, err)
	}
	_, err = a.RemoveWorker(ctx, id)
	var refused *AdminError
	if !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Error(err)
	}
}

func FuzzWorkerID(f *testing.F) {
	for _, s := range []string{"7", `"7"`, "a/b", "-1", ".."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseWorkerID(s)
		if err != nil {
			return
		}
		if back, err := ParseWorkerID(FormatWorkerID(id)); err != nil || back != id {
			t.Errorf("%q: %v came back as %v: %v", s, id, back, err)
		}
	})
}
