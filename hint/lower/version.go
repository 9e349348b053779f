package lower

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// version is an engine's version as Python packages declare them (PEP 440), which no
// comparison of semantic versions gets right: 0.31.0rc1 has no hyphen, 0.31.1.dev3 comes
// before 0.31.1, and 0.31.0+cu130 is 0.31.0 built in another way.
type version struct {
	release [releaseParts]uint64 // missing parts are 0
	epoch   uint64

	// phase orders what comes before and after a release: dev only, alpha, beta,
	// candidate, final, post.
	phase int
	// dev tells a development version of that phase, which comes before it.
	dev bool
}

// releaseParts is how many parts of a release are compared. Those beyond are read only.
const releaseParts = 4

const (
	phaseDev = iota
	phaseAlpha
	phaseBeta
	phaseCandidate
	phaseFinal
	phasePost
)

var versionForm = regexp.MustCompile(`^v?(?:(\d+)!)?(\d+(?:\.\d+)*)` +
	`(?:[-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?\d*)?` +
	`((?:-\d+)|(?:[-_.]?(?:post|rev|r)[-_.]?\d*))?` +
	`([-_.]?dev[-_.]?\d*)?` +
	`(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?$`)

// parseVersion reads a version. Ordinals of a phase (the 1 of rc1) are not kept: no
// question is asked that they decide.
func parseVersion(s string) (version, error) {
	m := versionForm.FindStringSubmatch(strings.ToLower(strings.TrimSpace(s)))
	if m == nil {
		return version{}, fmt.Errorf("%q is no version; want one as Python packages have, such as 0.31.0, 0.31.0rc1 or 0.30.2+cu130", s)
	}
	v := version{phase: phaseFinal, dev: m[5] != ""}
	number := func(digits string) uint64 {
		n, _ := strconv.ParseUint(digits, 10, 64) // too many digits give the largest number
		return n
	}
	if m[1] != "" {
		v.epoch = number(m[1])
	}
	for i, part := range strings.Split(m[2], ".") {
		if i < releaseParts {
			v.release[i] = number(part)
		}
	}
	switch {
	case m[4] != "":
		v.phase = phasePost
	case m[3] == "":
		if v.dev {
			v.phase = phaseDev
		}
	case m[3][0] == 'a':
		v.phase = phaseAlpha
	case m[3][0] == 'b':
		v.phase = phaseBeta
	default:
		v.phase = phaseCandidate
	}
	return v, nil
}

// compare orders two versions. Versions that differ in ordinals only are equal.
func (v version) compare(w version) int {
	if c := cmp.Compare(v.epoch, w.epoch); c != 0 {
		return c
	}
	for i := range v.release {
		if c := cmp.Compare(v.release[i], w.release[i]); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(v.phase, w.phase); c != 0 {
		return c
	}
	switch {
	case v.dev == w.dev:
		return 0
	case v.dev:
		return -1
	}
	return 1
}

// firstClass is the vLLM that takes kv_hints. Its release candidates and development
// versions come before it and count as older: an older form is at worst ignored, while
// an argument that an engine does not know makes it refuse the request.
var firstClass = version{release: [releaseParts]uint64{0, 31}, phase: phaseFinal}
