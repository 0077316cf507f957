package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/doorward/doorward/internal/smtp"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
)

func configPrintCommand() *cobra.Command {
	s, effective := newSettings(), false
	cmd := &cobra.Command{
		Use: "print", Short: "Print the settings and where each comes from",
		Long: `Print shows the settings that were given, as YAML for --config, each with its source
in a comment. With --effective it adds the defaults, so that it shows everything that
a server would use. Passwords and the values of headers are masked, and so is an entire
value that may contain one but can't be parsed. It doesn't check the values: "doorward
config check" does.`,
		Example: "  doorward config print --effective --config /etc/doorward/doorward.yaml", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if s.origins, err = resolve(cmd); err != nil {
				return err
			}
			return s.print(cmd.OutOrStdout(), cmd.Flags(), effective)
		},
	}
	s.register(cmd.Flags())
	cmd.Flags().BoolVar(&effective, "effective", false, "include the defaults")
	return cmd
}

func (s *settings) print(out io.Writer, flags *pflag.FlagSet, effective bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	hidden := namesOf(func(d node.Setting) bool { return d.Hidden })
	for _, name := range settingNames() {
		f := flags.Lookup(name)
		if name == "config" || !f.Changed && (!effective || slices.Contains(hidden, name)) {
			continue
		}
		text, err := asYAML(f)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %s\t# %s\n", name, text, s.origin(f))
	}
	return w.Flush()
}

func (s *settings) origin(f *pflag.Flag) string {
	if !f.Changed {
		return "default"
	}
	return s.origins.place(f.Name)
}

// asYAML returns the value as YAML on one line.
func asYAML(f *pflag.Flag) (string, error) {
	value := f.Value.String()
	switch f.Value.Type() {
	case "bool", "int", "uint32", "float64":
		return value, nil
	case "stringSlice":
		return flowSequence(f.Name, f.Value.(pflag.SliceValue).GetSlice())
	case "duration":
		d, err := parseDuration(value)
		return formatDuration(d), err
	}
	return onOneLine(scalarNode(mask(f.Name, value)))
}

func flowSequence(name string, list []string) (string, error) {
	all := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, value := range list {
		all.Content = append(all.Content, scalarNode(mask(name, value)))
	}
	return onOneLine(all)
}

func scalarNode(value string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(value)
	if strings.Contains(value, "\n") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func onOneLine(n *yaml.Node) (string, error) {
	text, err := yaml.Marshal(n)
	return strings.TrimSpace(string(text)), err
}

// masked stands for a secret.
const masked = "********"

var (
	// passwordInAuthority matches a password before the last @ of a URL's authority.
	passwordInAuthority = regexp.MustCompile(`^([A-Za-z]+://[^:@/?#]*):[^/?#]*@`)
	// passwordInQuery matches the value of a parameter whose name mentions a password, or is
	// percent-encoded so that it can't be recognised.
	passwordInQuery = regexp.MustCompile(`(?i)([?&][^=&]*(?:pass|%)[^=&]*)=[^&]*`)
)

// mask hides the passwords of URLs in any setting, and the value of a header. A setting that
// may hold a password and can't be parsed is hidden entirely.
func mask(name, value string) string {
	switch name {
	case "database":
		if store.CheckDSN(value) != nil {
			return masked
		}
	case "smtp":
		if _, err := smtp.Open(value, "Doorward <no-reply@localhost>", "", slog.New(slog.DiscardHandler)); err != nil {
			return masked
		}
	case "webhook-proxy":
		if u, err := url.Parse(value); value != "" && (err != nil || u.Host == "") {
			return masked
		}
	case "trace-header":
		return maskHeader(value)
	}
	value = passwordInAuthority.ReplaceAllString(value, "$1:"+masked+"@")
	return passwordInQuery.ReplaceAllString(value, "$1="+masked)
}

// maskHeader masks the value and keeps the name.
func maskHeader(value string) string {
	h, ok := parseHeader(value)
	switch {
	case value == "":
		return ""
	case !ok:
		return masked
	}
	return h.Name + ": " + masked
}
