package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvrt/kvrt/fleet"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/runtime"
)

// Store is the hint store behind finish, discard and status; *fetch.Store is one.
type Store interface {
	Finish(id hint.Identity, aborted bool)
	Discard(id hint.Identity)
	Status(id hint.Identity) fetch.Status
}

// Metrics answers scrapes. Snapshot is called before the loaded guests change, so that
// what they have counted until then is not lost.
type Metrics interface {
	http.Handler
	Snapshot()
}

// Config configures a Server. Runtime is required; everything else has a default or
// may be left out.
type Config struct {
	// Runtime is what dispatches. The server does not close it.
	Runtime *runtime.Runtime
	// Store answers finish, discard and status. Without one they are refused.
	Store Store
	// Dispatched hears of what was dispatched. nil: nobody does.
	Dispatched Dispatched
	// Fetcher carries out hints, and Outcomes tells what became of them. Without them fetch
	// and outcomes are refused.
	Fetcher  Fetcher
	Outcomes Outcomes
	// Exchange is what is shown of peers. Without one there is nothing to show.
	Exchange Exchange
	// Fleet is the workers and their KV events. Without one there are none. The server
	// does not close it.
	Fleet *fleet.Fleet
	// Blocks is the block store. Without one there is none. The server does not close it.
	Blocks Blocks
	// Requests are told what engines say of requests. Without them describe is refused.
	Requests Requests
	// Device is the device that blocks are copied to and from, and DeviceChoice why it is
	// that one. Without one there is none. The server does not close it.
	Device       Device
	DeviceChoice string
	Tier         Tier // the blocks on it; without one there are none

	// Socket is the path of the data socket. Empty: no data socket.
	Socket string
	// HTTP is the path of the socket on which routers post routing contexts. Empty: none.
	HTTP string
	// SocketMode is the mode of the socket files. Default 0600.
	SocketMode os.FileMode
	// Admin is the host:port of the admin API; port 0 picks a free one. Empty: no admin
	// API. An address that is not loopback needs AdminInsecure.
	Admin         string
	AdminInsecure bool
	// Pprof serves /debug/pprof on the admin API.
	Pprof bool
	// Reload reads the configuration again and applies it; nil: there is nothing to
	// reload. It must not call the server.
	Reload func(ctx context.Context) error
	// NotReady, when set, adds reasons why the daemon does not take work yet. The
	// server itself waits until the runtime has its first generation.
	NotReady func() []string
	// Metrics makes the handler of GET /metrics: package metrics has one.
	Metrics func(*Server) (Metrics, error)
	// Version is what the daemon calls itself.
	Version string
	// Log receives lifecycle events and changes. Default: nothing is logged.
	Log *slog.Logger

	// DrainTimeout is how long Run waits for requests in flight when its context ends.
	// Default 10 s; negative: not at all.
	DrainTimeout time.Duration
	// MaxConnections caps the connections of the data socket. Default 1,024.
	MaxConnections int
	// MaxFrame bounds a frame in bytes, either way. Default [DefaultMaxFrame].
	MaxFrame int
	// MaxBuffered bounds the bytes that buffers of large frames take, of all
	// connections together. Default 256 MiB.
	MaxBuffered int64
	// FrameTimeout is how long a frame that has begun, or the hello of a new
	// connection, may take to come. Default 10 s.
	FrameTimeout time.Duration
	// WriteTimeout is how long a client may leave replies unread, at most: it may be a
	// quarter less. Default 10 s.
	WriteTimeout time.Duration
	// MaxAdminBody bounds the body of an admin request in bytes. Default 64 MiB.
	MaxAdminBody int64
	// NotifySocket is where systemd wants to be told of the daemon's state. Default:
	// the variable NOTIFY_SOCKET; "-" tells nobody.
	NotifySocket string
}

func (c *Config) setDefaults() {
	orDefault(&c.SocketMode, 0o600)
	orDefault(&c.DrainTimeout, 10*time.Second)
	orDefault(&c.MaxConnections, 1024)
	orDefault(&c.MaxFrame, DefaultMaxFrame)
	orDefault(&c.MaxBuffered, 256<<20)
	orDefault(&c.FrameTimeout, 10*time.Second)
	orDefault(&c.WriteTimeout, 10*time.Second)
	orDefault(&c.MaxAdminBody, 64<<20)
	orDefault(&c.Version, "dev")
	orDefault(&c.NotifySocket, os.Getenv("NOTIFY_SOCKET"))
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Server is a daemon. Make one with New, then Run it.
type Server struct {
	cfg     Config
	log     *slog.Logger
	started time.Time
	metrics Metrics
	seed    func(*hint.Context) error // of every routing context; nil: nothing

	budget   budget   // of the buffers of all connections
	turns    turns    // of large requests
	socket   *socket  // nil without one
	routers  *routers // nil without one
	admin    *http.Server
	adminLn  net.Listener
	serving  sync.WaitGroup // the accept loops
	draining atomic.Bool
	closing  atomic.Bool

	changes sync.Mutex // one change of the guests at a time
	trimmer trimmer    // of what a change took

	mu      sync.Mutex // guards what follows
	reload  ReloadStatus
	refused map[string]GuestError // by name of a loaded guest
}

// New checks a configuration. It opens nothing.
func New(cfg Config) (*Server, error) {
	cfg.setDefaults()
	if cfg.Runtime == nil {
		return nil, errors.New("server.Config.Runtime is required")
	}
	if cfg.Socket == "" && cfg.Admin == "" && cfg.HTTP == "" {
		return nil, errors.New("nothing to listen on: give a socket, an HTTP socket, an admin address, or several")
	}
	if cfg.Admin != "" {
		if err := checkAdminAddress(cfg.Admin, cfg.AdminInsecure); err != nil {
			return nil, err
		}
	}
	s := &Server{cfg: cfg, log: cfg.Log, started: time.Now(), refused: map[string]GuestError{}, budget: budget{limit: cfg.MaxBuffered}, turns: newTurns()}
	s.reload = ReloadStatus{OK: true, LastOK: s.started}
	if cfg.Fleet != nil {
		s.seed = cfg.Fleet.Seed
	}
	if cfg.Socket != "" {
		s.socket = newSocket(s)
	}
	if cfg.HTTP != "" {
		s.routers = newRouters(s)
	}
	if cfg.Metrics != nil {
		var err error
		if s.metrics, err = cfg.Metrics(s); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return s, nil
}

// Start listens, serves in the background, and tells systemd. ctx bounds the start only.
func (s *Server) Start(ctx context.Context) error {
	if err := s.listen(ctx); err != nil {
		return err
	}
	if s.socket != nil {
		s.serving.Go(s.socket.accept)
	}
	if s.routers != nil {
		s.serving.Go(s.routers.serve)
	}
	if s.admin != nil {
		s.serving.Go(func() {
			if err := s.admin.Serve(s.adminLn); !errors.Is(err, http.ErrServerClosed) {
				s.log.Error("the admin API has stopped", "error", err)
			}
		})
	}
	s.notify("READY=1")
	s.trimmer.soon() // the guests of the configuration were loaded
	return nil
}

// listen opens everything, or nothing.
func (s *Server) listen(ctx context.Context) (err error) {
	if s.socket != nil {
		if err := s.socket.listen(ctx, s.cfg.SocketMode); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				s.socket.unlisten()
			}
		}()
	}
	if s.routers != nil {
		if err := s.routers.listen(ctx, s.cfg.SocketMode); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				s.routers.unlisten()
			}
		}()
	}
	if s.cfg.Admin != "" {
		return s.listenAdmin(ctx)
	}
	return nil
}

// Run starts, serves until ctx ends, and closes within the drain timeout.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	timeout, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(s.cfg.DrainTimeout, 0))
	defer cancel()
	return s.Close(timeout)
}

// Close stops taking connections, lets requests in flight finish until ctx is done,
// closes all connections and removes the socket file. It says whether some requests
// had to be cut off.
func (s *Server) Close(ctx context.Context) error {
	if s.closing.Swap(true) {
		return nil
	}
	s.notify("STOPPING=1")
	s.draining.Store(true)
	var err error
	if s.socket != nil {
		err = s.socket.close(ctx)
	}
	if s.routers != nil {
		err = errors.Join(err, s.routers.close(ctx))
	}
	if s.admin != nil {
		if s.admin.Shutdown(ctx) != nil {
			s.admin.Close()
		}
	}
	s.serving.Wait()
	s.trimmer.close()
	return err
}

// Drain refuses new connections from now on, and makes the daemon not ready. Open
// connections are served on.
func (s *Server) Drain() {
	if !s.draining.Swap(true) {
		s.log.Info("draining: new connections are refused")
	}
}

// AdminAddr is where the admin API listens once the server has started; "" when it
// does not.
func (s *Server) AdminAddr() string {
	if s.adminLn == nil {
		return ""
	}
	return s.adminLn.Addr().String()
}

// HTTPPath is the path of the socket for routers; "" when there is none.
func (s *Server) HTTPPath() string { return s.cfg.HTTP }

// SocketPath is the path of the data socket; "" when there is none.
func (s *Server) SocketPath() string { return s.cfg.Socket }

// Runtime is what the server dispatches to.
func (s *Server) Runtime() *runtime.Runtime { return s.cfg.Runtime }

// Blocks is what the server was given; nil without a block store.
func (s *Server) Blocks() Blocks { return s.cfg.Blocks }

// Device is what the server was given; nil without a device.
func (s *Server) Device() Device { return s.cfg.Device }

// Fleet is what the server was given.
func (s *Server) Fleet() *fleet.Fleet { return s.cfg.Fleet }

// Store is what the server was given.
func (s *Server) Store() Store { return s.cfg.Store }

// Version is what the daemon calls itself.
func (s *Server) Version() string { return s.cfg.Version }

// Log is where the server logs.
func (s *Server) Log() *slog.Logger { return s.log }

// notReady says why the daemon does not take work; empty when it does.
func (s *Server) notReady() (reasons []string) {
	if s.cfg.Runtime.Generation() == 0 {
		reasons = append(reasons, "the guests are not loaded")
	}
	if s.draining.Load() {
		reasons = append(reasons, "draining")
	}
	if s.cfg.NotReady != nil {
		reasons = append(reasons, s.cfg.NotReady()...)
	}
	return reasons
}

// errNoReload is returned when there is no configuration to read again.
var errNoReload = errors.New("this daemon runs without a configuration file: there is nothing to reload")

// LastReload tells of the last reload.
func (s *Server) LastReload() ReloadStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reload
}

func (s *Server) snapshot() {
	if s.metrics != nil {
		s.metrics.Snapshot()
	}
}

// checkAdminAddress wants a loopback host unless told otherwise. A name counts as
// loopback only if it is localhost.
func checkAdminAddress(addr string, insecure bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("admin address %q: want host:port", addr)
	}
	if ip := net.ParseIP(host); !insecure && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("admin address %q is not loopback, and the admin API has no authentication: listen on 127.0.0.1, or set admin_insecure if something in front of it authenticates", addr)
	}
	return nil
}
