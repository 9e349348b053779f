package main

import (
	"context"
	"os"
	"os/signal"
	"reflect"
	goruntime "runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/server"
	"github.com/kvrt/kvrt/server/metrics"
)

// serveFlags are the flags of serve. What is given takes the place of what the
// configuration says.
type serveFlags struct {
	file, socket, http, admin string
	level, format             string
	pprof                     bool
}

func newServe() *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long: `serve runs the daemon: guests from the configuration, a Unix socket for engines and
routers, an admin API with metrics on loopback. Without -c it runs the built-in guests,
no policy, and accepts fetch sources on loopback only. It says on standard error what
it loaded, where it listens and what to try next. The socket appears when the daemon
is ready.

It follows the KV events of the workers in the configuration, and of those that
kvrt workers set adds, and keeps the lineage that policies ask for. With listen.http,
routers in any language post routing contexts to a second Unix socket:

  curl --unix-socket /run/kvrt/http.sock --json @context.json http://kvrt/v1/formulate

One context is answered by one object, a JSON list by a list, and JSON lines (content
type application/x-ndjson) by lines; kvrt formulate --help shows both forms.

SIGHUP, kvrt reload and POST /-/reload all read the configuration again; when
anything in it is wrong nothing changes. Of workers a reload carries out what has
changed in the file, and leaves the rest as the admin API has made it. Of peers it
reads the files of certificates again, and who may read what: transfers under way end
as they began. SIGINT and SIGTERM let the calls in flight finish, for drain_timeout at
most, and end with code 0; a second one ends at once.

A guest is stopped when its call has used up its fuel, a number of instructions
(limits.fuel, 200,000 unless set).`,
		Example: `  kvrt serve
  kvrt serve -c /etc/kvrt/kvrt.yaml --log-format json
  kvrt serve --socket /tmp/kvrt.sock --admin 127.0.0.1:0
  kill -HUP "$(pidof kvrt)"            # read the configuration again`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd, &flags) },
	}
	configFlag(cmd.Flags(), &flags.file)
	cmd.Flags().StringVar(&flags.socket, "socket", "", "path of the Unix socket (default from the configuration, else "+config.DefaultSocket()+")")
	cmd.Flags().StringVar(&flags.http, "http", "", "path of a Unix socket for routing contexts as JSON over HTTP (default from the configuration, else none)")
	cmd.Flags().StringVar(&flags.admin, "admin", "", "`host:port` of the admin API and the metrics; port 0 picks a free one (default from the configuration, else 127.0.0.1:9640)")
	cmd.Flags().BoolVar(&flags.pprof, "pprof", false, "serve /debug/pprof on the admin API")
	logLevelFlag(cmd, &flags.level, "")
	chooseFrom(cmd, &flags.format, "log-format", "", "form of the log's lines", "text", "json")
	return cmd
}

// apply puts flags over a configuration.
func (f *serveFlags) apply(cfg *config.Config) {
	if f.socket != "" {
		cfg.Listen.Socket = f.socket
	}
	if f.http != "" {
		cfg.Listen.HTTP = f.http
	}
	if f.admin != "" {
		cfg.Listen.Admin = f.admin
	}
	if f.level != "" {
		cfg.Log.Level = config.LogLevel(f.level)
	}
	if f.format != "" {
		cfg.Log.Format = config.LogFormat(f.format)
	}
}

// threadsPerProcessor is twice what one guest has instances by default.
const threadsPerProcessor = 4

// serve runs the daemon until a signal ends it.
func serve(cmd *cobra.Command, flags *serveFlags) error {
	cfg, err := loadConfig(flags.file)
	if err != nil {
		return err
	}
	flags.apply(cfg)
	log := newLog(cmd.ErrOrStderr(), string(cfg.Log.Level), string(cfg.Log.Format))

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP) // early, since it would end the process
	defer signal.Stop(signals)

	s, err := wireDaemon(cmd.Context(), cfg, log)
	if err != nil {
		return err
	}
	defer s.fleet.Close()
	defer s.closePeers()
	if os.Getenv("GOMAXPROCS") == "" {
		// So that guests that compute for long hold some of them, and the kernel lets the
		// others have their turn. The runtime has counted the processors by now.
		goruntime.GOMAXPROCS(threadsPerProcessor * min(goruntime.GOMAXPROCS(0), goruntime.NumCPU()))
	}
	d := &daemon{stack: s, file: flags.file, flags: flags, started: cfg}
	srv, err := d.server()
	if err != nil {
		return err
	}
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM) // from here on there is something to clean up
	if err := srv.Start(cmd.Context()); err != nil {
		return err
	}
	sweeping, stopSweeping := context.WithCancel(cmd.Context())
	defer stopSweeping()
	go d.sweep(sweeping)
	if err := announce(cmd.ErrOrStderr(), cfg, s, srv); err != nil {
		log.Warn("the start could not be announced", "error", err)
	}

	sig := <-signals
	for ; sig == syscall.SIGHUP; sig = <-signals {
		// The server logs how it went, unless there is nothing to reload.
		if err := srv.Reload(cmd.Context()); err != nil && flags.file == "" {
			log.Warn("SIGHUP: " + err.Error())
		}
	}
	signal.Reset(syscall.SIGINT, syscall.SIGTERM) // a second one ends the process
	log.Info("stopping: calls in flight may finish; a second signal stops at once", "signal", sig.String(), "drain_timeout", cfg.DrainTimeout)
	return d.stop(srv, cfg.DrainTimeout)
}

// daemon is what serve keeps while it runs.
type daemon struct {
	*stack
	file    string
	flags   *serveFlags
	started *config.Config // with which it started
}

// server makes the server of what it started with.
func (d *daemon) server() (*server.Server, error) {
	cfg := d.started
	sc := server.Config{
		Runtime: d.runtime, Store: d.store, Fleet: d.fleet, Socket: cfg.Listen.Socket, HTTP: cfg.Listen.HTTP,
		Admin: cfg.Listen.Admin, AdminInsecure: cfg.Listen.AdminInsecure,
		Pprof: d.flags.pprof, Metrics: metrics.New, Version: thisBuild().Version, Log: d.log,
		MaxFrame: max(server.DefaultMaxFrame, int(cfg.Limits.BodyBytes)+server.DefaultMaxFrame/2),
	}
	if b := d.blocks.Store(); b != nil {
		sc.Blocks, sc.Requests = b, d.blocks.Requests()
	}
	if d.peers != nil {
		sc.Dispatched, sc.Exchange = d.peers, shownExchange{d.peers}
		sc.Fetcher, sc.Outcomes = d.fetcher(), d.peers.Outcomes
	}
	sc.Device, sc.DeviceChoice = d.device, d.device.why
	if t := d.onDevice.Tier(); t != nil {
		sc.Tier = t
	}
	if d.file != "" {
		sc.Reload = d.reload
	}
	return server.New(sc)
}

// reload is the one way to read the configuration again. The server calls it, one call
// at a time.
func (d *daemon) reload(ctx context.Context) error {
	cfg, err := loadConfig(d.file)
	if err != nil {
		return err
	}
	d.flags.apply(cfg)
	if err := d.reconfigure(ctx, cfg); err != nil {
		return err
	}
	for _, key := range needRestart(d.started, cfg) {
		d.log.Warn("configuration: " + key + " has changed and takes effect when the daemon starts again")
	}
	return nil
}

// needRestart names the keys that differ and are read at the start only.
func needRestart(old, cfg *config.Config) (keys []string) {
	say := func(key string, differ bool) {
		if differ {
			keys = append(keys, key)
		}
	}
	bounds := func(f config.Fetch) config.Fetch {
		f.AllowedSources = nil
		return f
	}
	a, b := bounds(old.Fetch), bounds(cfg.Fetch)
	say("guest_memory", old.GuestMemory != cfg.GuestMemory)
	say("fetch", a.TTL != b.TTL || a.TombstoneTTL != b.TombstoneTTL || a.MaxEntries != b.MaxEntries || a.MaxHashes != b.MaxHashes)
	say("forward_unknown", old.ForwardUnknown != cfg.ForwardUnknown)
	say("request_hints", old.RequestHints != cfg.RequestHints)
	say("formulate", targetOf(old) != targetOf(cfg))
	say("lineage", old.Lineage != cfg.Lineage)
	say("store", !reflect.DeepEqual(old.Store, cfg.Store))
	say("gpu", old.GPU != cfg.GPU)
	say("peers", peersNeedRestart(old.Peers, cfg.Peers))
	say("workers", !reflect.DeepEqual(old.Workers, cfg.Workers))
	say("listen", old.Listen != cfg.Listen)
	say("compile", old.Compile != cfg.Compile)
	say("limits", old.Limits != cfg.Limits)
	say("log", old.Log != cfg.Log)
	say("drain_timeout", old.DrainTimeout != cfg.DrainTimeout)
	return keys
}

// sweepEvery is how often expired hints are looked for; they are never seen before.
const sweepEvery = 10 * time.Second

// sweep frees expired hints while no new ones push them out.
func (d *daemon) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	failed := uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			d.store.Sweep()
			if b := d.blocks.Store(); b != nil {
				b.Sweep()
			}
			if d.peers != nil {
				d.peers.Sweep()
			}
			failed = d.tellOfDevice(failed)
		}
	}
}

// stop lets calls in flight finish, within the drain timeout.
func (d *daemon) stop(srv *server.Server, drain time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if err := srv.Close(ctx); err != nil {
		d.log.Warn("stopped with requests cut off", "error", err)
	}
	if err := d.runtime.Close(ctx); err != nil {
		d.log.Warn("stopped with calls in flight", "error", err)
	}
	d.closePeers() // which gives back what it holds of the block store
	if err := d.closeMemory(ctx); err != nil {
		d.log.Warn("stopped with blocks in use", "error", err)
	}
	d.log.Info("stopped")
	return nil
}
