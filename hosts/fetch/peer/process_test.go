package peer_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/fetch/peer/memstore"
	"github.com/kvrt/kvrt/hosts/fetch/peer/peertest"
	"github.com/kvrt/kvrt/hosts/fetch/peer/tcp"
	"github.com/kvrt/kvrt/hosts/fetch/peer/unixsock"
)

// The test binary starts itself as the other process.
const childRole = "KVRT_PEER_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		if err := child(role, os.Args[1], os.Args[2], os.Args[3]); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const (
	space   = "tenant/model"
	blocks  = 24
	size    = 300_000
	patient = 30 * time.Second
)

var hashes = func() []uint64 {
	h := make([]uint64, blocks)
	for i := range h {
		h[i] = uint64(i + 1)
	}
	return h
}()

func payload(h uint64) []byte {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(h), byte(h >> 8)}).Read(b)
	return b
}

// transport is one side's; dir holds the certificates.
func transport(kind, dir, name string) (peer.Transport, error) {
	if kind != "tcp" {
		return &unixsock.Transport{}, nil
	}
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &tcp.Transport{Certificate: cert, Roots: roots, ClearData: true}, nil
}

func certify(t *testing.T, dir string) {
	t.Helper()
	a := peertest.NewAuthority(t)
	put := func(name, kind string, der []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("ca.pem", "CERTIFICATE", a.Certificate().Raw)
	for _, name := range []string{"source", "target"} {
		c := a.Issue(t, name)
		key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		put(name+".pem", "CERTIFICATE", c.Certificate[0])
		put(name+".key", "PRIVATE KEY", key)
	}
}

type anyone struct{}

func (anyone) MayRead(_ peer.Identity, ns []byte) bool { return string(ns) == space }
func (anyone) MayMap(peer.Identity) bool               { return true }

func filled(kind string) (*memstore.Store, error) {
	st, err := memstore.New(blocks, size, kind == "slab")
	for _, h := range hashes {
		if err == nil {
			err = st.Put(space, h, payload(h))
		}
	}
	return st, err
}

// child is the other process. It lives until its standard input ends.
func child(role, kind, dir, addr string) error {
	tr, err := transport(kind, dir, role)
	if err != nil {
		return err
	}
	if role == "source" {
		st, err := filled(kind)
		if err != nil {
			return err
		}
		l, err := tr.Listen(addr)
		if err != nil {
			return err
		}
		go peer.NewServer(peer.ServerConfig{Source: st, Auth: anyone{}}).Serve(l)
		fmt.Println("ready")
		_, err = io.Copy(io.Discard, os.Stdin)
		return err
	}
	go func() { io.Copy(io.Discard, os.Stdin); os.Exit(0) }()
	st, err := memstore.New(blocks, size, false)
	if err != nil {
		return err
	}
	c := peer.NewClient(peer.ClientConfig{OpTimeout: patient}, func(ctx context.Context) (*peer.Link, error) { return tr.Dial(ctx, addr) }, st)
	for round := 0; ; round++ {
		_, err := c.Pull(context.Background(), &peer.Request{Namespace: []byte(space), Hashes: hashes, MaxBytes: 1 << 40}, make([]peer.Status, blocks))
		if err := wrong(st); err != nil {
			return err
		}
		if round == 0 {
			fmt.Println("ready")
		}
		if err != nil {
			fmt.Println("failed")
		}
		empty(st)
	}
}

// wrong finds a block that is not what it should be.
func wrong(st *memstore.Store) error {
	for _, h := range hashes {
		if b := st.Get(space, h); b != nil && !bytes.Equal(b, payload(h)) {
			return fmt.Errorf("block %d is wrong", h)
		}
	}
	return nil
}

func empty(st *memstore.Store) {
	for _, h := range hashes {
		st.Drop(space, h)
	}
}

// process is a running child.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	lines *bufio.Scanner
}

func start(t *testing.T, role, kind, dir, addr string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], kind, dir, addr)
	cmd.Env = append(os.Environ(), childRole+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t, cmd, in, bufio.NewScanner(out)}
	t.Cleanup(p.kill)
	p.expect("ready")
	return p
}

func (p *process) expect(line string) {
	p.t.Helper()
	if !p.lines.Scan() || p.lines.Text() != line {
		p.t.Fatalf("the other process says %q, want %q", p.lines.Text(), line)
	}
}

func (p *process) signal(s unix.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Error(err)
	}
}

// stop waits until the process has really stopped, with all its threads.
func (p *process) stop() {
	p.t.Helper()
	p.signal(unix.SIGSTOP)
	eventually(p.t, "all threads are stopped", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
		for _, path := range threads {
			b, err := os.ReadFile(path)
			if err == nil && !bytes.Contains(b, []byte(") T ")) {
				return false
			}
		}
		return len(threads) > 0
	})
}

func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		p.cmd.Process.Kill()
		for p.lines.Scan() {
			if strings.HasPrefix(p.lines.Text(), "error") {
				p.t.Errorf("the other process says %q", p.lines.Text())
			}
		}
		p.cmd.Wait()
	}
	p.stdin.Close()
}

// place is a directory with certificates, and an address.
func place(t *testing.T, kind string) (dir, addr string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kvrt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if kind != "tcp" {
		return dir, filepath.Join(dir, "s")
	}
	certify(t, dir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return dir, l.Addr().String()
}

func descriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patient); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func each(t *testing.T, test func(t *testing.T, kind string)) {
	for _, kind := range []string{"unix", "slab", "tcp"} {
		t.Run(kind, func(t *testing.T) {
			before := descriptors(t)
			t.Run("run", func(t *testing.T) { test(t, kind) })
			eventually(t, "all descriptors are closed", func() bool { return descriptors(t) <= before })
		})
	}
}

func pullAll(c *peer.Client, within time.Duration) (peer.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return c.Pull(ctx, &peer.Request{Namespace: []byte(space), Hashes: hashes, MaxBytes: 1 << 40}, make([]peer.Status, blocks))
}

// TestSourceDies: a source is killed in mid-transfer, again and again, and comes back
// at the same address.
func TestSourceDies(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		dir, addr := place(t, kind)
		tr, err := transport(kind, dir, "target")
		if err != nil {
			t.Fatal(err)
		}
		st, err := memstore.New(blocks, size, false)
		if err != nil {
			t.Fatal(err)
		}
		c := peer.NewClient(peer.ClientConfig{}, func(ctx context.Context) (*peer.Link, error) { return tr.Dial(ctx, addr) }, st)
		defer c.Close()
		const lives = 4
		seen := make(map[uint64]bool)
		for range lives {
			p := start(t, "source", kind, dir, addr)
			res, err := pullAll(c, patient)
			if err != nil || res.Blocks != blocks {
				t.Fatalf("%+v, %v", res, err)
			}
			seen[res.Source] = true
			go func(after time.Duration) {
				time.Sleep(after) // anywhere in a transfer
				p.signal(unix.SIGKILL)
			}(time.Duration(rand.IntN(4000)) * time.Microsecond)
			for err == nil {
				if err := wrong(st); err != nil {
					t.Error(err)
				}
				empty(st)
				_, err = pullAll(c, patient)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a dead source is waited for: %v", err)
			}
			if err := wrong(st); err != nil {
				t.Error(err)
			}
			if u := st.Use(); u.Filling != 0 {
				t.Errorf("%+v", u)
			}
			empty(st)
			p.kill()
		}
		if n := c.Stats().Restarts; n != lives-1 || len(seen) != lives {
			t.Errorf("%d restarts were seen, %d incarnations", n, len(seen))
		}
	})
}

// TestSourcePauses: a source that is stopped costs the deadline, and serves again
// when it goes on.
func TestSourcePauses(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		dir, addr := place(t, kind)
		tr, err := transport(kind, dir, "target")
		if err != nil {
			t.Fatal(err)
		}
		st, err := memstore.New(blocks, size, false)
		if err != nil {
			t.Fatal(err)
		}
		c := peer.NewClient(peer.ClientConfig{}, func(ctx context.Context) (*peer.Link, error) { return tr.Dial(ctx, addr) }, st)
		defer c.Close()
		p := start(t, "source", kind, dir, addr)
		if _, err := pullAll(c, patient); err != nil {
			t.Fatal(err)
		}
		empty(st)
		p.stop()
		for range 2 { // on a link that is kept, and on one that is not welcomed
			if res, err := pullAll(c, 100*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) || res.Blocks != 0 {
				t.Errorf("%+v, %v", res, err)
			}
			if u := st.Use(); u.Filling != 0 {
				t.Errorf("%+v", u)
			}
		}
		p.signal(unix.SIGCONT)
		if res, err := pullAll(c, patient); err != nil || res.Blocks != blocks {
			t.Errorf("%+v, %v", res, err)
		}
		if err := wrong(st); err != nil {
			t.Error(err)
		}
	})
}

// TestTargetVanishes: a target is killed in mid-transfer, and no lease is left.
func TestTargetVanishes(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		s, st, dir, addr := serve(t, kind, patient)
		for range 3 {
			p := start(t, "target", kind, dir, addr)
			time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond) // anywhere in a transfer
			p.kill()
			eventually(t, "the leases end", func() bool { return st.Use().Leased == 0 && s.Stats().Open == 0 && s.Stats().Leased == 0 })
		}
	})
}

func serve(t *testing.T, kind string, opTimeout time.Duration) (s *peer.Server, st *memstore.Store, dir, addr string) {
	t.Helper()
	dir, addr = place(t, kind)
	tr, err := transport(kind, dir, "source")
	if err != nil {
		t.Fatal(err)
	}
	if st, err = filled(kind); err != nil {
		t.Fatal(err)
	}
	l, err := tr.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	s = peer.NewServer(peer.ServerConfig{Source: st, Auth: anyone{}, OpTimeout: opTimeout})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done; st.Close() })
	return s, st, dir, addr
}

// TestTargetPauses: a target that is stopped in mid-copy keeps its leases for as long
// as the source allows. Its slots are then used for other blocks; when the target goes
// on, it notices, and commits nothing that it copied meanwhile.
func TestTargetPauses(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		s, st, dir, addr := serve(t, kind, 30*time.Millisecond)
		p := start(t, "target", kind, dir, addr)
		for range 10 {
			p.stop()
			eventually(t, "the leases end", func() bool { return st.Use().Leased == 0 && s.Stats().Leased == 0 })
			for h := range uint64(blocks) { // every slot gets another block
				if err := st.Put("another", 1000+h, payload(1000+h)); err != nil {
					t.Fatal(err)
				}
			}
			for h := range uint64(blocks) {
				st.Drop("another", 1000+h)
			}
			for _, h := range hashes {
				if err := st.Put(space, h, payload(h)); err != nil {
					t.Fatal(err)
				}
			}
			p.signal(unix.SIGCONT)
			eventually(t, "the target is served again", func() bool { return s.Stats().Blocks > 0 })
			time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond) // anywhere in a transfer
		}
		p.kill() // fails the test if the target found a wrong block
	})
}
