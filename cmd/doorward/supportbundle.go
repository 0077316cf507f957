package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
)

func supportBundleCommand() *cobra.Command {
	s := newSettings()
	var log string
	cmd := &cobra.Command{
		Use: "support-bundle FILE", Short: "Collect what helps to find a fault, without anything secret",
		Long: `Support-bundle writes one tar.gz to FILE: the version, the settings with their sources, the
version of the schema, how many rows each table has, the output of "doorward doctor" and,
if a server with the same settings runs on this machine, its metrics. What can't be read
says so in its file, also when the settings are wrong.

With --log it adds the end of the server's log, from a file or with - from standard input.

Passwords, keys, tokens and e-mail addresses are not in it, nor addresses of clients. Ids
of people and tenants in the log stay. Read it before you send it.`,
		Example: "  doorward support-bundle --config /etc/doorward/doorward.yaml doorward-support.tar.gz\n  journalctl -u doorward -o cat --since -1h | doorward support-bundle --config /etc/doorward/doorward.yaml --log - doorward-support.tar.gz",
		Args:    oneArg("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := collect(cmd, s, log)
			if err != nil {
				return err
			}
			if err := writeBundle(args[0], files); err != nil {
				return notDone("%s can't be written: %w", args[0], err)
			}
			for _, f := range files {
				fmt.Fprintf(cmd.OutOrStdout(), "%7d  %s\n", len(f.text), f.name)
			}
			return nil
		},
	}
	s.register(cmd.Flags())
	cmd.Flags().StringVar(&log, "log", "", "`file` with the server's log, or -")
	return cmd
}

// bundleFile is a file of the bundle.
type bundleFile struct{ name, text string }

func collect(cmd *cobra.Command, s *settings, log string) ([]bundleFile, error) {
	logged, err := readLog(log)
	if err != nil {
		return nil, err
	}
	cfg, invalid := s.readToServe(cmd)
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Minute)
	defer cancel()
	const effective = true // with the defaults
	all := []bundleFile{
		{"version.txt", fmt.Sprintf("doorward %s\n%s %s/%s\n%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, time.Now().UTC().Format(time.RFC3339))},
		{"settings.yaml", textOf(func(out io.Writer) error { return s.print(out, cmd.Flags(), effective) })},
	}
	if invalid != nil {
		all = append(all, bundleFile{"doctor.txt", describe(invalid) + "\n"})
	} else {
		all = append(all,
			bundleFile{"doctor.txt", textOf(func(out io.Writer) error { return examine(ctx, out, s, cfg) })},
			bundleFile{"database.txt", textOf(func(out io.Writer) error { return describeDatabase(ctx, out, cfg) })},
			bundleFile{"metrics.txt", textOf(func(out io.Writer) error { return copyMetrics(ctx, out, cfg) })})
	}
	if log != "" {
		all = append(all, bundleFile{"log.txt", clientAddress.ReplaceAllString(logged, "<client>")})
	}
	for i := range all {
		all[i].text = scrub(all[i].text)
	}
	return all, nil
}

// textOf returns what write has written, with its error as the last line.
func textOf(write func(io.Writer) error) string {
	var out bytes.Buffer
	if err := write(&out); err != nil {
		fmt.Fprintln(&out, "doorward:", describe(err))
	}
	return out.String()
}

// logEnd is how much of the end of the log is included, in bytes.
const logEnd = 2 << 20

func readLog(file string) (string, error) {
	var text []byte
	var err error
	switch file {
	case "":
		return "", nil
	case piped:
		text, err = io.ReadAll(os.Stdin)
	default:
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return "", notDone("--log: %s", describeUnreadable(file, err))
	}
	if len(text) <= logEnd {
		return string(text), nil
	}
	_, end, _ := strings.Cut(string(text[len(text)-logEnd:]), "\n") // without the line that was cut
	return end, nil
}

func describeDatabase(ctx context.Context, out io.Writer, cfg node.Config) error {
	db, err := store.OpenExisting(ctx, cfg.Database, cfg.Clock)
	if err != nil {
		return err
	}
	defer db.Close()
	schema, err := db.Schema(ctx)
	if err != nil {
		return err
	}
	size, err := db.Size(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, schema %d, %d bytes\n\n", db.Engine(), schema, size)
	tables, err := db.TableRows(ctx)
	for _, t := range tables {
		fmt.Fprintf(out, "%12d  %s\n", t.Rows, t.Name)
	}
	return err
}

func copyMetrics(ctx context.Context, out io.Writer, cfg node.Config) error {
	address, err := adminURL(cfg, "/metrics")
	if err != nil {
		return err
	}
	res, err := askLoopback(ctx, address)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(out, io.LimitReader(res.Body, 8<<20))
	return err
}

// The secrets and addresses that could be in a text: in an error of another program, in a
// log that holds mails.
var (
	secretText = regexp.MustCompile(`dw[ksoc]_[0-9A-Za-z_-]{20,}|wh(?:sec|pk)_[0-9A-Za-z+/=]{20,}|\$(?:argon2|2[aby]\$|scrypt|pbkdf2)[^\s"]+|://[^/\s"@]*:[^\s"@]*@|[0-9A-Za-z+/]{43}=`)
	// jwtText is a signed, unsigned or encrypted JWT, whose parts may be short, or a part of one: base64 of "{"
	// and a quote or white space (RFC 7515, RFC 7516).
	jwtText = regexp.MustCompile(`\be(?:y[A-DI-L]|w[k-r0-3])[0-9A-Za-z_-]+(?:\.[0-9A-Za-z_-]*){2,}|\beyJ[0-9A-Za-z_-]{8,}`)
	// namedSecret is a credential of any form after its name: in a header, a query, JSON (also quoted
	// again) or a map that Go has printed. Authorization and Cookie may have several words.
	namedSecret = regexp.MustCompile(`(?i)\b(?:authorization|cookie)[\\"']*[=:][\\"' \[]*[^"'\n\\\]]+|` +
		`(?:password|passwd|secret|token|api[_-]?key|assertion)[\\"']*[=:][\\"' \[]*[^\s"'&,;\\\]]+|` +
		`\b(?:bearer|basic|dpop)(?: |\+|%20|=|:)+[^\s"'\\]+`)
	// longWord may be a token, a hash or a key, which have 43 characters or more. scrub keeps
	// names of metrics, which can be as long.
	longWord    = regexp.MustCompile(`[0-9A-Za-z_-]{43,}`)
	mailAddress = regexp.MustCompile(`[^\s"'<>=:,;()\[\]/\\]+(?:@|%40)[^\s"'<>=:,;()\[\]/\\]+`)
	// clientAddress is of IPv4, or of IPv6: eight groups, or with "::". A time of day is
	// neither.
	clientAddress = regexp.MustCompile(`\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b|\b(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}\b|(?:\b[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4})*)?::[0-9a-fA-F:]*(?:[0-9]*\.[0-9]+\.[0-9]+\.[0-9]+)?(?:/[0-9]+)?`)
	// mailInLog is a line of the log that holds a mail, as --smtp log: writes it.
	mailInLog = regexp.MustCompile(`(?m)^.*mail, for development only.*$`)
)

// scrub removes secrets and e-mail addresses from a text.
func scrub(text string) string {
	text = mailInLog.ReplaceAllString(text, "<mail>")
	text = namedSecret.ReplaceAllString(jwtText.ReplaceAllString(text, masked), masked)
	text = secretText.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "://") {
			return "://" + masked + "@"
		}
		return masked
	})
	text = longWord.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "doorward_") {
			return found
		}
		return masked
	})
	return mailAddress.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, masked+"@") { // of a URL: the host stays
			return found
		}
		return "<address>"
	})
}

func writeBundle(file string, files []bundleFile) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	for _, f := range files {
		header := &tar.Header{Name: "doorward-support/" + f.name, Mode: 0o600, Size: int64(len(f.text)), ModTime: time.Now()}
		if err = archive.WriteHeader(header); err == nil {
			_, err = io.WriteString(archive, f.text)
		}
		if err != nil {
			break
		}
	}
	return cmp.Or(err, archive.Close(), zipped.Close(), out.Close())
}
