package config

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// maxProblems bounds what one error holds; the rest is counted.
const maxProblems = 100

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	File    string
	Line    int    // from 1; 0 when there is no position
	Column  int    // from 1
	Path    string // such as guests[0].limits.memory; empty for the file as a whole
	Message string
}

// String returns file:line:col: path: message, without the parts that are not known.
func (p Problem) String() string {
	s := position(p.File, p.Line, p.Column)
	if p.Path != "" {
		s += ": " + p.Path
	}
	return s + ": " + p.Message
}

func position(file string, line, col int) string {
	if line == 0 {
		return file
	}
	return file + ":" + strconv.Itoa(line) + ":" + strconv.Itoa(col)
}

// Error lists everything that is wrong with a configuration, in the order of the file.
type Error struct {
	Problems []Problem
	More     int // problems found beyond those listed
}

// Error prints one problem a line.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.String())
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\nand %d more", e.More)
	}
	return b.String()
}

// Pos returns "file:line:col" of the value at path, written as in problems. Where the
// file does not hold the path, the nearest part above it that the file does hold counts;
// a configuration that was not read from a file gives "default configuration".
func (c *Config) Pos(path string) string {
	p := c.Problem(path, "")
	return position(p.File, p.Line, p.Column)
}

// Problem places a message at path, so that what is found out later, such as a source
// that does not parse or a guest that does not load, reads like a problem found here.
func (c *Config) Problem(path, message string) Problem {
	p := Problem{File: c.file, Path: path, Message: message}
	if c.root == nil {
		p.File = "default configuration"
		return p
	}
	p.Line, p.Column = c.root.find(path)
	return p
}

// report collects problems during one reading.
type report struct {
	file     string
	problems []Problem
	more     int
}

func (r *report) add(line, col int, at *path, format string, args ...any) {
	if len(r.problems) == maxProblems {
		r.more++
		return
	}
	r.problems = append(r.problems, Problem{File: r.file, Line: line, Column: col, Path: at.String(), Message: fmt.Sprintf(format, args...)})
}

func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	sort.SliceStable(r.problems, func(i, j int) bool {
		a, b := r.problems[i], r.problems[j]
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
	return &Error{Problems: r.problems, More: r.more}
}

// path is where a value stands, as a chain to the root: it becomes text only when
// something is reported. nil is the root.
type path struct {
	parent *path
	key    string
	index  int // of a list; -1: key counts
}

func (p *path) under(key string) *path { return &path{parent: p, key: key, index: -1} }
func (p *path) item(i int) *path       { return &path{parent: p, index: i} }

func (p *path) String() string {
	if p == nil {
		return ""
	}
	up := p.parent.String()
	switch {
	case p.index >= 0:
		return up + "[" + strconv.Itoa(p.index) + "]"
	case !isWord(p.key):
		return up + "[" + quote(p.key) + "]"
	case up == "":
		return p.key
	}
	return up + "." + p.key
}

// isWord reports whether a key can stand in a path without quotes.
func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= maxQuoted
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// maxQuoted is how much of a value a message repeats, in bytes.
const maxQuoted = 64

// quote quotes a value of the file for a message and cuts it when it is long.
func quote(s string) string {
	if len(s) > maxQuoted {
		return strconv.Quote(s[:maxQuoted]) + "..."
	}
	return strconv.Quote(s)
}

// didYouMean returns ` (did you mean "x"?)` for the nearest of the known words, or all of
// them after listed when none is near.
func didYouMean(word string, known []string, listed string) string {
	best, bestDist := "", max(1, len(word)/3)+1
	if word = strings.ToLower(word); len(word) <= maxQuoted {
		for _, k := range known {
			d := distance(word, k)
			if len(k) > 2 && strings.HasPrefix(word, k) {
				d = min(d, 2) // warning for warn
			}
			if d < bestDist {
				best, bestDist = k, d
			}
		}
	}
	if best == "" {
		return ": " + listed + strings.Join(known, ", ")
	}
	return " (did you mean " + strconv.Quote(best) + "?)"
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that
// turn a into b.
func distance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
