package enginetest

import (
	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// frame makes what a guest of the ABI gets out of a JSON document: for kvrt_init its
// parameters, for kvrt_parse a document of the guest's dialect, for kvrt_handle the
// payload of one action of the guest's type. @name is the document in testdata/name.json.
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
	}
	body := []byte(`{"protocol_version":"0.1","message_id":"m1","actions":[{"action_id":"a1","action_type":"` + manifest.ActionTypes[0].Type + `","action_version":"1.0","payload":`)
	body = append(append(body, raw...), "}]}"...)
	var frame hint.Frame
	if err := frame.Decode(abi.FormatJSON, body, hint.Limits{}); err != nil {
		s.Fatalf("%s: %v", doc, err)
	}
	frame.Finish(hint.Identity{RequestID: "r1"})
	return frame.Bytes()
}
