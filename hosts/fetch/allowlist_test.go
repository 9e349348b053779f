package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

var errTimeout = errors.New("the server does not answer")

func notFound(host string) error {
	return &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func allowed(a *AllowList, source string) bool {
	_, err := a.Check([]byte(source))
	return err == nil
}

func TestEntries(t *testing.T) {
	for _, c := range []struct{ entry, yes, no string }{
		{"tcp://10.0.0.0/8", "tcp://10.9.9.9:1", "tcp://11.0.0.0:1"},
		{"tcp://10.0.0.0/8:5", "tcp://10.9.9.9:5", "tcp://10.9.9.9:6"},
		{"tcp://10.0.0.9", "tcp://10.0.0.9:1", "tcp://10.0.0.8:1"},
		{"tcp://10.0.0.9/32", "tcp://10.0.0.9:1", "tcp://10.0.0.8:1"},
		{"tcp://10.0.0.9:5", "tcp://10.0.0.9:5", "tcp://10.0.0.9:6"},
		{"tcp://[fd00::]/8", "tcp://[fdff::1]:1", "tcp://[fe00::1]:1"},
		{"tcp://[fd00::/8]", "tcp://[fdff::1]:1", "tcp://[fe00::1]:1"},
		{"tcp://[fd00::/8]:5", "tcp://[fdff::1]:5", "tcp://[fdff::1]:6"},
		{"tcp://[fd00::]/8:5", "tcp://[fdff::1]:5", "tcp://[fdff::1]:6"},
		{"tcp://[fd00::1]", "tcp://[fd00::1]:1", "tcp://[fd00::2]:1"},
		{"tcp://[fd00::1]:5", "tcp://[fd00::1]:5", "tcp://[fd00::1]:6"},
		{"tcp://[::ffff:10.0.0.1]", "tcp://10.0.0.1:1", "tcp://10.0.0.2:1"},
		{"tcp://0.0.0.0/0", "tcp://169.254.169.254:1", "tcp://[::1]:1"},
		{"tcp://[::]/0", "tcp://[64:ff9b::a00:1]:1", "tcp://10.0.0.1:1"},
		{"tcp://[::]/0", "tcp://[::10.0.0.1]:1", "tcp://[::ffff:10.0.0.1]:1"},
		{"tcp://localhost", "tcp://localhost:1", "tcp://127.0.0.2:1"},
		{"tcp://localhost:5", "tcp://[::1]:5", "tcp://localhost:6"},
		{"tcp://[::1]", "tcp://localhost:1", "tcp://127.0.0.1:1"},
		{"tcp://h.example", "tcp://H.example.:1", "tcp://10.0.0.1:1"},
		{"tcp://H.Example.:5", "tcp://h.example:5", "tcp://h.example:6"},
		{"tcp://under_score", "tcp://under_score:1", "tcp://underscore:1"},
		{"rdma+v2://10.0.0.9", "rdma+v2://10.0.0.9:1", "tcp://10.0.0.9:1"},
	} {
		a := mustParse(t, names{"h.example": {"10.0.0.1"}, "under_score": {"10.0.0.2"}}, c.entry)
		if _, err := a.Check([]byte(c.yes)); err != nil {
			t.Errorf("%s: %v", c.entry, err)
		}
		if allowed(a, c.no) {
			t.Errorf("%s allows %s", c.entry, c.no)
		}
	}
}

func TestBadEntriesAreAllListed(t *testing.T) {
	bad := []struct{ entry, problem string }{
		{"", "empty; write tcp://HOST"},
		{"10.0.0.0/8", "no scheme; write tcp://10.0.0.0/8"},
		{"worker:1", "no scheme; write tcp://worker:1"},
		{"tcp://*.example", "wildcards"},
		{"tcp://*", "wildcards"},
		{"TCP://10.0.0.1", "lower-case"},
		{"tcp://", "no host"},
		{"tcp://10.0.0.9/8", "for the network write tcp://10.0.0.0/8, for the address tcp://10.0.0.9"},
		{"tcp://[fd00::1]/8", "for the network write tcp://[fd00::]/8, for the address tcp://[fd00::1]"},
		{"tcp://10.0.0.0/33", "10.0.0.0 has 32 bits, not 33"},
		{"tcp://[fd00::]/129", "not a number of bits"},
		{"tcp://10.0.0.0/08", "not a number of bits; write tcp://10.0.0.0/8, say"},
		{"tcp://10.0.0.0/", "not a number of bits"},
		{"tcp://10.0.0.0/-1", "not a number of bits"},
		{"tcp://10.0.0.0/8/8", "not a number of bits"},
		{"tcp://10.0.0.0/255.0.0.0", "not a number of bits"},
		{"tcp://10.0.0.0:5/8", "a network is written tcp://ADDRESS/BITS"},
		{"tcp://10.0.0.0/8:0", "a port is"},
		{"tcp://fd00::/8", "an IPv6 network is written tcp://[fd00::]/8"},
		{"tcp://[fd00::/8", "an IPv6 network is written tcp://[ADDRESS]/BITS"},
		{"tcp://[fd00::/8]9", "an IPv6 network is written tcp://[ADDRESS]/BITS"},
		{"tcp://[fd00::]/8]", "not a number of bits"},
		{"tcp://fd00::1", "goes into brackets"},
		{"tcp://[::ffff:10.0.0.0]/104", "write tcp://10.0.0.0/8"},
		{"tcp://10.0/8", "four decimal"},
		{"tcp://10.0.0.1:99999", "at most 65535"},
		{"tcp://worker/path", "a network is written"},
		{"tcp://user@worker", "user information"},
		{"tcp://wor ker", "is a space"},
		{"unix:///run/x.sock", "no host"},
	}
	var entries []string
	for _, b := range bad {
		entries = append(entries, "tcp://10.0.0.0/8", b.entry)
	}
	asked := resolverFunc(func(string) ([]netip.Addr, error) { t.Error("resolved a bad list"); return nil, errTimeout })
	a, err := ParseAllowList(context.Background(), entries, asked)
	var list *AllowListError
	if a != nil || !errors.As(err, &list) {
		t.Fatal(a, err)
	}
	if len(list.Bad) != len(bad) {
		t.Fatalf("%d of %d are listed: %v", len(list.Bad), len(bad), err)
	}
	for i, b := range bad {
		got := list.Bad[i]
		if got.Index != 2*i+1 || got.Entry != b.entry || !strings.Contains(got.Problem, b.problem) {
			t.Errorf("%q: %+v, want %q", b.entry, got, b.problem)
		}
		if !strings.Contains(err.Error(), got.Error()) {
			t.Errorf("%q is not in the error", b.entry)
		}
	}
}

func TestDefaultIsLoopback(t *testing.T) {
	a, err := ParseAllowList(context.Background(), nil, nil)
	if err != nil || len(a.Warnings()) != 0 {
		t.Fatal(err, a.Warnings())
	}
	for source, want := range map[string]bool{
		"tcp://127.0.0.1:1": true, "tcp://[::1]:1": true, "tcp://localhost:1": true, "tcp://127.255.0.1:1": true,
		"tcp://10.0.0.1:1": false, "tcp://0.0.0.0:1": false, "tcp://[::]:1": false, "ucx://127.0.0.1:1": false,
	} {
		if allowed(a, source) != want {
			t.Errorf("%s: %v", source, !want)
		}
	}
	empty, err := ParseAllowList(context.Background(), []string{}, nil)
	if err != nil || allowed(empty, "tcp://127.0.0.1:1") || allowed(empty, "tcp://localhost:1") {
		t.Error("an empty list allows something")
	}
}

// TestResolvedAddressesAreChecked: who runs the DNS of a listed name does not reach
// special addresses through it.
func TestResolvedAddressesAreChecked(t *testing.T) {
	r := names{
		"mixed":   {"10.0.0.1", "169.254.169.254", "fe80::1%eth0", "ff02::1", "224.0.0.1", "0.0.0.0", "::", "255.255.255.255", "10.0.0.1", "::ffff:10.0.0.1"},
		"meta":    {"169.254.169.254"},
		"mapped":  {"::ffff:169.254.169.254"},
		"nat64":   {"64:ff9b::a9fe:a9fe"},
		"sixto4":  {"2002:a9fe:a9fe::"},
		"compat":  {"::169.254.169.254"},
		"teredo":  {"2001:0:a9fe:a9fe::"},
		"loop":    {"127.0.1.1", "::1"},
		"covered": {"169.254.1.1"},
	}
	a := mustParse(t, r, "tcp://mixed", "tcp://meta", "tcp://mapped", "tcp://nat64", "tcp://sixto4", "tcp://compat", "tcp://teredo", "tcp://loop", "tcp://covered",
		"tcp://169.254.1.0/24")
	src, err := a.Check([]byte("tcp://mixed:9"))
	if err != nil || fmt.Sprint(src.Addrs()) != "[10.0.0.1:9]" {
		t.Errorf("mixed: %v %v", src.Addrs(), err)
	}
	for _, name := range []string{"meta", "mapped", "nat64", "sixto4", "compat", "teredo"} {
		_, err := a.Check([]byte("tcp://" + name + ":9"))
		if err == nil || !strings.Contains(err.Error(), "has no address that may be used") {
			t.Errorf("%s: %v", name, err)
		}
		if !hasWarning(a.Warnings(), name+" has no address that may be used") {
			t.Errorf("%s: no warning", name)
		}
	}
	if !hasWarning(a.Warnings(), "meta resolves to 169.254.169.254, which is link-local", "add tcp://169.254.169.254 to allow it") {
		t.Error(a.Warnings())
	}
	for _, name := range []string{"loop", "covered"} {
		if !allowed(a, "tcp://"+name+":9") {
			t.Errorf("%s is refused", name)
		}
	}
}

func TestRefresh(t *testing.T) {
	r := names{"steady": {"10.0.0.1"}, "moves": {"10.0.0.2"}, "goes": {"10.0.0.3"}, "fails": {"10.0.0.4"}}
	a := mustParse(t, r, "tcp://steady", "tcp://moves", "tcp://goes", "tcp://fails", "tcp://comes")
	addrs := func(name string) string {
		src, err := a.Check([]byte("tcp://" + name + ":1"))
		if err != nil {
			return "refused"
		}
		return fmt.Sprint(src.Addrs())
	}
	want := func(when string, w map[string]string) {
		t.Helper()
		for name, text := range w {
			if got := addrs(name); got != text {
				t.Errorf("%s: %s is %s, want %s", when, name, got, text)
			}
		}
	}
	want("at load", map[string]string{"steady": "[10.0.0.1:1]", "moves": "[10.0.0.2:1]", "goes": "[10.0.0.3:1]", "fails": "[10.0.0.4:1]", "comes": "refused"})
	if !hasWarning(a.Warnings(), "comes did not resolve and is refused until a reload resolves it", "no such host") {
		t.Error(a.Warnings())
	}
	old, _ := a.Check([]byte("tcp://moves:1"))

	r["moves"], r["fails"], r["comes"] = []string{"10.0.0.22"}, []string{"timeout"}, []string{"10.0.0.5"}
	delete(r, "goes")
	want("before the refresh", map[string]string{"moves": "[10.0.0.2:1]", "comes": "refused"})
	warnings := a.Refresh(context.Background())
	want("after it", map[string]string{"steady": "[10.0.0.1:1]", "moves": "[10.0.0.22:1]", "goes": "refused", "fails": "[10.0.0.4:1]", "comes": "[10.0.0.5:1]"})
	if !hasWarning(warnings, "fails did not resolve and keeps its addresses") || !hasWarning(warnings, "goes did not resolve and is refused") || len(warnings) != 2 {
		t.Error(warnings)
	}
	if fmt.Sprint(old.Addrs()) != "[10.0.0.2:1]" {
		t.Error("a pinned source changed")
	}
}

func TestWarningOfOpenList(t *testing.T) {
	a := mustParse(t, nil, "tcp://0.0.0.0/0", "tcp://[::]/0", "tcp://10.0.0.0/8")
	if w := a.Warnings(); len(w) != 2 || !hasWarning(w, "tcp://0.0.0.0/0 allows every address") {
		t.Error(w)
	}
}

func TestLookupsHaveADeadline(t *testing.T) {
	hang := hangs{}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a, err := ParseAllowList(ctx, []string{"tcp://a", "tcp://b"}, hang)
	if err != nil || allowed(a, "tcp://a:1") || len(a.Warnings()) != 2 {
		t.Fatal(err, a.Warnings())
	}
}

// hangs is a resolver that answers when its context ends, if that has a deadline.
type hangs struct{}

func (hangs) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	if _, ok := ctx.Deadline(); !ok {
		return nil, errors.New("no deadline")
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestCheckWhileRefreshing(t *testing.T) {
	a := mustParse(t, names{"h": {"10.0.0.1"}}, "tcp://h", "tcp://10.0.0.0/8")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 2000 {
				if !allowed(a, "tcp://h:1") || !allowed(a, fmt.Sprintf("tcp://10.0.0.1:%d", 1+i)) || allowed(a, "tcp://g:1") {
					t.Error("wrong")
					return
				}
			}
		})
	}
	for range 50 {
		a.Refresh(context.Background())
	}
	wg.Wait()
}
