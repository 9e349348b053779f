package hint_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
	"github.com/kvrt/kvrt/hint"
)

// TestContextVectors holds the decoder to the vectors of routing contexts, in JSON and in
// msgpack.
func TestContextVectors(t *testing.T) {
	list, err := vectors.Routing()
	if err != nil || len(list) == 0 {
		t.Fatal("no vectors", err)
	}
	for _, v := range list {
		t.Run(v.Name, func(t *testing.T) {
			bodies := [][]byte{[]byte(v.Document)}
			if !strings.Contains(v.Document, "18446744073709551616") { // which msgpack does not have
				bodies = append(bodies, toMsgpack(t, v.Document))
			}
			for _, body := range bodies {
				var c hint.Context
				err := c.Decode(hint.FormatUnknown, body, hint.ContextOptions{})
				if v.Error != "" {
					// A hint is read as an envelope: what is wrong within it stands behind a colon.
					if text := ""; err != nil {
						text = strings.TrimPrefix(err.Error(), "malformed context: ")
						if strings.HasPrefix(text, v.Error+" ") || strings.HasPrefix(text, v.Error+": ") {
							continue
						}
					}
					t.Errorf("%v, want an error about %s", err, v.Error)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				reader := vectors.Reader{Table: abi.Contract()}
				got, err := reader.Value("ContextFrame", c.Bytes())
				if err != nil || !reflect.DeepEqual(got, v.Value) {
					t.Errorf("%v: got\n%v\nwant\n%v", err, got, v.Value)
				}
			}
		})
	}
}
