// Package config reads kvrt.yaml, the one configuration of the daemon and of every
// verb that takes -c.
//
// Reading is strict: unknown and repeated keys, wrong types, duplicate names and unknown
// types are all found in one pass and returned as an [*Error] whose problems read
//
//	kvrt.yaml:8:7: guests[0].limits.memroy: unknown key (did you mean "memory"?)
//
// One table (spec.go) names every key with its shape and its meaning. Decoding, the JSON
// Schema for editors ([Schema]) and the effective configuration ([Config.Marshal]) all
// come from it.
//
// # Values
//
// Sizes are bytes, as an integer or with a binary unit: 65536, 64KiB, 16MiB, 1GiB.
// Durations carry a unit: 250ms, 30s, 10m, 1h30m. A key without a value (key:) is refused
// rather than read as absent, so that commenting out the last entry of a list does not
// quietly bring the defaults back.
//
// ${env:NAME} in a scalar stands for that environment variable and
// ${env:NAME:-text} for text when the variable is unset or empty; an unset variable
// without a default is an error, and $$ is a plain $. This is done on parsed scalars, never on the
// text of the file: a variable cannot add keys, and positions stay true. Keys are not
// expanded. An unquoted scalar takes its type from the expanded text, so that
// fuel: ${env:FUEL} is an integer. Inside {...} and [...] YAML itself wants quotes around
// the braces, so a variable that is not text needs a line of its own.
//
// Plain scalars which YAML 1.1 and 1.2 read differently (yes, 0777, 1_000) are refused
// with the advice to quote them. Anchors and aliases work within a budget; merge keys
// (<<), custom tags, further documents and files over 1 MiB are refused.
//
// # Paths
//
// [Load] makes the paths in guests[].module, listen.socket and compile.cache absolute;
// relative ones are relative to the folder of the file. [Parse] knows no folder and leaves
// them as they are.
package config
