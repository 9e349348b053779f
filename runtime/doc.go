// Package runtime runs guests: it loads modules, keeps pools of their instances,
// dispatches envelopes to them, and lets policies formulate envelopes. It knows no Wasm engine and no host subsystem; both
// come in through the small interfaces in contract.go, which it owns because it calls
// them.
//
// A program embeds it with one engine and the hosts it wants:
//
//	rt, err := runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{}), Hosts: hosts})
//	err = rt.Apply(ctx, []runtime.GuestSpec{{Name: "kv-fetch", Module: wasm, Grants: []string{"kvrt_fetch"}}})
//	res := rt.NewResponse()
//	err = rt.Dispatch(&runtime.Request{Body: body, Identity: id}, res)
//
// A router that has chosen a worker asks the policies, which are the guests whose
// specification says so ([GuestSpec].Policy):
//
//	res := rt.NewFormulation()
//	err = rt.Formulate(ctx, &runtime.FormulateRequest{Body: context}, res)
//	// attach res.Envelope to the request, if there is one
//
// The loaded guests are an immutable generation behind one atomic pointer. Apply,
// Load, Swap and Rollback build what is new completely before it is offered; calls in
// flight finish on the old generation, whose instances close after their last user.
// Dispatch and Formulate take no lock.
package runtime
