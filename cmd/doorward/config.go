package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// secrets may also come from a file named by the variable with _FILE.
var secrets = []string{"database", "smtp"}

// source resolves settings for a command: flags, then environment, then file.
type source struct {
	flags  *pflag.FlagSet
	file   map[string]string
	getenv func(string) (string, bool)
}

// resolve gives every flag of the command that was not typed its value from
// the environment or the file. A name that no command knows is refused, since
// a misspelt setting is one that silently doesn't hold.
func resolve(cmd *cobra.Command) error {
	s := source{flags: cmd.Flags(), getenv: os.LookupEnv}
	if err := checkEnvironment(os.Environ()); err != nil {
		return err
	}
	if err := s.fromEnvironment("config"); err != nil {
		return err
	}
	if err := s.readFile(); err != nil {
		return err
	}
	var err error
	s.flags.VisitAll(func(f *pflag.Flag) {
		if err == nil && !f.Changed && f.Name != "help" && f.Name != "config" {
			err = s.set(f.Name)
		}
	})
	return err
}

func (s source) set(name string) error {
	if err := s.fromEnvironment(name); err != nil || s.flags.Changed(name) {
		return err
	}
	value, ok := s.file[name]
	if !ok {
		return nil
	}
	if err := s.flags.Set(name, value); err != nil {
		return badConfig("%s in %s: %w", name, s.flags.Lookup("config").Value, err)
	}
	return nil
}

func variable(name string) string {
	return "DOORWARD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

func (s source) fromEnvironment(name string) error {
	value, ok := s.getenv(variable(name))
	from := variable(name)
	if path, has := s.getenv(variable(name) + "_FILE"); has && slices.Contains(secrets, name) {
		if ok {
			return badConfig("%s and %s_FILE are both set. Keep one of them.", from, from)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return badConfig("%s_FILE: %w", from, err)
		}
		value, ok, from = strings.TrimSpace(string(text)), true, from+"_FILE"
	}
	if !ok || s.flags.Lookup(name) == nil || s.flags.Changed(name) {
		return nil
	}
	if err := s.flags.Set(name, value); err != nil {
		return badConfig("%s: %w", from, err)
	}
	return nil
}

// checkEnvironment refuses variables of ours that mean nothing.
func checkEnvironment(environ []string) error {
	var known []string
	for _, name := range settingNames() {
		known = append(known, variable(name))
		if slices.Contains(secrets, name) {
			known = append(known, variable(name)+"_FILE")
		}
	}
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "DOORWARD_") && !strings.HasPrefix(name, "DOORWARD_TEST_") && !slices.Contains(known, name) {
			return badConfig("the environment sets %s, which is no setting.%s", name, didYouMean(name, known))
		}
	}
	return nil
}

// readFile reads the YAML file of --config: one level of names, each a flag
// without its dashes in front.
func (s *source) readFile() error {
	path := s.flags.Lookup("config").Value.String()
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return badConfig("--config: there is no file %s.", path)
	}
	if err != nil {
		return badConfig("--config: %w", err)
	}
	var raw map[string]yaml.Node
	if err := yaml.Unmarshal(text, &raw); err != nil {
		return badConfig("%s: %w", path, err)
	}
	s.file = make(map[string]string, len(raw))
	for name, node := range raw {
		if !slices.Contains(settingNames(), name) || name == "config" {
			return badConfig("%s line %d: %q is no setting.%s", path, node.Line, name, didYouMean(name, settingNames()))
		}
		if s.file[name], err = scalar(&node); err != nil {
			return badConfig("%s line %d: %s: %w", path, node.Line, name, err)
		}
	}
	return nil
}

// scalar is a value, or a list of values joined by commas.
func scalar(n *yaml.Node) (string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value, nil
	case yaml.SequenceNode:
		var parts []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return "", errors.New("write a list of plain values")
			}
			parts = append(parts, item.Value)
		}
		return strings.Join(parts, ","), nil
	}
	return "", errors.New("write a plain value or a list of them")
}

// didYouMean is a hint at the nearest name, if one is near.
func didYouMean(name string, known []string) string {
	best, distance := "", 4
	for _, k := range known {
		if d := editDistance(name, k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return " \"doorward serve --help\" lists the settings."
	}
	return fmt.Sprintf(" Did you mean %s?", best)
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
