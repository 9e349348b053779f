package config

import (
	"bytes"
	"encoding/json"
)

// schema is a JSON Schema, or a part of one.
type schema map[string]any

// Schema returns a JSON Schema (draft 2020-12) of kvrt.yaml for editors. It is looser
// than [Parse] where a schema cannot tell: duplicate names, what a variable expands to,
// addresses, the bounds of durations and of sizes
// with a unit, and the depth of parameters.
func Schema() []byte {
	def := Default()
	def.Listen.Socket = "" // depends on the machine
	root := spec().schema(def)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "kvrt.yaml"
	root["description"] = "Configuration of kvrt."
	root["$defs"] = schema{"variable": schema{
		"description": "A value that holds ${env:NAME} or ${env:NAME:-text}.",
		"type":        "string",
		"pattern":     `\$\{env:[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}`,
	}}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		panic(err) // a table of strings and numbers: cannot happen
	}
	return b.Bytes()
}

// orVariable allows a reference to an environment variable in place of a value that is
// not any string.
func orVariable(s schema) schema {
	variable := schema{"$ref": "#/$defs/variable"}
	if any, ok := s["anyOf"].([]schema); ok {
		return schema{"anyOf": append(any, variable)}
	}
	return schema{"anyOf": []schema{s, variable}}
}
