package config

import (
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes.
type Size uint64

const sizeUnits = "KMGT"

// String returns the size in the largest binary unit that divides it: 16MiB, 1GiB, 1000.
func (s Size) String() string {
	unit := ""
	for _, u := range sizeUnits {
		if s == 0 || s%1024 != 0 {
			break
		}
		s /= 1024
		unit = string(u) + "iB"
	}
	return strconv.FormatUint(uint64(s), 10) + unit
}

// parseSize reads digits with an optional binary unit. msg is empty when all is well.
func parseSize(s string) (v Size, msg string) {
	digits := strings.TrimRight(s, "BKMGTibkmgt")
	unit := strings.TrimPrefix(s, digits)
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, `must be a size such as 65536, 64KiB, 16MiB or 1GiB, not the string ` + quote(s)
	}
	shift := 0
	switch {
	case unit == "" || unit == "B":
	case len(unit) == 3 && strings.HasSuffix(unit, "iB") && strings.Contains(sizeUnits, unit[:1]):
		shift = 10 * (strings.Index(sizeUnits, unit[:1]) + 1)
	default:
		return 0, "unknown unit " + quote(unit) + ": use B, KiB, MiB, GiB or TiB (powers of 1024)"
	}
	if n > math.MaxInt64>>shift {
		return 0, "too large"
	}
	return Size(n << shift), ""
}

// size is a Size from min to max in steps of step.
type size struct{ min, max, step Size }

func (k size) decode(r *reader, n *node, at *path, out *Size) {
	if n.shape != integer && n.shape != str {
		r.wrong(n, at, "a size such as 65536, 64KiB, 16MiB or 1GiB")
		return
	}
	v, msg := parseSize(n.text)
	switch {
	case msg != "":
		r.reject(n, at, "%s", msg)
	case v < k.min || v > k.max:
		r.reject(n, at, "must be from %s to %s, not %s", k.min, k.max, v)
	case k.step > 1 && v%k.step != 0:
		r.reject(n, at, "must be a multiple of %s, not %s", k.step, v)
	default:
		*out = v
	}
}

func (k size) encode(v *Size) (*node, error) {
	text := v.String()
	sh, text := classify(text)
	return scalarNode(sh, text), nil
}

func (k size) schema(def *Size) schema {
	integer := schema{"type": "integer", "minimum": k.min, "maximum": k.max}
	if k.step > 1 {
		integer["multipleOf"] = k.step
	}
	s := orVariable(schema{"anyOf": []schema{integer, {"type": "string", "pattern": `^[0-9]+([KMGT]i)?B$`}}})
	if def != nil && *def != 0 {
		s["default"] = def.String()
	}
	return s
}
