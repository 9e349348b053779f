package tck

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/worker"
	"github.com/kvrt/kvrt/runtime"
)

// Case is one line of a case file: what is sent to the guest and what must come back.
// What is nil or empty was left out and is not compared.
type Case struct {
	Name   string          `json:"name"`
	Params json.RawMessage `json:"params"`
	Host   struct {
		Submit   string   `json:"submit"`
		Prefetch string   `json:"prefetch"`
		Store    string   `json:"store"`
		Device   string   `json:"device"`
		Request  []uint64 `json:"request"`
	} `json:"host"`
	Init *string `json:"init"`

	// For a handler.
	Input   json.RawMessage `json:"input"`
	Payload json.RawMessage `json:"payload"`
	Version json.RawMessage `json:"version"`
	Msgpack string          `json:"msgpack"`
	Results []Verdict       `json:"results"`
	Forward json.RawMessage `json:"forward"`

	// For a parser.
	RequestID    *string         `json:"request_id"`
	Document     json.RawMessage `json:"document"`
	DocumentText *string         `json:"document_text"`
	Envelope     json.RawMessage `json:"envelope"`
	Refused      *Verdict        `json:"refused"`

	// For a policy: a routing context, with Envelope, which may be null, and Refused.
	Context json.RawMessage `json:"context"`
	Dropped *[]string       `json:"dropped"` // why the policy's actions were left out
	Workers []worker.Worker `json:"workers"` // the catalogue

	Log     *[]string `json:"log"`
	Submits *[]Submit `json:"submits"`
	Effects *[]Done   `json:"effects"` // on blocks

	answers Answers // what Host says
	msgpack []byte
}

// Verdict is what becomes of an action or document.
type Verdict struct {
	Status string  `json:"status"`
	Reason string  `json:"reason"`
	Detail *string `json:"detail"`
}

// MaxCases bounds a case file.
const MaxCases = 10_000

// ReadCases reads a case file. An error names the line.
func ReadCases(r io.Reader) ([]Case, error) {
	var cases []Case
	seen := map[string]bool{}
	for in := bufio.NewReader(r); ; {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if len(line) == 0 {
			return cases, nil
		}
		c, bad := readCase(line)
		switch {
		case bad != nil:
			return nil, fmt.Errorf("line %d: %w", len(cases)+1, bad)
		case c.Name == "" || seen[c.Name]:
			return nil, fmt.Errorf("line %d: want a name of its own, not %q", len(cases)+1, c.Name)
		case len(cases) == MaxCases:
			return nil, fmt.Errorf("more than %d cases", MaxCases)
		}
		seen[c.Name] = true
		cases = append(cases, c)
		if err != nil {
			return cases, nil
		}
	}
}

func readCase(line []byte) (c Case, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, err
	}
	if _, err := d.Token(); err != io.EOF {
		return c, errors.New("text after the case: one case a line")
	}
	c.answers.Request = c.Host.Request
	for _, h := range []struct {
		key, text string
		reason    *abi.Reason
	}{
		{"submit", c.Host.Submit, &c.answers.Submit}, {"prefetch", c.Host.Prefetch, &c.answers.Prefetch},
		{"store", c.Host.Store, &c.answers.Store}, {"device", c.Host.Device, &c.answers.Device},
	} {
		for h.reason.String() != h.text {
			if *h.reason++; *h.reason >= runtime.NumReasons {
				return c, fmt.Errorf("host: %s: %q is no reason", h.key, h.text)
			}
		}
	}
	if c.msgpack, err = hex.DecodeString(c.Msgpack); err != nil {
		return c, fmt.Errorf("msgpack: %w", err)
	}
	return c, nil
}

// parses tells whether the case is for a parser.
func (c *Case) parses() bool { return c.Document != nil || c.DocumentText != nil }

// body is what the case sends to a guest; false when this encoding cannot say it.
func (c *Case) body(m *abi.Manifest, format abi.Format) (body []byte, ok bool, err error) {
	var text []byte
	switch {
	case c.parses() && !m.Has(abi.RoleParser):
		return nil, false, errors.New("a document, and the guest is no parser")
	case c.DocumentText != nil:
		return []byte(*c.DocumentText), format == abi.FormatJSON, nil
	case c.Document != nil:
		text = c.Document
	case c.Context != nil && !m.Has(abi.RolePolicy):
		return nil, false, errors.New("a context, and the guest is no policy")
	case c.Context != nil:
		text = c.Context
	case c.Payload == nil && c.Input == nil && c.Msgpack == "":
		return nil, false, nil
	case !m.Has(abi.RoleHandler):
		return nil, false, errors.New("an envelope, and the guest is no handler")
	case c.Msgpack != "":
		return c.msgpack, format == abi.FormatMsgpack, nil
	case c.Payload != nil:
		version := `,"action_version":"1.0"`
		if string(c.Version) == "null" {
			version = ""
		} else if c.Version != nil {
			version = `,"action_version":` + string(c.Version)
		}
		text = fmt.Appendf(nil, `{"protocol_version":"0.1","message_id":"m1","actions":[{"action_id":"a1","action_type":%q%s,"payload":%s}]}`,
			m.ActionTypes[0].Type, version, c.Payload)
	default:
		text = c.Input
	}
	if format == abi.FormatMsgpack {
		return toMsgpack(text)
	}
	return text, true, nil
}

func toMsgpack(text []byte) ([]byte, bool, error) {
	base, root, err := hint.AppendTree(nil, abi.FormatJSON, text)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %s", err, text)
	}
	body, err := hint.AppendTreeMsgpack(nil, base, root)
	var cannot *hint.EncodeError
	if errors.As(err, &cannot) { // a number of more than 64 bits
		return nil, false, nil
	}
	return body, err == nil, err
}

// differs says how what came back differs from the verdict.
func (v Verdict) differs(what string, status string, reason abi.Reason, detail string) (failures []string) {
	if status != v.Status || reason.String() != v.Reason {
		failures = append(failures, fmt.Sprintf("%s: got %s %q (%s), want %s %q", what, status, reason, detail, v.Status, v.Reason))
	}
	if v.Detail != nil && detail != *v.Detail {
		failures = append(failures, fmt.Sprintf("%s: detail: got %q, want %q", what, detail, *v.Detail))
	}
	return failures
}
