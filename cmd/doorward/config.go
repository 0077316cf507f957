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
var secrets = []string{"database", "smtp", "trace-header"}

// origins says where each setting that was not typed as a flag came from, so
// that a complaint about it names the place to mend.
type origins map[string]string

// of is how the person at the terminal knows the setting.
func (o origins) of(name string) string {
	if from, ok := o[name]; ok {
		return from
	}
	return "--" + name
}

// entry is a value with where it was found.
type entry struct{ value, from string }

// resolve gives every flag of the command that was not typed its value from
// the environment, or else the file. A name that no command knows is refused,
// since a misspelt setting is one that silently doesn't hold.
func resolve(cmd *cobra.Command) (origins, error) {
	if err := checkEnvironment(os.Environ()); err != nil {
		return nil, err
	}
	from, flags := origins{}, cmd.Flags()
	config := flags.Lookup("config")
	if err := from.set(flags, config, nil); err != nil {
		return from, err
	}
	file, err := readFile(config.Value.String())
	if err != nil {
		return from, err
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if err == nil && slices.Contains(settingNames(), f.Name) {
			err = from.set(flags, f, file)
		}
	})
	return from, err
}

// set gives one flag its value, unless it was typed.
func (o origins) set(flags *pflag.FlagSet, f *pflag.Flag, file map[string]entry) error {
	if f.Changed {
		return nil
	}
	found, ok, err := fromEnvironment(f.Name)
	if err != nil {
		return err
	}
	if !ok {
		found, ok = file[f.Name]
	}
	if !ok {
		return nil
	}
	o[f.Name] = found.from
	if err := flags.Set(f.Name, found.value); err != nil {
		return badConfig("%s %q: %s", found.from, found.value, wanted(f))
	}
	return nil
}

func variable(name string) string {
	return "DOORWARD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// fromEnvironment returns the value of the variable, or for a secret that of
// the file it names.
func fromEnvironment(name string) (entry, bool, error) {
	value, set := os.LookupEnv(variable(name))
	path, inFile := os.LookupEnv(variable(name) + "_FILE")
	if !inFile || !slices.Contains(secrets, name) {
		return entry{value, variable(name)}, set, nil
	}
	if set {
		return entry{}, false, badConfig("%s and %[1]s_FILE are both set. Keep one of them.", variable(name))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return entry{}, false, badConfig("%s_FILE: %s", variable(name), unreadable(path, err))
	}
	return entry{strings.TrimSpace(string(text)), variable(name) + "_FILE"}, true, nil
}

// unreadable says why a file can't be read.
func unreadable(path string, err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no file " + path + "."
	}
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	return fmt.Sprintf("the file %s can't be read: %v.", path, err)
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
			return badConfig("the environment sets %s, which is no setting.%s", name, suggestSetting(name, known))
		}
	}
	return nil
}

func suggestSetting(name string, known []string) string {
	if hint := suggest(name, known); hint != "" {
		return hint
	}
	return "\n  \"doorward serve --help\" lists the settings."
}

// readFile reads the YAML file of --config: one level of names, each a flag
// without its dashes in front.
func readFile(path string) (map[string]entry, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, badConfig("--config: %s", unreadable(path, err))
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, badConfig("%s is no YAML: %s.", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if doc.Kind == 0 { // nothing but comments
		return nil, nil
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return nil, badConfig("%s: write a setting a line, as in \"listen: localhost:8080\".", path)
	}
	return readSettings(path, doc.Content[0].Content)
}

// readSettings takes names and values in turn.
func readSettings(path string, nodes []*yaml.Node) (map[string]entry, error) {
	settings := map[string]entry{}
	for pair := range slices.Chunk(nodes, 2) {
		name, place := pair[0].Value, fmt.Sprintf("%s line %d", path, pair[0].Line)
		if !slices.Contains(settingNames(), name) || name == "config" {
			return nil, badConfig("%s: %q is no setting.%s", place, name, suggestSetting(name, settingNames()))
		}
		if earlier, twice := settings[name]; twice {
			return nil, badConfig("%s: %s is set already, in %s. Keep one of them.", place, name, earlier.from)
		}
		value, ok := scalar(pair[1])
		if !ok {
			return nil, badConfig("%s: %s: write a plain value, or a list of plain values.", place, name)
		}
		settings[name] = entry{value, place + ": " + name}
	}
	return settings, nil
}

// scalar is a value, or a list of values joined by commas.
func scalar(n *yaml.Node) (string, bool) {
	if n.Kind != yaml.SequenceNode {
		return n.Value, n.Kind == yaml.ScalarNode && n.Tag != "!!null"
	}
	var parts []string
	for _, item := range n.Content {
		part, ok := scalar(item)
		if !ok || item.Kind == yaml.SequenceNode {
			return "", false
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ","), true
}
