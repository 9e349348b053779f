package config

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

const (
	maxFile  = 1 << 20 // bytes of a file, and of what aliases and variables may add to it
	maxDepth = 64      // nesting of a file
	nodeCost = 32      // bytes that one more node from an alias counts as
)

// node is one value of the file, with aliases resolved and variables expanded.
type node struct {
	shape     shape
	text      string // of a scalar; the digits of an integer
	expanded  bool   // an unquoted scalar that named a variable
	line, col int
	entries   []entry // of a mapping
	items     []*node // of a list
}

type entry struct {
	key       string
	line, col int // of the key
	value     *node
}

// child returns the value of a key, or nil.
func (n *node) child(key string) *node {
	if n != nil {
		for _, e := range n.entries {
			if e.key == key {
				return e.value
			}
		}
	}
	return nil
}

// find returns where the longest part of a written path stands: the key of a mapping or
// list, the value of a scalar.
func (n *node) find(path string) (line, col int) {
	line, col = n.line, n.col
	for path != "" {
		var next *node
		if path[0] == '[' && !strings.HasPrefix(path, `["`) {
			digits, rest, _ := strings.Cut(path[1:], "]")
			i, err := strconv.Atoi(digits)
			if err != nil || i < 0 || i >= len(n.items) {
				return line, col
			}
			next, path = n.items[i], rest
			line, col = next.line, next.col
		} else {
			key, rest := cutKey(path)
			for _, e := range n.entries {
				if e.key == key {
					next, line, col = e.value, e.line, e.col
				}
			}
			if next == nil {
				return line, col
			}
			if next.shape != mapping && next.shape != list {
				line, col = next.line, next.col
			}
			path = rest
		}
		n = next
	}
	return line, col
}

func cutKey(path string) (key, rest string) {
	if strings.HasPrefix(path, `["`) {
		if q, err := strconv.QuotedPrefix(path[1:]); err == nil {
			key, _ = strconv.Unquote(q)
			return key, strings.TrimPrefix(path[1+len(q):], "]")
		}
	}
	path = strings.TrimPrefix(path, ".")
	if i := strings.IndexAny(path, ".["); i > 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

// parseTree reads the one document of data. Everything wrong goes to the report; the
// answer is nil when there is no document to go on with.
func parseTree(data []byte, r *report, lookup func(string) (string, bool)) *node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	doc, err := decodeDocument(dec)
	switch {
	case errors.Is(err, io.EOF): // nothing but comments
		return &node{shape: mapping, line: 1, col: 1}
	case err != nil:
		r.syntax(err)
		return nil
	}
	if second, err := decodeDocument(dec); err == nil {
		r.add(second.Line, second.Column, nil, "a second document: one file is one configuration")
	} else if !errors.Is(err, io.EOF) {
		r.syntax(err)
	}
	b := &builder{report: r, lookup: lookup, open: map[*yaml.Node]bool{}}
	n := b.build(doc, nil, 0)
	if n.shape == null && n.text == "" {
		n.shape = mapping
	}
	return n
}

// decodeDocument returns the root of the next document. The library panics on a few
// malformed inputs; to a reader of files that is one more kind of syntax error.
func decodeDocument(dec *yaml.Decoder) (root *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("yaml: this is not valid YAML")
		}
	}()
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return &doc, nil
	}
	return doc.Content[0], nil
}

// syntax places an error of the YAML library, which names at best a line.
func (r *report) syntax(err error) {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line, col := 1, 1
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		if digits, text, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				line, msg = n, text
			}
		}
	}
	r.add(line, col, nil, "not valid YAML: %s", msg)
}

// builder turns the library's tree into ours.
type builder struct {
	*report
	lookup  func(string) (string, bool)
	open    map[*yaml.Node]bool // anchored values being built
	aliases int                 // how many aliases deep
	added   int                 // bytes that aliases and variables added
	tooMuch bool
}

// spend counts what an alias or a variable adds. Without a bound, ten lines of aliases to
// aliases make billions of nodes.
func (b *builder) spend(y *yaml.Node, at *path, bytes int) bool {
	if b.tooMuch {
		return false
	}
	b.added += bytes
	if b.added <= maxFile {
		return true
	}
	b.tooMuch = true
	b.add(y.Line, y.Column, at, "aliases and variables add more than %s to the file", Size(maxFile))
	return false
}

func (b *builder) build(y *yaml.Node, at *path, depth int) *node {
	n := &node{line: y.Line, col: y.Column}
	if b.aliases > 0 && !b.spend(y, at, nodeCost+len(y.Value)) {
		return n
	}
	if depth > maxDepth {
		b.add(y.Line, y.Column, at, "nested deeper than %d", maxDepth)
		return n
	}
	if y.Kind == yaml.AliasNode {
		return b.alias(y, at, depth)
	}
	if !b.tagAllowed(y) {
		b.add(y.Line, y.Column, at, "the tag %s is not supported here", quote(y.Tag))
		return n
	}
	if y.Anchor != "" {
		b.open[y] = true
		defer delete(b.open, y)
	}
	switch y.Kind {
	case yaml.ScalarNode:
		b.scalar(y, at, n)
	case yaml.SequenceNode:
		n.shape = list
		for i, item := range y.Content {
			n.items = append(n.items, b.build(item, at.item(i), depth+1))
		}
	case yaml.MappingNode:
		n.shape = mapping
		b.mapping(y, at, depth, n)
	}
	return n
}

func (b *builder) alias(y *yaml.Node, at *path, depth int) *node {
	n := &node{line: y.Line, col: y.Column}
	if b.open[y.Alias] {
		b.add(y.Line, y.Column, at, "the alias *%s is inside the value that it stands for", y.Value)
		return n
	}
	b.aliases++
	n = b.build(y.Alias, at, depth+1)
	b.aliases--
	n.line, n.col = y.Line, y.Column
	return n
}

// tagAllowed refuses every explicit tag but those that say what the value is anyway, and
// !!str, which makes a string of any scalar.
func (b *builder) tagAllowed(y *yaml.Node) bool {
	if y.Style&yaml.TaggedStyle == 0 {
		return true
	}
	switch y.Tag {
	case "!!map":
		return y.Kind == yaml.MappingNode
	case "!!seq":
		return y.Kind == yaml.SequenceNode
	case "!!str":
		return y.Kind == yaml.ScalarNode
	}
	return false
}

func isQuoted(y *yaml.Node) bool {
	const styles = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	return y.Style&styles != 0
}

func (b *builder) scalar(y *yaml.Node, at *path, n *node) {
	text, used, err := expand(y.Value, b.lookup)
	if err != nil {
		b.add(y.Line, y.Column, at, "%v", err)
		return
	}
	if used && !b.spend(y, at, len(text)) {
		return
	}
	n.shape, n.text = str, text
	if !isQuoted(y) {
		n.shape, n.text = classify(text)
		n.expanded = used
	}
}

func (b *builder) mapping(y *yaml.Node, at *path, depth int, n *node) {
	lines := make(map[string]int, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		key, ok := b.key(k, at)
		if !ok {
			continue
		}
		below := at.under(key)
		value := b.build(v, below, depth+1)
		if first, twice := lines[key]; twice {
			b.add(k.Line, k.Column, below, "the key is already set on line %d", first)
			continue
		}
		lines[key] = k.Line
		n.entries = append(n.entries, entry{key, k.Line, k.Column, value})
	}
}

func (b *builder) key(k *yaml.Node, at *path) (string, bool) {
	line, col := k.Line, k.Column
	if b.aliases > 0 && !b.spend(k, at, nodeCost+len(k.Value)) {
		return "", false
	}
	if k.Kind != yaml.ScalarNode || !b.tagAllowed(k) {
		b.add(line, col, at, "a key must be a string")
		return "", false
	}
	if isQuoted(k) {
		return k.Value, true
	}
	if k.Value == "<<" {
		b.add(line, col, at, "merge keys are not supported: repeat the keys, or use an alias for the whole value")
		return "", false
	}
	if sh, _ := classify(k.Value); sh != str {
		b.add(line, col, at, "a key must be a string: quote %s", quote(k.Value))
		return "", false
	}
	return k.Value, true
}
