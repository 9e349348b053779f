package main

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// newLog makes a logger out of the words of a flag or a configuration.
func newLog(w io.Writer, level, format string) *slog.Logger {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	opts := &slog.HandlerOptions{Level: levels[level]}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// logLevelFlag adds --log-level with a default, which may be empty.
func logLevelFlag(cmd *cobra.Command, level *string, def string) {
	*level = def
	chooseFrom(cmd, level, "log-level", "", "least severe level that is logged", "debug", "info", "warn", "error")
}
