package config

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// section is one "-- name --" part of a txtar file.
type section struct{ name, text string }

// readArchive reads the txtar format as far as the golden files use it: a comment, then
// sections whose text ends in a newline.
func readArchive(t testing.TB, file string) (comment string, sections []section) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	into := &comment
	for line := range strings.Lines(string(data)) {
		name, ok := strings.CutPrefix(line, "-- ")
		if name, end := strings.CutSuffix(name, " --\n"); ok && end {
			sections = append(sections, section{name: name})
			into = &sections[len(sections)-1].text
			continue
		}
		*into += line
	}
	return comment, sections
}

func writeArchive(comment string, sections []section) []byte {
	var b bytes.Buffer
	b.WriteString(comment)
	for _, s := range sections {
		b.WriteString("-- " + s.name + " --\n" + s.text)
	}
	return b.Bytes()
}
