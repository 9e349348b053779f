package lower

import (
	"github.com/kvrt/kvrt/hint"
)

// arguments is where a request keeps what vLLM's SamplingParams call extra_args: in
// sampling_params, or at the top for a router that has them there. A request of tokens
// that has neither gets sampling_params. An OpenAI body has none, and takes at the top
// what would lie in them.
type arguments struct {
	top             *object
	sampling, extra object
	inSampling      bool
	inside          bool
	path            string // of extra_args
}

func argumentsOf(top *object) (*arguments, error) {
	a := &arguments{top: top, path: keyExtra}
	switch {
	case top.find(keySampling) != nil:
		a.inSampling = true
	case top.get(keyExtra) != nil:
	default:
		a.inSampling = tokens(top)
		if !a.inSampling {
			return a, nil
		}
	}
	a.inside = true
	in := top
	if a.inSampling {
		in, a.path = &a.sampling, keySampling+"."+keyExtra
		if err := sub(&a.sampling, top, keySampling, keySampling); err != nil {
			return nil, err
		}
	}
	if err := sub(&a.extra, in, keyExtra, a.path); err != nil {
		return nil, err
	}
	if name, dup := a.extra.twice(keyTransfer, keyDirective, keyScope); dup {
		return nil, wrong(a.path+"."+name, "is there twice")
	}
	return a, nil
}

// at is the object that takes arguments.
func (a *arguments) at() *object {
	if a.inside {
		return &a.extra
	}
	return a.top
}

// close writes the arguments back into the request.
func (a *arguments) close() {
	if !a.inside {
		return
	}
	extra := a.extra.append(make([]byte, 0, a.extra.size()))
	if !a.inSampling {
		a.top.set(keyExtra, extra)
		return
	}
	a.sampling.set(keyExtra, extra)
	a.top.set(keySampling, a.sampling.append(make([]byte, 0, a.sampling.size())))
}

// transfer puts the connector's kv_transfer_params where vLLM takes them, replacing what
// is there, and sets key inside, or nothing when key is "". A hint that an earlier hop
// left in them is taken out.
func transfer(top *object, key string, val []byte) error {
	args, err := argumentsOf(top)
	if err != nil {
		return err
	}
	made, path := top.get(keyTransfer), keyTransfer
	moved := args.inside && made != nil
	if args.inside && !moved {
		made, path = args.extra.get(keyTransfer), args.path+"."+keyTransfer
	}
	params, err := within(top.format, path, made, key, val)
	switch {
	case err != nil:
		return err
	case params == nil && !moved:
		return nil
	case params == nil:
		params = made
	}
	if moved {
		top.remove(keyTransfer)
	}
	args.at().set(keyTransfer, params)
	args.close()
	return nil
}

// tokens tells a request of the token path.
func tokens(top *object) bool {
	return top.get("token_ids") != nil || top.get("prompt_token_ids") != nil
}

// sub splits the object under a key. Absent and null stand for an empty one.
func sub(dst, in *object, key, path string) error {
	raw := in.get(key)
	if raw == nil {
		raw = empty(in.format)
	}
	if kind := kindOf(in.format, raw); kind != "a mapping" {
		return wrong(path, "must be a mapping, not %s", kind)
	}
	if err := dst.read(in.format, raw); err != nil {
		return wrong(path, "%s", err.(*Error).Msg)
	}
	if name, dup := dst.twice(keyExtra); dup {
		return wrong(path+"."+name, "is there twice")
	}
	return nil
}

func empty(format hint.Format) []byte {
	if format == hint.FormatMsgpack {
		return []byte{0x80}
	}
	return []byte("{}")
}

// within sets a hint in the connector's parameters and takes out any other. nil is "as
// it was".
func within(format hint.Format, path string, params []byte, key string, val []byte) ([]byte, error) {
	if params == nil {
		if key == "" {
			return nil, nil
		}
		params = empty(format)
	}
	var o object
	if kind := kindOf(format, params); kind != "a mapping" {
		return nil, wrong(path, "must be a mapping, not %s", kind)
	}
	if err := o.read(format, params); err != nil {
		return nil, wrong(path, "%s", err.(*Error).Msg)
	}
	if name, dup := o.twice(keyHint, keyFlat); dup {
		return nil, wrong(path+"."+name, "is there twice")
	}
	changed := key != ""
	for _, stale := range []string{keyHint, keyFlat} {
		if stale != key && o.find(stale) != nil {
			o.remove(stale)
			changed = true
		}
	}
	if !changed {
		return nil, nil
	}
	if key != "" {
		o.set(key, val)
	}
	return o.append(make([]byte, 0, o.size())), nil
}

// madeByPrefill names the key in which a decode request carries transfer parameters,
// "" when it carries none.
func madeByPrefill(top *object) string {
	filled := func(raw []byte) bool {
		if raw == nil {
			return false
		}
		if kindOf(top.format, raw) != "a mapping" {
			return true
		}
		var o object
		if o.read(top.format, raw) != nil {
			return true
		}
		for i := range o.entries {
			// A hint in them was not made by prefill.
			if name := string(o.entries[i].name); name != keyHint && name != keyFlat {
				return true
			}
		}
		return false
	}
	for _, key := range []string{keyTransfer, "disaggregated_params", "prefill_result", "bootstrap_info", "bootstrap_room"} {
		if filled(top.get(key)) {
			return key
		}
	}
	if args, err := argumentsOf(top); err == nil && args.inside && filled(args.extra.get(keyTransfer)) {
		return args.path + "." + keyTransfer
	}
	return ""
}
