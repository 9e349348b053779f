package abi

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// moduleHeader begins a core module: the magic and version 1.
const moduleHeader = "\x00asm\x01\x00\x00\x00"

// AppendManifest returns a copy of a core module with the manifest, checked and
// without insignificant white space, in a custom section at the end. One that was
// there is replaced, wherever it stood; all else stays as it was, byte for byte.
func AppendManifest(module, manifest []byte) ([]byte, error) {
	if _, err := ParseManifest(manifest); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := json.Compact(&text, manifest); err != nil {
		return nil, err
	}
	if len(module) < len(moduleHeader) || string(module[:4]) != moduleHeader[:4] {
		return nil, errors.New("not a WebAssembly module")
	}
	if string(module[:len(moduleHeader)]) != moduleHeader {
		return nil, fmt.Errorf("version bytes % x: want a core module of version 1, not a component", module[4:8])
	}
	out := make([]byte, 0, len(module)+text.Len()+32)
	out = append(out, moduleHeader...)
	for at := len(moduleHeader); at < len(module); {
		size, n := uleb32(module[at+1:])
		content := at + 1 + n
		if n == 0 || uint64(size) > uint64(len(module)-content) {
			return nil, fmt.Errorf("the section at byte %d is cut short or its size is malformed", at)
		}
		end := content + int(size)
		if !isManifest(module[at], module[content:end]) {
			out = append(out, module[at:end]...)
		}
		at = end
	}
	body := binary.AppendUvarint(nil, uint64(len(ManifestSection)))
	body = append(append(body, ManifestSection...), text.Bytes()...)
	out = binary.AppendUvarint(append(out, 0), uint64(len(body)))
	return append(out, body...), nil
}

// isManifest tells whether a section is a custom section of the manifest's name.
func isManifest(id byte, content []byte) bool {
	size, n := uleb32(content)
	return id == 0 && n > 0 && size == uint32(len(ManifestSection)) && bytes.HasPrefix(content[n:], []byte(ManifestSection))
}

// uleb32 reads an unsigned LEB128 number of at most 32 bits in at most 5 bytes, as the
// WebAssembly binary format writes sizes; padding is allowed. n is 0 when it is malformed.
func uleb32(b []byte) (v uint32, n int) {
	for i := range min(len(b), 5) {
		c := b[i]
		if i == 4 && c > 0x0f {
			return 0, 0
		}
		v |= uint32(c&0x7f) << (7 * i)
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
