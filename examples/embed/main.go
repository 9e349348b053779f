// Command embed uses kvrt as a library: one engine, one capability, one guest. It
// links no YAML, no HTTP and no metrics.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

const envelope = `{"protocol_version":"0.1","message_id":"m1","actions":[
{"action_id":"a1","action_type":"kv.fetch","action_version":"1.0",
 "payload":{"source_control_endpoint":"tcp://127.0.0.1:23280","block_hashes":[11,18446744073709551615]}},
{"action_id":"a2","action_type":"kv.fetch","action_version":"1.0","payload":{"block_hashes":[-1]}}]}`

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	// The native side: which sources may be named, and what is kept of a hint.
	allow, err := fetch.ParseAllowList(ctx, []string{"tcp://127.0.0.0/8"}, nil)
	if err != nil {
		return err
	}
	store := fetch.New(fetch.Config{})
	rt, err := runtime.New(runtime.Config{
		Engine: wazero.New(wazero.Config{}), // for guests of one's own; others are compiled in a child, as the package shows
		Hosts:  []runtime.HostModule{fetch.NewHost(store, allow), log.Module{}},
	})
	if err != nil {
		return err
	}
	defer rt.Close(ctx)

	// The guest: its module, and what it may import. Its fuel and memory are what its
	// manifest asks for, within bounds; Limits says otherwise.
	spec := runtime.GuestSpec{Name: "kv-fetch", Grants: []string{"kvrt_fetch", "kvrt_log"}}
	spec.Module, _ = policies.Module("kv-fetch")
	if err := rt.Apply(ctx, []runtime.GuestSpec{spec}); err != nil {
		return err
	}

	// One envelope. The response is reused from call to call by one goroutine.
	id, res := hint.Identity{RequestID: "r1"}, rt.NewResponse()
	if err := rt.Dispatch(&runtime.Request{Body: []byte(envelope), Identity: id, Forward: true}, res); err != nil {
		return err // a malformed envelope: no guest has run
	}
	for _, r := range res.Results {
		line := fmt.Sprintf("%s: %s %s %s", r.ActionID, r.Status, r.Reason, r.Detail)
		fmt.Fprintln(out, strings.TrimSpace(line))
	}
	source, hit := store.Lookup(id, 11)
	fmt.Fprintf(out, "block 11 of request r1: %v, from %s\npass on: %s\n", hit, source, res.Forward)
	store.Finish(id, false)
	return nil
}
