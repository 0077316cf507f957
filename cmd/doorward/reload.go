package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/doorward/doorward/node"
)

// reloader puts changed settings into force when the server receives SIGHUP. Flags stay
// as they were typed; the file, the files that it names and secrets are read again.
type reloader struct {
	started *settings
	flags   *pflag.FlagSet    // of the command, with the values from the environment and the file
	inForce map[string]string // results of describeState by setting; a setting that needs a restart has that of the start
	hangups chan os.Signal
	// onTerminal: SIGHUP may mean that the terminal was closed. False without a terminal, and
	// under nohup.
	onTerminal bool
}

// newReloader catches SIGHUP from now on.
func newReloader(cmd *cobra.Command, s *settings) *reloader {
	r := &reloader{started: s, flags: cmd.Flags(), hangups: make(chan os.Signal, 1)}
	r.onTerminal = !signal.Ignored(syscall.SIGHUP) && hasTerminal()
	signal.Ignore(syscall.SIGHUP) // untilSignal doesn't get it any more
	signal.Notify(r.hangups, syscall.SIGHUP)
	return r
}

// hasTerminal reports whether the process has a terminal from which it was started: once
// that is closed, it can't be opened any more.
func hasTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	return tty.Close() == nil
}

// run reloads the settings on each SIGHUP, until ctx ends, and reads the password of the database again
// whenever PostgreSQL refuses it, and that of the mail server likewise. If the server's terminal was
// closed, it calls stop instead, which ends the server.
func (r *reloader) run(ctx context.Context, n *node.Node, cfg node.Config, stop func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.DB.LoginRefused():
			r.rereadPassword(n, cfg)
			continue
		case <-n.App.Mail.LoginRefused():
			r.rereadMailPassword(n, cfg)
			continue
		case <-r.hangups:
		}
		if r.onTerminal && !hasTerminal() {
			stop()
			return
		}
		r.reload(n, cfg)
	}
}

func (r *reloader) reload(n *node.Node, cfg node.Config) {
	next := newSettings()
	newCfg, err := next.read(r.typedCommand(next))
	if err != nil {
		n.SetReloadFailed()
		cfg.Log.Error("settings not reloaded, the earlier ones stay in force", "err", plain(err))
		return
	}
	// Sender and name stay as they were at the start, which other parts of the program use, too.
	if newCfg.Transport, err = r.started.transportTo(next.raw.SMTP, cfg); err == nil {
		err = n.Reload(r.withDatabase(newCfg))
	}
	if err != nil {
		n.SetReloadFailed()
		cfg.Log.Error("settings not reloaded, the earlier ones stay in force", "err", plain(err))
		return
	}
	changed, needRestart := r.compare(next)
	r.started.level.Set(next.level.Level())
	cfg.Log.Info("settings reloaded", "changed", changed, "needRestart", needRestart)
	warn(next, newCfg)
}

// typedCommand returns a command with only the flags that were typed, so that the other
// settings can be read again.
func (r *reloader) typedCommand(next *settings) *cobra.Command {
	cmd := new(cobra.Command)
	next.register(cmd.Flags())
	onlyDecimal(cmd)
	r.flags.VisitAll(func(f *pflag.Flag) {
		target := cmd.Flags().Lookup(f.Name)
		if _, found := r.started.origins[f.Name]; !f.Changed || found || target == nil {
			return
		}
		target.Changed = true
		if list, ok := f.Value.(pflag.SliceValue); ok {
			_ = target.Value.(pflag.SliceValue).Replace(list.GetSlice()) // it was valid
			return
		}
		_ = target.Value.Set(f.Value.String()) // it was valid
	})
	return cmd
}

// compare returns the names of the settings that have changed: those that come into force
// now, whose values it remembers, and those that need a restart.
func (r *reloader) compare(next *settings) (changed, needRestart []string) {
	changed, needRestart = []string{}, []string{}
	for _, d := range next.list() {
		value := describeState(d)
		switch {
		case value == r.inForce[d.Name]:
		case d.Live, d.Name == "database" && isSameButPassword(value, r.inForce[d.Name]):
			changed = append(changed, d.Name)
			r.inForce[d.Name] = value
		default:
			needRestart = append(needRestart, d.Name)
		}
	}
	return changed, needRestart
}

// rereadPassword puts another password of the database into force, and nothing else. If the settings have
// a fault, such as a file that is being written, the next refusal tries again.
func (r *reloader) rereadPassword(n *node.Node, cfg node.Config) {
	next := newSettings()
	newCfg, err := next.read(r.typedCommand(next))
	if err != nil || !isSameButPassword(newCfg.Database, r.inForce["database"]) {
		return
	}
	if err := n.DB.SetPassword(newCfg.Database); err != nil || newCfg.Database == r.inForce["database"] {
		return
	}
	r.inForce["database"] = newCfg.Database
	cfg.Log.Info("settings reloaded", "changed", []string{"database"}, "needRestart", []string{})
}

// rereadMailPassword does for the mail server what rereadPassword does for the database. What was refused is
// tried again as any mail is.
func (r *reloader) rereadMailPassword(n *node.Node, cfg node.Config) {
	next := newSettings()
	_, err := next.read(r.typedCommand(next))
	destination, inForce := next.raw.SMTP, r.inForce["smtp"]
	if err != nil || destination == inForce || mask("smtp", destination) != mask("smtp", inForce) {
		return
	}
	transport, err := r.started.transportTo(destination, cfg)
	if err != nil {
		return
	}
	n.App.Mail.SetTransport(transport)
	r.inForce["smtp"] = destination
	cfg.Log.Info("settings reloaded", "changed", []string{"smtp"}, "needRestart", []string{})
}

// withDatabase returns cfg with the database in force, unless only its password has changed.
func (r *reloader) withDatabase(cfg node.Config) node.Config {
	if inForce := r.inForce["database"]; !isSameButPassword(cfg.Database, inForce) {
		cfg.Database = inForce
	}
	return cfg
}

// isSameButPassword reports whether two valid URLs of databases have, but for the password, one text.
func isSameButPassword(a, b string) bool { return mask("database", a) == mask("database", b) }

// remember notes the settings of the start.
func (r *reloader) remember() {
	r.inForce = map[string]string{}
	for _, d := range r.started.list() {
		r.inForce[d.Name] = describeState(d)
	}
}

// fromFiles are the settings that name a file whose content may have changed.
var fromFiles = []string{"brand-logo", "password-list"}

// describeState returns the value of a setting, with the size and time of the file that it
// names. It may hold a password and is only compared.
func describeState(d node.Setting) string {
	value := d.Value.String()
	if !slices.Contains(fromFiles, d.Name) || value == "" {
		return value
	}
	info, err := os.Stat(value)
	if err != nil {
		return value
	}
	return fmt.Sprint(value, " ", info.Size(), " ", info.ModTime().UnixNano())
}
