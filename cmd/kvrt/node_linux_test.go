package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/server"
)

// Blocks of these tests, all of one tenant and namespace.
const (
	nodeTenant, nodeSpace = "a", "m"
	nodeBlock             = 128 << 10
	nodeSlots             = 32
	// nodePatience bounds what must happen, and is never waited for when it does.
	nodePatience = 60 * time.Second
)

// node is a daemon in a process of its own: kvrt serve.
type node struct {
	t      *testing.T
	name   string
	dir    string
	net    *network
	peers  string // the section of its configuration
	cmd    *exec.Cmd
	exited chan struct{}
	client *server.Client
	admin  string
	asked  atomic.Uint64
	log    string
}

const nodeConfig = `
guests: [{name: kv-fetch, module: "embedded:kv-fetch", grants: [kvrt_fetch, kvrt_log]}]
compile: {cache: %[1]s/cache}
listen: {socket: %[1]s/%[2]s, admin: "127.0.0.1:0"}
fetch: {allowed_sources: ["tcp://127.0.0.0/8", "tcp://10.77.0.0/16"]}
store: {capacity: %[3]d, block_bytes: [%[4]d]}
peers: %[5]s
`

// configure writes the configuration. A node that runs takes it with reload.
func (n *node) configure(peers string) {
	n.t.Helper()
	n.peers = peers
	text := fmt.Sprintf(nodeConfig, n.dir, n.name, nodeSlots*nodeBlock, nodeBlock, peers)
	if err := os.WriteFile(filepath.Join(n.dir, n.name+".yaml"), []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

func newNode(t *testing.T, dir, name string, net *network, peers string) *node {
	t.Helper()
	n := &node{t: t, name: name, dir: dir, net: net}
	n.configure(peers)
	t.Cleanup(func() {
		if n.cmd != nil {
			n.kill()
		}
		if b, _ := os.ReadFile(n.log); t.Failed() || bytes.Contains(b, []byte("DATA RACE")) || bytes.Contains(b, []byte("panic:")) {
			t.Errorf("the log of %s:\n%s", name, b)
		}
	})
	n.start()
	return n
}

var nodeAdmin = regexp.MustCompile(`(?m)^admin +http://(\S+)`)

func (n *node) start() {
	t := n.t
	t.Helper()
	bin := filepath.Join(n.dir, "kvrt") // by this name the test's program is kvrt
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	os.Symlink(self, bin)
	os.Mkdir(filepath.Join(n.dir, "cache"), 0o700)
	n.log = filepath.Join(n.dir, n.name+".log")
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	from, _ := log.Seek(0, io.SeekEnd)
	n.cmd = exec.Command(bin, "serve", "--pprof", "-c", filepath.Join(n.dir, n.name+".yaml"))
	n.cmd.Env = append(os.Environ(), compileCache+"="+filepath.Join(n.dir, "cache"))
	n.cmd.Stderr = log
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	n.net.do(func() { err = n.cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	n.exited = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) { cmd.Wait(); close(done) }(n.cmd, n.exited)
	n.eventually("it says where it listens", func() bool {
		select {
		case <-n.exited:
			b, _ := os.ReadFile(n.log)
			t.Fatalf("%s ended at once:\n%s", n.name, b)
		default:
		}
		b, _ := os.ReadFile(n.log)
		m := nodeAdmin.FindSubmatch(b[min(int(from), len(b)):])
		if m != nil {
			n.admin = string(m[1])
		}
		return m != nil
	})
	if n.client, err = server.Dial(t.Context(), filepath.Join(n.dir, n.name)); err != nil {
		t.Fatal(err)
	}
}

func (n *node) eventually(what string, ok func() bool) {
	n.t.Helper()
	for end := time.Now().Add(nodePatience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatalf("%s, never: %s", n.name, what)
		}
	}
}

func (n *node) signal(s unix.Signal) {
	n.t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		n.t.Errorf("%s: %v", n.name, err)
	}
}

func (n *node) kill() {
	n.client.Close()
	n.cmd.Process.Kill() // one that ended by itself is found out by what was asked of it
	<-n.exited
	n.cmd = nil
}

// pause stops the process with all its threads.
func (n *node) pause() {
	n.t.Helper()
	n.signal(unix.SIGSTOP)
	n.eventually("all its threads are stopped", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", n.cmd.Process.Pid))
		for _, path := range threads {
			if b, err := os.ReadFile(path); err == nil && !bytes.Contains(b, []byte(") T ")) {
				return false
			}
		}
		return len(threads) > 0
	})
}

// admins speaks to the admin API.
func (n *node) admins(method, path string) (int, []byte) {
	n.t.Helper()
	c := http.Client{Timeout: nodePatience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: n.net.dial}}
	req, err := http.NewRequestWithContext(n.t.Context(), method, "http://"+n.admin+path, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return res.StatusCode, b
}

// reload takes the configuration, and tells whether it was accepted.
func (n *node) reload() bool {
	n.t.Helper()
	code, _ := n.admins(http.MethodPost, "/-/reload")
	return code/100 == 2
}

// use is what a daemon holds.
type use struct{ descriptors, goroutines, leased, filling int }

var total = regexp.MustCompile(`^goroutine profile: total (\d+)`)

func (n *node) use() (u use) {
	n.t.Helper()
	var st server.StatusReport
	_, b := n.admins(http.MethodGet, "/v1/status")
	if err := json.Unmarshal(b, &st); err != nil || st.Store == nil {
		n.t.Fatalf("%s: %v in %s", n.name, err, b)
	}
	for _, p := range st.Store.Pools {
		u.leased, u.filling = u.leased+p.Leased+p.Waiting, u.filling+p.Filling
	}
	_, b = n.admins(http.MethodGet, "/debug/pprof/goroutine?debug=1")
	u.goroutines, _ = strconv.Atoi(string(total.FindSubmatch(b)[1]))
	d, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.cmd.Process.Pid))
	if err != nil {
		n.t.Fatal(err)
	}
	u.descriptors = len(d)
	return u
}

// released waits until a daemon holds no more than it did, but for links that it keeps.
func (n *node) released(before use, links int) {
	n.t.Helper()
	var u use
	defer func() {
		if n.t.Failed() {
			n.t.Logf("%s held %+v, and holds %+v", n.name, before, u)
		}
	}()
	n.eventually("everything is released", func() bool {
		u = n.use()
		return u.leased == 0 && u.filling == 0 && u.descriptors <= before.descriptors+links && u.goroutines <= before.goroutines+links
	})
}

// noise is what blocks are cut out of.
var noise = func() []byte {
	b := make([]byte, nodeBlock+4096)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
}()

// payload is the bytes of a block, in one life of its source: a piece of the noise that no
// other block of a test has.
func payload(h, life uint64) []byte { return noise[(h*7+life*1031)%4096:][:nodeBlock:nodeBlock] }

func (n *node) put(life uint64, hashes ...uint64) {
	n.t.Helper()
	for _, h := range hashes {
		if _, err := n.client.PutBlock(n.t.Context(), nodeTenant, nodeSpace, h, payload(h, life)); err != nil {
			n.t.Fatalf("%s: block %d: %v", n.name, h, err)
		}
	}
}

// have counts the blocks that are there, every byte of which must be right.
func (n *node) have(life uint64, hashes ...uint64) (count int) {
	n.t.Helper()
	for _, h := range hashes {
		b, err := n.client.GetBlock(n.t.Context(), nodeTenant, nodeSpace, h)
		switch {
		case err == server.ErrNoBlock:
		case err != nil:
			n.t.Fatalf("%s: block %d: %v", n.name, h, err)
		case !bytes.Equal(b, payload(h, life)):
			n.t.Errorf("%s: block %d is wrong", n.name, h)
		default:
			count++
		}
	}
	return count
}

// carried is what became of a hint that was accepted and carried out.
type carried struct {
	server.Fetched
	outcome.Outcome
	err error
}

// fetch submits a hint and carries it out, on a connection of its own.
func (n *node) fetch(source string, hashes []uint64) (a carried) {
	ctx, cancel := context.WithTimeout(n.t.Context(), nodePatience)
	defer cancel()
	c, err := server.Dial(ctx, filepath.Join(n.dir, n.name))
	if err != nil {
		return carried{err: err}
	}
	defer c.Close()
	id := hint.Identity{Engine: "vllm", RequestID: fmt.Sprint("r", n.asked.Add(1))}
	list := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(hashes)), ","), "[]")
	body := fmt.Sprintf(`{"protocol_version":"0.1","message_id":"m","actions":[{"action_id":"a","action_type":"kv.fetch","action_version":"1.0","payload":{"source_control_endpoint":"%s","block_hashes":[%s]}}]}`, source, list)
	if a.err = submitted(c.Submit(ctx, server.Submit{Identity: id, Body: []byte(body)})); a.err != nil {
		return a
	}
	if a.Fetched, a.err = c.Fetch(ctx, server.Fetch{Identity: id, Tenant: nodeTenant, Namespace: nodeSpace, BlockBytes: nodeBlock}); a.err != nil {
		return a
	}
	out, err := c.Outcomes(ctx, server.OutcomesQuery{Identity: id})
	if err != nil || len(out) != 1 {
		return carried{err: fmt.Errorf("one hint has %d outcomes: %w", len(out), err)}
	}
	a.Outcome = out[0]
	return a
}

// outcomes are as many as hints were accepted, and none of them is open.
func (n *node) outcomes() {
	n.t.Helper()
	out, err := n.client.Outcomes(n.t.Context(), server.OutcomesQuery{})
	if err != nil || uint64(len(out)) != n.asked.Load() {
		n.t.Errorf("%s: %d outcomes of %d hints, %v", n.name, len(out), n.asked.Load(), err)
	}
	for i := range out {
		if out[i].State == outcome.Open || out[i].Ended == 0 {
			n.t.Errorf("%s: an outcome is open: %+v", n.name, out[i])
		}
	}
}
