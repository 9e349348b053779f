// Command peers fetches blocks from another process because a hint said so: an envelope
// goes to the kv-fetch guest, the guest's accepted hint to the hint store, and the
// blocks come from the source that the hint names, through shared memory. It starts the
// other process itself.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/kvrt/kvrt/fleet/peers"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/fetch/peer/unixsock"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

const (
	source    = "tcp://127.0.0.1:23280" // as hints name the other process
	blockSize = 1 << 20
	envelope  = `{"protocol_version":"0.1","message_id":"m1","actions":[
{"action_id":"a1","action_type":"kv.fetch","action_version":"1.0",
 "payload":{"source_control_endpoint":"` + source + `","block_hashes":[11,12,13]}}]}`
)

// namespace is what tells blocks of tenants, models and layouts apart.
var namespace = store.Namespace("tenant-a", "llama/bf16")

func main() {
	var err error
	if len(os.Args) == 3 && os.Args[1] == "source" {
		err = serve(os.Args[2], os.Stdin, os.Stdout)
	} else {
		err = run(context.Background(), os.Stdout, os.Args[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve is the other process: a store with blocks 11 and 12, for any process of this
// user, until its input ends.
func serve(socket string, in io.Reader, out io.Writer) error {
	blocks, err := store.New(store.Config{Capacity: 8 << 20, Checksum: true})
	if err != nil {
		return err
	}
	for h := uint64(11); h <= 12; h++ {
		token, b, err := blocks.Reserve(namespace, h, blockSize)
		if err != nil {
			return err
		}
		copy(b, content(h))
		if err := blocks.Commit(token); err != nil {
			return err
		}
	}
	x, err := peers.New(peers.Config{
		Hints: fetch.New(fetch.Config{}), Blocks: blocks,
		Serve: []peers.Endpoint{{Transport: &unixsock.Transport{}, Address: socket}},
		Auth:  peer.Rules{{Peer: peer.Identity{UID: uint32(os.Geteuid())}, All: true}},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	_, err = io.Copy(io.Discard, in)
	x.Close()
	return errors.Join(err, blocks.Close())
}

// content makes the bytes of a block.
func content(h uint64) []byte { return bytes.Repeat([]byte{byte(h), 'k', 'v', 0}, blockSize/4) }

func run(ctx context.Context, out io.Writer, self string) error {
	dir, err := os.MkdirTemp("", "kvrt")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "peer.sock")
	stop, err := start(self, socket)
	if err != nil {
		return err
	}
	defer stop()

	// The native side of this process: hints, blocks, and the exchange of blocks.
	allow, err := fetch.ParseAllowList(ctx, []string{"tcp://127.0.0.0/8"}, nil)
	if err != nil {
		return err
	}
	hints := fetch.New(fetch.Config{})
	blocks, err := store.New(store.Config{Capacity: 8 << 20, Checksum: true})
	if err != nil {
		return err
	}
	defer blocks.Close()
	x, err := peers.New(peers.Config{
		Hints: hints, Blocks: blocks,
		Local: &unixsock.Transport{}, Sockets: map[string]string{source: socket},
	})
	if err != nil {
		return err
	}
	defer x.Close()

	rt, err := runtime.New(runtime.Config{
		Engine: wazero.New(wazero.Config{}),
		Hosts:  []runtime.HostModule{fetch.NewHost(hints, allow), log.Module{}},
	})
	if err != nil {
		return err
	}
	defer rt.Close(ctx)
	spec := runtime.GuestSpec{Name: "kv-fetch", Grants: []string{"kvrt_fetch", "kvrt_log"}}
	spec.Module, _ = policies.Module("kv-fetch")
	if err := rt.Apply(ctx, []runtime.GuestSpec{spec}); err != nil {
		return err
	}

	// The envelope. Each accepted kv.fetch has an outcome, sooner or later.
	id, res := hint.Identity{Engine: "vllm", RequestID: "r1"}, rt.NewResponse()
	if err := rt.Dispatch(&runtime.Request{Body: []byte(envelope), Identity: id}, res); err != nil {
		return err
	}
	for _, r := range res.Results {
		fmt.Fprintf(out, "%s: %s\n", r.ActionID, r.Status)
	}
	x.Dispatched(id, []byte("m1"), res.Results)

	// The engine wants the blocks of its request.
	req := &fetcher.Request{Identity: id, Tenant: "tenant-a", Namespace: []byte(namespace), BlockBytes: blockSize, Hashes: []uint64{11, 12, 13}}
	places := make([]fetcher.Place, len(req.Hashes))
	x.Fetcher.Query(req, places)
	fmt.Fprintln(out, "before:", places)
	status := make([]peer.Status, len(req.Hashes))
	_, err = x.Fetcher.Fetch(ctx, req, status)
	fmt.Fprintln(out, "fetched:", status, err)
	x.Fetcher.Query(req, places)
	fmt.Fprintln(out, "after:", places)
	for _, h := range req.Hashes[:2] {
		token, b, err := blocks.Acquire(namespace, h)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "block %d is right: %v\n", h, bytes.Equal(b, content(h)))
		if err := blocks.Release(token); err != nil {
			return err
		}
	}
	for _, o := range x.Outcomes.Query(outcome.Filter{Identity: &id}, 1) {
		fmt.Fprintf(out, "outcome of %s[%d]: %s, %d of %d blocks, %s\n", o.MessageID, o.Index, o.State, o.Fetched, o.Blocks, o.Reason)
	}
	return nil
}

// start runs the other process and waits until it is ready.
func start(self, socket string) (stop func(), err error) {
	cmd := exec.Command(self, "source", socket)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() { in.Close(); cmd.Wait() }
	if line, err := bufio.NewReader(lines).ReadString('\n'); err != nil {
		stop()
		return nil, fmt.Errorf("the source said %q: %w", line, err)
	}
	return stop, nil
}
