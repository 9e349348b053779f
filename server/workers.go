package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/kvrt/kvrt/fleet"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/worker"
)

// WorkerSpec is a worker of the fleet, in the words of kvrt.yaml.
type WorkerSpec struct {
	ID        *hint.WorkerID `json:"id,omitempty"` // in a PUT it may be left out
	Type      string         `json:"type,omitempty"`
	Namespace string         `json:"namespace,omitempty"`
	BlockSize uint32         `json:"block_size,omitempty"` // tokens
	// Capabilities: left out or null, the worker takes every action type; empty, none.
	Capabilities *[]string  `json:"capabilities,omitempty"`
	Ranks        []RankSpec `json:"ranks,omitempty"`
}

// RankSpec is one data-parallel rank. A worker has numbered ranks, or one without a
// number.
type RankSpec struct {
	DPRank *uint32 `json:"dp_rank,omitempty"`
	Events string  `json:"events,omitempty"`
	Replay string  `json:"replay,omitempty"`
	Source string  `json:"source,omitempty"`
}

// WorkerStatus is a worker that is in the catalogue.
type WorkerStatus struct {
	WorkerSpec
	Origin string `json:"origin"` // config or api: who set it last
}

// WorkerList is the answer of GET /v1/workers: integers before texts.
type WorkerList struct {
	Workers []WorkerStatus `json:"workers"`
}

// WorkerChange is the answer to a worker that was set or removed.
type WorkerChange struct {
	Worker  *WorkerStatus `json:"worker,omitempty"`
	Created bool          `json:"created,omitempty"`
	Removed bool          `json:"removed,omitempty"`
}

func (w *WorkerSpec) worker(id hint.WorkerID) worker.Worker {
	out := worker.Worker{ID: id, Type: w.Type, Namespace: w.Namespace, BlockSize: w.BlockSize}
	if w.Capabilities != nil {
		out.Capabilities = append([]string{}, *w.Capabilities...)
	}
	for _, r := range w.Ranks {
		out.Ranks = append(out.Ranks, worker.Rank{Rank: r.DPRank, Events: r.Events, Replay: r.Replay, Source: r.Source})
	}
	return out
}

func workerStatus(w fleet.Worker) WorkerStatus {
	id := w.ID
	out := WorkerStatus{WorkerSpec{ID: &id, Type: w.Type, Namespace: w.Namespace, BlockSize: w.BlockSize}, string(w.Origin)}
	if w.Capabilities != nil {
		list := append([]string{}, w.Capabilities...)
		out.Capabilities = &list
	}
	for _, r := range w.Ranks {
		out.Ranks = append(out.Ranks, RankSpec{r.Rank, r.Events, r.Replay, r.Source})
	}
	return out
}

// ParseWorkerID reads an id as it stands in a path or on a command line: digits are an
// integer, a JSON string in double quotes is a text, and so is everything else as it is.
func ParseWorkerID(s string) (hint.WorkerID, error) {
	var id hint.WorkerID
	digits := strings.TrimPrefix(s, "-")
	switch {
	case strings.HasPrefix(s, `"`):
		if err := json.Unmarshal([]byte(s), &id); err != nil {
			return id, fmt.Errorf("worker id %s: want a JSON string", s)
		}
	case digits != "" && strings.Trim(digits, "0123456789") == "":
		if err := id.UnmarshalJSON([]byte(s)); err != nil || id.String() != s {
			return id, fmt.Errorf("worker id %s: no integer from -2^63 to 2^64-1 in its shortest form: write %q with the quotes if it is a text", s, s)
		}
	default:
		id = hint.NamedWorker(s)
	}
	return id, id.Check()
}

// FormatWorkerID is what ParseWorkerID reads.
func FormatWorkerID(id hint.WorkerID) string {
	text := id.Text()
	if text == "" {
		return id.String()
	}
	if back, err := ParseWorkerID(text); err == nil && back == id && text != "." && text != ".." { // a path would lose the dots
		return text
	}
	b, err := json.Marshal(text)
	if err != nil { // a string can be marshalled
		return text
	}
	return string(b)
}

func workerPath(id hint.WorkerID) string { return "/v1/workers/" + url.PathEscape(FormatWorkerID(id)) }

func (s *Server) getWorkers(w http.ResponseWriter, _ *http.Request) {
	list := WorkerList{[]WorkerStatus{}}
	if f := s.cfg.Fleet; f != nil {
		for _, x := range f.Workers() {
			list.Workers = append(list.Workers, workerStatus(x))
		}
	}
	writeJSON(w, http.StatusOK, list)
}

// oneWorker wraps a handler of one worker.
func (s *Server) oneWorker(h func(r *http.Request, id hint.WorkerID) (status int, answer any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.cfg.Fleet == nil {
			writeError(w, http.StatusNotFound, "this daemon keeps no workers", nil)
			return
		}
		id, err := ParseWorkerID(r.PathValue("id"))
		if err != nil {
			writeError(w, http.StatusBadRequest, err.Error(), []problemBody{{"worker", "id", err.Error()}})
			return
		}
		status, answer, err := h(r, id)
		if err != nil {
			writeFailure(w, err)
			return
		}
		writeJSON(w, status, answer)
	}
}

func (s *Server) getWorker(_ *http.Request, id hint.WorkerID) (int, any, error) {
	x, ok := s.cfg.Fleet.Get(id)
	if !ok {
		return 0, nil, refusal(http.StatusNotFound, "there is no worker %s", id)
	}
	return http.StatusOK, workerStatus(x), nil
}

func (s *Server) putWorker(r *http.Request, id hint.WorkerID) (int, any, error) {
	var in WorkerSpec
	if err := readObject(r, &in); err != nil {
		return 0, nil, err
	}
	if in.ID != nil && *in.ID != id {
		return 0, nil, &fieldRefusal{"id", fmt.Sprintf("%s is not the worker of the path, %s", in.ID, id)}
	}
	s.changes.Lock() // a reload sees the fleet as it was, or as it is now
	defer s.changes.Unlock()
	_, known := s.cfg.Fleet.Get(id)
	if err := s.cfg.Fleet.Put(in.worker(id)); err != nil {
		return 0, nil, err
	}
	s.log.Info("worker set", "worker", id.String(), "from", r.RemoteAddr)
	out := WorkerChange{Created: !known}
	if x, ok := s.cfg.Fleet.Get(id); ok {
		st := workerStatus(x)
		out.Worker = &st
	}
	if known {
		return http.StatusOK, out, nil
	}
	return http.StatusCreated, out, nil
}

func (s *Server) deleteWorker(r *http.Request, id hint.WorkerID) (int, any, error) {
	s.changes.Lock()
	defer s.changes.Unlock()
	if !s.cfg.Fleet.Delete(id) {
		return 0, nil, refusal(http.StatusNotFound, "there is no worker %s", id)
	}
	s.log.Info("worker removed", "worker", id.String(), "from", r.RemoteAddr)
	return http.StatusOK, WorkerChange{Removed: true}, nil
}

// fieldRefusal is a refusal that is about one field of a body.
type fieldRefusal struct{ field, msg string }

func (e *fieldRefusal) Error() string { return e.field + ": " + e.msg }

// readObject reads one JSON object, strictly, and names the field that is wrong.
func readObject(r *http.Request, v any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if b := bytes.TrimSpace(body); len(b) == 0 || b[0] != '{' {
		return refusal(http.StatusBadRequest, "the body: want a JSON object")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err = d.Decode(v)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return &fieldRefusal{kind.Field, fmt.Sprintf("want %s, not %s", wanted(kind.Type.String()), kind.Value)}
	case err != nil:
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return &fieldRefusal{strings.Trim(name, `"`), "unknown key"}
		}
		if msg, ok := strings.CutPrefix(err.Error(), "worker id: "); ok {
			return &fieldRefusal{"id", msg}
		}
		return refusal(http.StatusBadRequest, "the body: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return refusal(http.StatusBadRequest, "the body: more than one JSON value")
	}
	return nil
}

// wanted names a type of Go in the words of JSON.
func wanted(goType string) string {
	switch {
	case goType == "string":
		return "a string"
	case goType == "uint32":
		return "an integer in [0, 2^32)"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	}
	return "an object"
}

// workerFailure answers errors about workers. It is false for others.
func workerFailure(w http.ResponseWriter, err error) bool {
	var (
		field *fieldRefusal
		bad   *worker.FieldError
	)
	switch {
	case errors.As(err, &field):
		writeError(w, http.StatusBadRequest, err.Error(), []problemBody{{"worker", field.field, field.msg}})
	case errors.As(err, &bad):
		item := strings.ReplaceAll(bad.Field, "].rank", "].dp_rank")
		writeError(w, http.StatusUnprocessableEntity, fmt.Sprintf("worker %s: %s: %s", bad.Worker, item, bad.Reason), []problemBody{{"worker", item, bad.Reason}})
	case errors.Is(err, worker.ErrFull), errors.Is(err, fleet.ErrFeeds):
		writeError(w, http.StatusConflict, err.Error(), nil)
	default:
		return false
	}
	return true
}
