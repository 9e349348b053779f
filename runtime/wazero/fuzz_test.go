package wazero

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// FuzzReplies reads what a child may write, one that a guest has taken over too: at most
// one reply is the last, and only a whole one is.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{
		`{"stage":"compile"}` + "\n" + `{"done":true,"file":"a/b","answer":"YQ=="}`, `{"done":true}{"done":true,"refused":"x"}`, `{"stage":"trial"}`, `{"done":1}`, ``, `[`, `null`,
		`{"done":true,"problems":[{"Rule":"a","Item":"b","Msg":"c"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, at, err := replies(text)
		if r.Done != (err == nil) {
			t.Fatalf("%+v, %v", r, err)
		}
		_ = at.String()
		if again, _, _ := replies(append(bytes.Clone(text), `{"done":true,"file":"later"}`...)); r.Done && again.File != r.File {
			t.Fatalf("%q, and then %q", r.File, again.File)
		}
	})
}

// FuzzIndex reads an index entry and code that may be anything: what comes out has the
// digest that the entry names, under the key that was asked for.
func FuzzIndex(f *testing.F) {
	code := []byte("code")
	sum := sha256.Sum256(code)
	key := hex.EncodeToString(sum[:])
	good, err := json.Marshal(entry{Format: format, Key: key, File: key, SHA256: key, Trials: []string{key}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, code)
	f.Add(good, []byte("cod"))
	f.Add(bytes.ToUpper(good), code)
	f.Add([]byte(`{"format":"kvrt-1"}`), code)
	s := &store{root: f.TempDir()}
	s.dir = s.root
	f.Fuzz(func(t *testing.T, rawIndex, rawCode []byte) {
		index, codePath := s.paths(key)
		if os.WriteFile(index, rawIndex, 0o600) != nil || os.WriteFile(codePath, rawCode, 0o600) != nil {
			t.Skip()
		}
		e := s.get(key)
		if e == nil {
			if !absent(index) || !absent(codePath) {
				t.Fatal("what is not right is still there")
			}
			return
		}
		sum := sha256.Sum256(e.code)
		if hex.EncodeToString(sum[:]) != e.SHA256 || e.Key != key || !digest.MatchString(e.File) {
			t.Fatalf("%+v", e)
		}
	})
}
