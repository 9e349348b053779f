//go:build !wasip1

package main

import (
	"os"
	"testing"

	"github.com/kvrt/kvrt/sdk/go"
	"github.com/kvrt/kvrt/sdk/go/guesttest"
)

// TestCases runs the guest's cases natively, without a host.
func TestCases(t *testing.T) {
	guesttest.Cases(t, os.DirFS("cases"), "kv.fetch", func() kvrt.Guest {
		return kvrt.Guest{Handle: judge, Parse: parse, Formulate: formulate}
	})
}
