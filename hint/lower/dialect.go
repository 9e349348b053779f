package lower

import (
	"bytes"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// SourceHeader is the HTTP header that names the peer to pull cached blocks from, as
// host:port, between llm-d's endpoint picker and its sidecar.
const SourceHeader = "x-kv-cache-source-host-port"

// carryDialect gives the engine as much of the hint as an older spelling holds.
func (l *Lowerer) carryDialect(dst []byte, t *Target, report Report) ([]byte, Report, error) {
	if err := l.wantPayloads(); err != nil {
		return nil, report, err
	}
	top := &l.top
	report.Carried = false
	top.remove(keyHints)
	var err error
	if t.Dialect == DialectRouterHint {
		var flat []byte
		if flat, err = l.flat(&report); err != nil {
			return nil, report, err
		}
		report.Carried = flat != nil
		top.remove(keyHint)
		if flat != nil {
			err = transfer(top, keyFlat, flat)
		} else {
			err = transfer(top, "", nil)
		}
	} else {
		top.remove(keyHint)
		if err = transfer(top, "", nil); err == nil {
			err = l.directives(&report)
		}
	}
	if err != nil {
		return nil, report, err
	}
	if !report.Carried {
		report.Why = "no action can be written in this dialect"
	}
	return top.append(dst), report, nil
}

func (r *Report) drop(a hint.ActionView, why string) {
	r.Dropped = append(r.Dropped, Dropped{a.Index(), string(a.Type), why})
}

// flat writes the first kv.fetch as the hint of before there were envelopes, nil when
// there is none.
func (l *Lowerer) flat(report *Report) ([]byte, error) {
	format := l.frame.Format()
	var out []byte
	for i := range l.frame.Len() {
		a := l.frame.Action(i)
		switch {
		case string(a.Type) != "kv.fetch":
			report.drop(a, "router_hint holds one kv.fetch and nothing else")
			continue
		case out != nil:
			report.drop(a, "router_hint holds one kv.fetch, and an earlier one is there")
			continue
		}
		path := actionPath(i) + ".payload"
		if hashes := member(a.Base, a.Payload, keyHashes); hashes.Tag != abi.TagArray && hashes.Tag != abi.TagU64s {
			return nil, wrong(path+"."+keyHashes, "must be a list")
		}
		var payload object
		if err := payload.read(format, a.RawPayload()); err != nil {
			return nil, wrong(path, "%s", err.(*Error).Msg)
		}
		o := object{format: format}
		for _, key := range []string{"source_control_endpoint", keyHashes, "mode", "no_retain"} {
			if val := payload.get(key); val != nil {
				o.entries = append(o.entries, plainEntry(format, key, val))
			}
		}
		out = o.append(nil)
	}
	return out, nil
}

// plainEntry is an entry as compact encoders write it.
func plainEntry(format hint.Format, key string, val []byte) entry {
	e := entry{key: quote(nil, format, key), val: val, name: []byte(key)}
	if format == hint.FormatJSON {
		e.sep = []byte{':'}
	}
	return e
}

// directives writes the envelope as llm-d's plugins would: the source as a header,
// retention in the request.
func (l *Lowerer) directives(report *Report) error {
	top, format := &l.top, l.frame.Format()
	args, err := argumentsOf(top)
	if err != nil {
		return err
	}
	at := args.at()
	own := top.get(keyDirective) != nil || at.get(keyDirective) != nil
	var scope, list []byte
	count := 0
	for i := range l.frame.Len() {
		a := l.frame.Action(i)
		major, _, _ := strings.Cut(string(a.Version), ".")
		switch {
		case a.Version != nil && major != "1":
			report.drop(a, "llm-d has no spelling for this version")
		case string(a.Type) == "kv.fetch":
			if why := report.source(a); why != "" {
				report.drop(a, why)
			}
		case string(a.Type) != "kv.retain":
			report.drop(a, "llm-d has no spelling for this type")
		case own:
			report.drop(a, "the request has retention_directives of its own, which win")
		default:
			path := actionPath(i) + ".payload"
			found := member(a.Base, a.Payload, "directives")
			if found.Tag == abi.TagAbsent {
				report.drop(a, "its payload has no directives")
				continue
			}
			if found.Tag != abi.TagArray && found.Tag != abi.TagU64s {
				return wrong(path+".directives", "must be a list")
			}
			if s := member(a.Base, a.Payload, "scope"); s.Tag != abi.TagAbsent && s.Tag != abi.TagNull && s.Tag != abi.TagString {
				return wrong(path+".scope", "must be a string or null")
			}
			var payload object
			if err := payload.read(format, a.RawPayload()); err != nil {
				return wrong(path, "%s", err.(*Error).Msg)
			}
			s := payload.get("scope")
			if list == nil {
				scope, list = s, []byte{}
			} else if !bytes.Equal(s, scope) {
				report.drop(a, "its scope is not that of the kv.retain before it")
				continue
			}
			list = appendItems(list, format, payload.get("directives"))
			count += int(found.Len)
		}
	}
	report.Carried = len(report.Headers) > 0 || list != nil
	if list == nil {
		return nil
	}
	at.set(keyDirective, closeList(format, count, list))
	if scope != nil {
		at.set(keyScope, scope)
	}
	args.close()
	return nil
}

// source makes the header of a kv.fetch, or says why there is none.
func (r *Report) source(a hint.ActionView) string {
	n := member(a.Base, a.Payload, "source_control_endpoint")
	if n.Tag != abi.TagString {
		return "it names no source"
	}
	if len(r.Headers) > 0 {
		return "there is one source, and an earlier kv.fetch names it"
	}
	host := string(a.Base.Bytes(n))
	if _, rest, ok := strings.Cut(host, "://"); ok {
		host = rest
	}
	colon := strings.LastIndexByte(host, ':')
	if colon <= 0 || colon == len(host)-1 || strings.Trim(host[colon+1:], "0123456789") != "" {
		return "its source is not host:port"
	}
	for _, c := range []byte(host) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("/?#@,\"\\", c) >= 0 {
			return "its source cannot stand in a header"
		}
	}
	r.Headers = append(r.Headers, Header{SourceHeader, host})
	return ""
}

// appendItems appends the items of a list without its head or brackets.
func appendItems(dst []byte, format hint.Format, list []byte) []byte {
	if format == hint.FormatMsgpack {
		head := 1
		switch list[0] {
		case 0xdc:
			head = 3
		case 0xdd:
			head = 5
		}
		return append(dst, list[head:]...)
	}
	items := bytes.TrimSpace(list[1 : len(list)-1])
	if len(dst) > 0 && len(items) > 0 {
		dst = append(dst, ',')
	}
	return append(dst, items...)
}

func closeList(format hint.Format, count int, items []byte) []byte {
	if format == hint.FormatMsgpack {
		return append(appendArrayHead(nil, count), items...)
	}
	return append(append([]byte{'['}, items...), ']')
}
