package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// dispatch runs one envelope. The request's identity is in the query; the answer has the
// results, and the envelope to pass on when forward=true asked for it.
func (k *routers) dispatch(_ context.Context, c *httpCall) error {
	if c.lines {
		return refusal(http.StatusUnsupportedMediaType, "one envelope at a time: want the content type application/json")
	}
	req := runtime.Request{Body: c.body, Format: abi.FormatJSON}
	if err := readDispatch(c.query, &req); err != nil {
		return err
	}
	if c.res == nil {
		c.res = k.server.cfg.Runtime.NewResponse()
	}
	err := k.server.cfg.Runtime.Dispatch(&req, c.res)
	k.server.dispatched(req.Identity, c.res)
	if err != nil {
		return err
	}
	c.out = append(c.out, `{"results":[`...)
	for i := range c.res.Results {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = c.res.Results[i].AppendJSON(c.out)
	}
	c.out = append(c.out, `],"forward":`...)
	if len(c.res.Forward) == 0 {
		c.out = append(c.out, "null"...)
	}
	c.out = append(append(c.out, c.res.Forward...), "}\n"...)
	if len(c.res.Results) > 256 || len(c.body) > keepBuffer {
		c.res = nil
	}
	return nil
}

// readDispatch reads the query of a dispatch.
func readDispatch(query url.Values, req *runtime.Request) error {
	id := &req.Identity
	for name, values := range query {
		v := values[0]
		var err error
		switch {
		case len(values) > 1:
			err = errors.New("given more than once")
		case name == "request_id":
			id.RequestID, err = v, bounded(v, maxRequestID)
		case name == "engine":
			id.Engine, err = v, bounded(v, maxEngine)
		case name == "dialect":
			req.Dialect, err = v, bounded(v, maxDialect)
		case name == "dp_rank":
			id.DPRank, err = number(v)
		case name == "attempt":
			id.Attempt, err = number(v)
		case name == "leg":
			id.Leg, err = legOf(v)
		case name == "forward" && (v == "true" || v == "false"):
			req.Forward = v == "true"
		case name == "forward":
			err = errors.New("want true or false")
		default:
			err = errors.New("unknown")
		}
		if err != nil {
			return &fieldRefusal{name, err.Error()}
		}
	}
	return nil
}

func bounded(s string, most int) error {
	if len(s) > most || !utf8.ValidString(s) {
		return errors.New("want at most " + strconv.Itoa(most) + " bytes of UTF-8")
	}
	return nil
}

func number(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, errors.New("want an integer in [0, 2^32)")
	}
	return uint32(n), nil
}

func legOf(s string) (abi.Leg, error) {
	for _, leg := range []abi.Leg{abi.LegAggregated, abi.LegPrefill, abi.LegDecode} {
		if leg.String() == s {
			return leg, nil
		}
	}
	return 0, errors.New("want aggregated, prefill or decode")
}

// dispatchFailure answers what only a dispatch fails with. It is false for others.
func dispatchFailure(w http.ResponseWriter, err error) bool {
	var (
		parse *runtime.ParseError
		fatal *runtime.FatalError
	)
	switch {
	case errors.As(err, &parse) && parse.Malformed(), errors.Is(err, runtime.ErrUnknownDialect), errors.Is(err, runtime.ErrIdentity):
		writeError(w, http.StatusBadRequest, err.Error(), nil)
	case errors.As(err, &parse):
		writeError(w, http.StatusServiceUnavailable, err.Error(), nil)
	case errors.As(err, &fatal):
		writeError(w, http.StatusInternalServerError, err.Error(), nil)
	default:
		return false
	}
	return true
}
