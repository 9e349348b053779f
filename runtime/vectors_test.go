package runtime

import (
	"bytes"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
	"github.com/kvrt/kvrt/hint"
)

// vectorInstance returns from every export what a vector says.
type vectorInstance struct {
	mem     []byte
	returns uint64
}

func (i *vectorInstance) Has(Export) bool { return true }
func (i *vectorInstance) Memory() []byte  { return i.mem }
func (i *vectorInstance) Fuel() int64     { return 0 }
func (i *vectorInstance) SetFuel(int64)   {}
func (i *vectorInstance) Close() error    { return nil }
func (i *vectorInstance) Call(_ *Call, _ Export, stack []uint64) error {
	stack[0] = i.returns
	return nil
}

// TestReturnValueVectors holds the runtime to the ABI's vectors of what an export may
// return and what a host makes of it.
func TestReturnValueVectors(t *testing.T) {
	results, err := vectors.Results()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range results {
		t.Run(v.Name, func(t *testing.T) {
			in := &instance{wasm: &vectorInstance{v.Memory.Bytes(), uint64(v.Returns)}, call: NewCall(CallConfig{}), arena: v.Frame.At, frame: v.Frame.Len}
			if v.Export == "kvrt_arena" {
				err := in.grow(v.Asked)
				if (err != nil) != v.Verdict.Refused || err == nil && (in.arena != v.Verdict.Buffer.At || in.size != v.Verdict.Buffer.Size) {
					t.Fatalf("%v, buffer of %d at %d; want %+v", err, in.size, in.arena, v.Verdict)
				}
				return
			}
			got := returned(in, v)
			want := abi.Answer{Status: abi.Status(v.Verdict.Status), Reason: abi.Reason(v.Verdict.Reason)}
			if got.Status != want.Status || got.Reason != want.Reason || !bytes.Equal(got.Body, v.Verdict.Body) || v.Verdict.Detail != "" && string(got.Detail) != v.Verdict.Detail {
				t.Errorf("got %+v, want %+v", got, v.Verdict)
			}
		})
	}
}

// returned is what the runtime makes of the vector's return value.
func returned(in *instance, v vectors.Result) abi.Answer {
	res := (&Runtime{}).NewResponse()
	var out hint.Result
	switch v.Export {
	case "kvrt_parse":
		res.envelope(in, &out, int64(v.Returns), abi.FormatJSON, hint.Limits{})
	case "kvrt_handle":
		if len(v.Verdict.Body) > 0 { // the rewritten action keeps the id and type of the one it was
			b := abi.Base(v.Verdict.Body)
			out.ActionID, out.ActionType = b.Run(abi.GetSpan(b, abi.OffActionActionID)), b.Run(abi.GetSpan(b, abi.OffActionActionType))
		}
		res.verdict(in, &out, int64(v.Returns))
	default:
		a, err := in.read(int64(v.Returns))
		if err != nil {
			return abi.Answer{Status: abi.StatusRejected, Reason: abi.ReasonHandlerError}
		}
		if v.Export == "kvrt_formulate" && a.Body != nil && abi.CheckEnvelope(a.Body) != nil {
			return abi.Answer{Status: abi.StatusRejected, Reason: abi.ReasonHandlerError}
		}
		return a
	}
	a := abi.Answer{Status: out.Status, Reason: out.Reason, Detail: out.Detail}
	if out.Status == abi.StatusAccepted {
		a.Body = v.Verdict.Body
		if v.Export == "kvrt_handle" {
			a.Body = nil
			if out.Index < len(res.blocks) {
				a.Body = res.blocks[out.Index]
			}
		}
	}
	return a
}
