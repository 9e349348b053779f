package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// checkParameters holds a guest's parameters against the JSON Schema in its manifest.
// The schema is the guest's: it is compiled at every load, and refers to nothing
// outside of itself.
func checkParameters(schema, parameters []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return fmt.Errorf("the manifest's schema: %w", err)
	}
	const at = "manifest:parameters"
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(at, doc); err != nil {
		return fmt.Errorf("the manifest's schema: %w", err)
	}
	s, err := c.Compile(at)
	if err != nil {
		return fmt.Errorf("the manifest's schema: %s", oneLine(err))
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(parameters))
	if err != nil {
		return err
	}
	var wrong *jsonschema.ValidationError
	if err := s.Validate(v); errors.As(err, &wrong) {
		return errors.New(strings.Join(broken(wrong), "; "))
	} else if err != nil {
		return errors.New(oneLine(err))
	}
	return nil
}

// broken says of each place what is wrong there.
func broken(e *jsonschema.ValidationError) []string {
	var lines []string
	for _, u := range e.BasicOutput().Errors {
		if u.Error == nil {
			continue
		}
		line := u.Error.String()
		if u.InstanceLocation != "" {
			line = u.InstanceLocation + ": " + line
		}
		lines = append(lines, line)
	}
	if lines == nil {
		lines = []string{oneLine(e)}
	}
	slices.Sort(lines) // the library goes through maps
	return lines
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// noLoader loads nothing: a schema has no business on the operator's disk or network.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("a schema must not refer to anything outside of the manifest")
}
