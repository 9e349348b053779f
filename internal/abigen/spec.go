package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kvrt/kvrt/abi"
)

// marker begins a generated part of the specification: <!-- KIND:NAME -->. The part
// ends with <!-- end -->.
var marker = regexp.MustCompile(`(?m)^<!-- (table|file|frame):(\S+) -->$`)

const endMarker = "<!-- end -->"

// spec fills the generated parts of SPEC.md: tables from the contract, quotations of
// files, and frames of the vectors drawn byte by byte.
func spec(root string, t abi.Table) ([]byte, error) {
	old, err := os.ReadFile(filepath.Join(root, "abi", "SPEC.md"))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	seen := map[string]bool{}
	for {
		m := marker.FindSubmatchIndex(old)
		if m == nil {
			break
		}
		kind, name := string(old[m[2]:m[3]]), string(old[m[4]:m[5]])
		end := bytes.Index(old[m[1]:], []byte(endMarker))
		if end < 0 {
			return nil, fmt.Errorf("%s:%s has no end", kind, name)
		}
		part, err := specPart(root, t, kind, name)
		if err != nil {
			return nil, err
		}
		seen[kind+":"+name] = true
		out.Write(old[:m[1]])
		fmt.Fprintf(&out, "\n%s%s", part, endMarker)
		old = old[m[1]+end+len(endMarker):]
	}
	out.Write(old)
	for _, want := range specTables(t) {
		if !seen["table:"+want] {
			return nil, fmt.Errorf("the table %q is not shown: add its markers", want)
		}
	}
	return out.Bytes(), nil
}

// specTables names every table that the specification shows.
func specTables(t abi.Table) []string {
	out := []string{"exports", "functions", "drafts", "stubs", "limits"}
	for _, e := range t.Enums {
		out = append(out, e.Name)
	}
	for _, r := range t.Records {
		out = append(out, r.Name)
	}
	return out
}

func specPart(root string, t abi.Table, kind, name string) (string, error) {
	switch kind {
	case "file":
		b, err := os.ReadFile(filepath.Join(root, "abi", filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		lang := map[string]string{".c": "c", ".json": "json", ".py": "python", ".sh": "sh", ".yaml": "yaml"}[filepath.Ext(name)]
		return fmt.Sprintf("```%s\n%s```\n", lang, b), nil
	case "frame":
		text, err := drawFrame(t, name)
		if err != nil {
			return "", err
		}
		return "```\n" + text + "```\n", nil
	}
	var p page
	if err := specTable(&p, t, name); err != nil {
		return "", err
	}
	return p.String(), nil
}

func specTable(p *page, t abi.Table, name string) error {
	switch name {
	case "exports":
		p.row("export", "type", "", "")
		p.rule(4)
		for _, e := range t.Exports {
			p.row(code(e.Name), code(exportSignature(e)), e.Need, e.Doc)
		}
		return nil
	case "functions":
		p.row("function", "type", "cost", "")
		p.rule(4)
		for _, f := range stable(t) {
			doc := f.Doc
			if f.Effect {
				doc = "**Effect.** " + doc
			}
			p.row(code(f.Module+"."+f.Name), code(named(f)), cost(f), doc)
		}
		return nil
	case "drafts":
		p.row("function", "type", "")
		p.rule(3)
		for _, f := range t.Functions {
			if f.Draft {
				p.row(code(f.Module+"."+f.Name), code(named(f)), f.Doc)
			}
		}
		return nil
	case "stubs":
		p.row("function", "type", "cost", "")
		p.rule(4)
		for _, f := range t.Stubs {
			p.row(code(f.Name), code(unnamed(f)), cost(f), f.Doc)
		}
		return nil
	case "limits":
		p.row("limit", "value", "")
		p.rule(3)
		for _, l := range t.Limits {
			p.row(code(l.Name), fmt.Sprintf("%d %s", l.Value, l.Unit), l.Doc)
		}
		return nil
	}
	for _, e := range t.Enums {
		if e.Name == name {
			p.enum(e)
			return nil
		}
	}
	for _, r := range t.Records {
		if r.Name == name {
			p.record(r)
			return nil
		}
	}
	return fmt.Errorf("no table %q", name)
}

func (p *page) enum(e abi.Enum) {
	p.line("%s, u%d. %s\n", code(e.Name), e.Bits, e.Doc)
	p.row("value", "name", "")
	p.rule(3)
	for _, v := range e.Values {
		value := fmt.Sprint(v.Value)
		if e.Flags {
			value = fmt.Sprintf("0x%x", v.Value)
		}
		text := v.Text
		if text == "" {
			text = snake(v.Name)
		}
		p.row(value, code(text), v.Doc)
	}
}

func (p *page) record(r abi.Record) {
	p.line("%s, %d bytes. %s\n", code(r.Name), r.Size, r.Doc)
	p.row("at", "type", "field", "")
	p.rule(4)
	for _, f := range r.Fields {
		p.row(fmt.Sprint(f.Off), f.Type, code(f.Name), f.Doc)
	}
}

func (p *page) row(cells ...string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", "\\|")
	}
	p.line("| %s |", strings.Join(cells, " | "))
}

func (p *page) rule(columns int) { p.line("|%s", strings.Repeat("---|", columns)) }

func code(s string) string { return "`" + s + "`" }
