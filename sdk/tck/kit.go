package tck

import (
	"slices"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/clock"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/hosts/session"
	"github.com/kvrt/kvrt/hosts/wasi"
	"github.com/kvrt/kvrt/hosts/worker"
	"github.com/kvrt/kvrt/runtime"
)

// Kit is what guests are judged on. Only Engine is required.
type Kit struct {
	Engine runtime.Engine
	// Second, when it is not nil, is an engine that must agree with Engine on each call.
	// Where a guest is not trusted neither is it, and the kit is used in a child process.
	Second runtime.Engine
	// Hosts are offered beside kvrt_fetch, kvrt_store, kvrt_gpu, kvrt_session and
	// kvrt_worker, which are always those of a [Recorder]. Default: kvrt_log, kvrt_clock and the stub of WASI.
	Hosts []runtime.HostModule
	// CheckParameters, when set, holds parameters against the schema in the manifest.
	CheckParameters func(schema, parameters []byte) error
}

// Config is the configuration of a runtime whose guests ask rec.
func (k *Kit) Config(rec *Recorder) runtime.Config {
	hosts := k.Hosts
	if hosts == nil {
		hosts = []runtime.HostModule{log.Module{}, clock.Module{}, wasi.Module{}}
	}
	rec.Workers = worker.New(worker.Config{})
	own := []runtime.HostModule{rec, session.NewHost(&rec.Sessions, scope), worker.NewHost(rec.Workers), keeper{rec, abi.ModuleStore}, keeper{rec, abi.ModuleGPU}}
	for _, h := range hosts {
		if !slices.ContainsFunc(own, func(o runtime.HostModule) bool { return o.Name() == h.Name() }) {
			own = append(own, h)
		}
	}
	return runtime.Config{Engine: k.Engine, Hosts: own, Log: rec.Log(), CheckParameters: k.CheckParameters, Capable: rec.Workers.Capable}
}
