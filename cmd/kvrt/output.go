package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kvrt/kvrt/hint"
)

// writeResults writes one JSON line per result, or a table for people.
func writeResults(w io.Writer, results []hint.Result, asTable bool) error {
	if !asTable {
		var b []byte
		for i := range results {
			b = append(results[i].AppendJSON(b), '\n')
		}
		_, err := w.Write(b)
		return err
	}
	t := newTable("INDEX", "ACTION", "TYPE", "VERSION", "STATUS", "REASON", "GUEST", "GEN", "TIME", "DETAIL")
	for i := range results {
		r := &results[i]
		t.row(strconv.Itoa(r.Index), string(r.ActionID), string(r.ActionType), string(r.ActionVersion), r.Status.String(), r.Reason.String(),
			r.Guest, strconv.FormatUint(r.Generation, 10), time.Duration(r.DurationNS).String(), string(r.Detail))
	}
	return t.write(w)
}

// table is text in columns. Cells are made safe for a terminal: what stands in them
// may be a stranger's.
type table struct{ rows [][]string }

func newTable(header ...string) *table { return &table{[][]string{header}} }

func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = cell(c)
	}
	t.rows = append(t.rows, cells)
}

func (t *table) write(w io.Writer) error {
	var b bytes.Buffer
	tw := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, r := range t.rows {
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// cell cuts a text to what a column has room for and escapes control characters. An
// empty cell is a dash.
func cell(s string) string {
	const most = 120
	if s == "" {
		return "-"
	}
	if len(s) > most {
		cut := most
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "..."
	}
	return printable(s)
}

// printable escapes control characters.
func printable(s string) string {
	if strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) {
		s = strings.Trim(strconv.QuoteToGraphic(s), `"`)
	}
	return s
}

// writeJSON writes v as indented JSON.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// shortDigest is the start of a digest, for tables.
func shortDigest(sha256 string) string { return sha256[:min(12, len(sha256))] }
