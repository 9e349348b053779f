package enginetest

import (
	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// frame makes what a guest of the ABI gets out of a JSON document: for kvrt_init its
// parameters, for kvrt_parse a document of the guest's dialect, for kvrt_formulate a
// context, for kvrt_handle the payload of one action of the guest's type. @name is the
// document in testdata/name.json.
func (s *script) frame(module string, f runtime.Export, doc string) []byte {
	s.Helper()
	raw := []byte(doc)
	if doc[0] == '@' {
		var err error
		if raw, err = testdata.ReadFile("testdata/" + doc[1:] + ".json"); err != nil {
			s.Fatalf("%v", err)
		}
	}
	section, _ := s.infos[module].Source.Custom(abi.ManifestSection)
	manifest, err := abi.ParseManifest(section)
	if err != nil {
		s.Fatalf("%s: %v", module, err)
	}
	tree := func(frame []byte) ([]byte, abi.Node) {
		frame, root, err := hint.AppendTree(frame, abi.FormatJSON, raw)
		if err != nil {
			s.Fatalf("%s: %v", doc, err)
		}
		return frame, root
	}
	switch f {
	case runtime.ExportInit:
		return abi.FinishInit(tree(abi.BeginInit(nil, 0, manifest.Name)))
	case runtime.ExportParse:
		return abi.FinishParse(tree(abi.BeginParse(nil, abi.FormatJSON, raw, "r1", manifest.Dialects[0])))
	case runtime.ExportFormulate:
		var c hint.Context
		if err := c.Decode(abi.FormatJSON, raw, hint.ContextOptions{}); err != nil {
			s.Fatalf("%s: %v", doc, err)
		}
		return c.Bytes()
	}
	return s.envelopeFrame(envelope(1, manifest.ActionTypes[0].Type, string(raw)))
}

func (x *exam) envelopeFrame(envelope []byte) []byte {
	x.Helper()
	var frame hint.Frame
	if err := frame.Decode(abi.FormatJSON, envelope, hint.Limits{}); err != nil {
		x.Fatalf("%v", err)
	}
	frame.Finish(hint.Identity{RequestID: "r1"})
	return frame.Bytes()
}

// guest brings up a guest of the ABI, with a frame buffer of 64 KiB and no parameters.
func (s *script) guest(module string) *guest {
	s.Helper()
	s.fresh(module, nil)
	s.invoke(&step{module: module, export: "arena", args: []string{"65536"}}, plenty)
	if out := s.invoke(&step{module: module, export: "init", args: []string{"{}"}}, plenty); out.trap != nil || out.result != 0 {
		s.Fatalf("%s: kvrt_init: %#x, %v", module, out.result, out.trap)
	}
	return s.g
}
