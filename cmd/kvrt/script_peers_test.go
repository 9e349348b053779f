package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// secondKey is for the daemon beside that of a script.
type secondKey struct{}

// beside ARGS...: starts another kvrt serve. Its standard error is in beside.log, and
// $BESIDE and $BESIDE_ADMIN are where it listens.
func cmdBeside(ts *testscript.TestScript, _ bool, args []string) {
	d := ts.Value(secondKey{}).(*running)
	ts.Setenv("BESIDE", ts.MkAbs("beside.sock"))
	ts.Setenv("BESIDE_ADMIN", d.start(ts, ts.MkAbs("beside.sock"), ts.MkAbs("beside.log"), args))
}

// die: the daemon beside ends at once, and cleans up nothing.
func cmdDie(ts *testscript.TestScript, _ bool, _ []string) {
	d := ts.Value(secondKey{}).(*running)
	ts.Check(d.cmd.Process.Kill())
	<-d.done
}

// start starts a daemon and waits until it has said what to try next.
func (d *running) start(ts *testscript.TestScript, socket, logFile string, args []string) (admin string) {
	d.log = logFile
	log, err := os.Create(d.log)
	ts.Check(err)
	defer log.Close()
	d.cmd = exec.Command("kvrt", append([]string{"serve", "--socket", socket, "--admin", "127.0.0.1:0"}, args...)...)
	d.cmd.Dir, d.cmd.Stderr = ts.MkAbs("."), log
	d.cmd.Env = append(os.Environ(), "WORK="+ts.MkAbs("."), fmt.Sprint("MY_UID=", os.Geteuid()))
	ts.Check(d.cmd.Start())
	d.done = make(chan error, 1)
	go func(cmd *exec.Cmd, done chan<- error) { done <- cmd.Wait() }(d.cmd, d.done)
	process := d.cmd.Process
	ts.Defer(func() { process.Kill() })
	d.waitFor(ts, func(log string) bool { return strings.Contains(log, "\nnext:\n") })
	return adminLine.FindStringSubmatch(ts.ReadFile(d.log))[1]
}

// metric ADMIN SERIES VALUE: a daemon comes to show this series, such as
// name{label="x"}, with this value. With ! it does not show it now.
func cmdMetric(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		if line := scrape(ts, args[0], args[1]); line == args[1]+" "+args[2] {
			ts.Fatalf("%s", line)
		}
		return
	}
	line := ""
	for range 500 {
		if line = scrape(ts, args[0], args[1]); line == args[1]+" "+args[2] {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("want %s %s, have %q", args[1], args[2], line)
}

// scrape returns the line of a series.
func scrape(ts *testscript.TestScript, admin, series string) string {
	resp, err := http.Get("http://" + admin + "/metrics")
	ts.Check(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ts.Check(err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, series+" ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// random BYTES FILE SEED: a file that is the same for the same seed.
func cmdRandom(ts *testscript.TestScript, _ bool, args []string) {
	var n, seed int
	_, err := fmt.Sscan(args[0]+" "+args[2], &n, &seed)
	ts.Check(err)
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + seed*131 + i>>8)
	}
	ts.Check(os.WriteFile(filepath.Join(ts.MkAbs("."), args[1]), b, 0o644))
}

// interrupt ARGS...: runs kvrt, and interrupts it when it has written a line. It must end
// with code 0.
func cmdInterrupt(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command("kvrt", args...)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	defer cmd.Process.Kill()
	_, err = bufio.NewReader(out).ReadString('\n')
	ts.Check(err)
	ts.Check(cmd.Process.Signal(os.Interrupt))
	ts.Check(cmd.Wait())
}
