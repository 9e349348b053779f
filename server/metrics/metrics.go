// Package metrics shows a daemon's counters to Prometheus.
//
// Nothing is counted here: a scrape reads the counters that the runtime, the data
// socket, the hint store, the feeds, the lineage indexes, the block store, the device and
// the exchange with peers keep anyway. No label holds what a sender chose: guests, workers
// and namespaces are named by the operator, and reasons, kinds, codes and operations are
// tables. Peers are an exception, with a bound: sources that have served a block and
// peers that have asked for one, the first 64 of each; the rest is "other".
//
// The counters of a guest that is swapped go on: what its predecessors had counted is
// added. What a predecessor still does while it drains, after the last look at it, is
// not: a few calls per swap, at most. A guest that is unloaded loses its series.
package metrics

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kvrt/kvrt/server"
)

// The bounds of scrapes.
const (
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

// Handler answers scrapes. It has its own registry.
type Handler struct {
	http.Handler
	registry  *prometheus.Registry
	collector *collector
}

// New makes the metrics of a server: it is what server.Config.Metrics wants.
func New(s *server.Server) (server.Metrics, error) { return newHandler(s) }

func newHandler(s *server.Server) (*Handler, error) {
	h := &Handler{registry: prometheus.NewRegistry(), collector: newCollector(s)}
	for _, c := range []prometheus.Collector{
		h.collector,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := h.registry.Register(c); err != nil {
			return nil, err
		}
	}
	h.Handler = promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(s.Log().Handler(), slog.LevelError),
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
		EnableOpenMetrics:   true,
	})
	return h, nil
}

// Snapshot looks at the guests, before some of them are replaced.
func (h *Handler) Snapshot() { h.collector.look() }
