package lower

import (
	"github.com/kvrt/kvrt/hint"
)

// transfer puts the connector's kv_transfer_params where vLLM takes them, replacing what
// is there, and sets key inside, or nothing when key is "". A hint that an earlier hop
// left in them is taken out.
func transfer(top *object, key string, val []byte) error {
	if top.find(keySampling) == nil && !tokens(top) {
		params, err := within(top.format, keyTransfer, top.get(keyTransfer), key, val)
		if params != nil {
			top.set(keyTransfer, params)
		}
		return err
	}
	const pathExtra, pathParams = keySampling + "." + keyExtra, keySampling + "." + keyExtra + "." + keyTransfer
	var sampling, extra object
	if err := sub(&sampling, top, keySampling, keySampling); err != nil {
		return err
	}
	if err := sub(&extra, &sampling, keyExtra, pathExtra); err != nil {
		return err
	}
	if name, dup := extra.twice(keyTransfer); dup {
		return wrong(pathExtra+"."+name, "is there twice")
	}
	made, path := top.get(keyTransfer), keyTransfer
	moved := made != nil
	if !moved {
		made, path = extra.get(keyTransfer), pathParams
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
	extra.set(keyTransfer, params)
	sampling.set(keyExtra, extra.append(make([]byte, 0, extra.size())))
	top.set(keySampling, sampling.append(make([]byte, 0, sampling.size())))
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
	for _, key := range []string{keyTransfer, "disaggregated_params", "prefill_result", "bootstrap_room"} {
		if filled(top.get(key)) {
			return key
		}
	}
	var sampling, extra object
	if sub(&sampling, top, keySampling, "") == nil && sub(&extra, &sampling, keyExtra, "") == nil && filled(extra.get(keyTransfer)) {
		return keySampling + "." + keyExtra + "." + keyTransfer
	}
	return ""
}
