package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/doorward/doorward/internal/secretfile"
	"github.com/doorward/doorward/node"
)

// secrets are the settings whose value may be in a separate file. The variable with
// _FILE, or the name with -file in the YAML file, names that file.
var secrets = namesOf(func(d node.Setting) bool { return d.Secret })

// fileNames are the names that the YAML file may use.
func fileNames() []string {
	names := slices.DeleteFunc(slices.Clone(settingNames()), func(name string) bool { return name == "config" })
	for _, name := range secrets {
		names = append(names, name+"-file")
	}
	return names
}

// origins says where each setting that was not typed as a flag came from, so
// that an error about it names the place to correct.
type origins map[string]string

// place returns where the setting was set: the flag, the variable, or the line of the
// file. For a setting that was not set it returns the flag.
func (o origins) place(name string) string {
	if origin, ok := o[name]; ok {
		return origin
	}
	return "--" + name
}

// entry is a value and where it was found.
type entry struct {
	value, origin string
	isPath        bool // value names the file that holds it
}

// read returns the value itself. The file of a setting that is overridden, or that the
// command doesn't use, is never opened: the user may have no right to read it.
func (e entry) read() (string, error) {
	if !e.isPath {
		return e.value, nil
	}
	text, err := secretfile.Read(e.value)
	if err != nil {
		return "", badConfig("%s: %s", e.origin, describeUnreadable(e.value, err))
	}
	value := strings.TrimSpace(string(text))
	if value == "" {
		return "", badConfig("%s: the file %s is empty.", e.origin, e.value)
	}
	return value, nil
}

// resolve gives every flag of the command that was not typed its value from the
// environment, or else the file. An unknown name is refused: a misspelt setting would
// silently have no effect. The error has a line for each fault; a setting with a fault keeps
// its default. The origins are nil if the file can't be read.
func resolve(cmd *cobra.Command) (origins, error) {
	faults := []error{checkEnvironment(os.Environ())}
	found, flags := origins{}, cmd.Flags()
	config := flags.Lookup("config")
	if err := found.set(flags, config, nil); err != nil {
		return nil, joinFaults(append(faults, err)...)
	}
	file, err := readConfigFile(config.Value.String())
	if err != nil && file == nil {
		return nil, joinFaults(append(faults, err)...)
	}
	faults = append(faults, err)
	flags.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(settingNames(), f.Name) {
			faults = append(faults, found.set(flags, f, file))
		}
	})
	return found, joinFaults(faults...)
}

// joinFaults returns an error with a line for each fault, so that all can be corrected at once; nil
// if all are nil.
func joinFaults(faults ...error) error {
	var lines []string
	for _, err := range faults {
		if err != nil {
			lines = append(lines, plain(err))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return badConfig("%s", strings.Join(lines, "\n"))
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
	o[f.Name] = found.origin
	value, err := found.read()
	if err != nil {
		return err
	}
	before := f.Value.String()
	if err := flags.Set(f.Name, value); err != nil {
		if f.Value.String() != before { // package pflag writes a zero
			_ = f.Value.Set(before)
		}
		return badConfig("%s %q: %s", found.origin, value, expectedFormat(f))
	}
	return nil
}

func variable(name string) string {
	return "DOORWARD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// fromEnvironment returns the value of the variable, or for a secret the path in the one
// with _FILE; false if neither is set. Both at once are an error.
func fromEnvironment(name string) (entry, bool, error) {
	value, set := os.LookupEnv(variable(name))
	path, inFile := os.LookupEnv(variable(name) + "_FILE")
	switch {
	case !inFile || !slices.Contains(secrets, name):
		return entry{value: value, origin: variable(name)}, set, nil
	case set:
		return entry{}, false, badConfig("%s and %[1]s_FILE are both set. Keep one of them.", variable(name))
	}
	return entry{value: path, origin: variable(name) + "_FILE", isPath: true}, true, nil
}

// describeUnreadable returns why a file can't be read, and what to do.
func describeUnreadable(path string, err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no file " + path + "."
	}
	if exposed := (*secretfile.ExposedError)(nil); errors.As(err, &exposed) {
		return exposed.Error()
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return fmt.Sprintf("the file %s can't be read: %v.", path, err)
}

// checkEnvironment refuses variables beginning with DOORWARD_ that are not settings.
func checkEnvironment(environ []string) error {
	known := []string{"DOORWARD_BIN"} // this program, for the kits of clients that start it in tests
	for _, name := range settingNames() {
		known = append(known, variable(name))
		if slices.Contains(secrets, name) {
			known = append(known, variable(name)+"_FILE")
		}
	}
	var faults []error
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		isOurs := strings.HasPrefix(name, "DOORWARD_") && !strings.HasPrefix(name, "DOORWARD_TEST_")
		if isOurs && !slices.Contains(known, name) && !serviceLink.MatchString(pair) {
			faults = append(faults, badConfig("the environment sets %s, which is not a setting.%s", name, suggestSetting(name, known)))
		}
	}
	return joinFaults(faults...)
}

// serviceLink matches what Kubernetes sets in every pod about a service that is called doorward, or
// doorward-…, with or without a port: for compatibility with Docker's links.
var serviceLink = regexp.MustCompile(`^DOORWARD(_[A-Z0-9_]+)?_(SERVICE_HOST=.*|SERVICE_PORT(_[A-Z0-9_]+)?=[0-9]+|PORT=(tcp|udp|sctp)://.*|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?=.*)$`)

// findServiceLink returns the name of a variable about a service of Kubernetes; empty: there is none.
func findServiceLink(environ []string) string {
	for _, pair := range environ {
		if serviceLink.MatchString(pair) {
			name, _, _ := strings.Cut(pair, "=")
			return name
		}
	}
	return ""
}

func suggestSetting(name string, known []string) string {
	if hint := suggest(name, known); hint != "" {
		return hint
	}
	return "\n  \"doorward serve --help\" lists the settings."
}

// readConfigFile reads the YAML file of --config: one level of names, each a flag
// without the leading dashes, or a secret's with -file appended. With faults of some lines
// it returns the settings of the others; without a file that can be read, nil.
func readConfigFile(path string) (map[string]entry, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, badConfig("--config: %s", describeUnreadable(path, err))
	}
	var doc, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF): // nothing but comments
		return nil, nil
	case err != nil:
		return nil, badConfig("%s is not valid YAML: %s.", path, strings.TrimPrefix(err.Error(), "yaml: "))
	case !errors.Is(decoder.Decode(&second), io.EOF):
		return nil, badConfig("%s: a line --- begins a second document. Remove it: all settings belong to one.", path)
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return nil, badConfig("%s: write one setting per line, as in \"listen: localhost:8080\".", path)
	}
	return readSettings(path, doc.Content[0].Content)
}

// exposedSecret returns a warning if the YAML file holds a secret and others can read it,
// else "". A file that holds only a secret is refused instead; this one holds other
// settings too.
func exposedSecret(path string) string {
	settings, _ := readConfigFile(path) // resolve has reported its faults
	for _, name := range secrets {
		e, set := settings[name]
		if !set || e.isPath || !holdsPassword(name, e.value) {
			continue
		}
		if err := secretfile.Check(path); err != nil {
			return fmt.Sprintf("%s: %s, or put the secret into a separate file and name that in %s-file", e.origin, describeUnreadable(path, err), name)
		}
	}
	return ""
}

// holdsPassword reports whether mask hides a part of the value. It is false for a value that
// can't be parsed.
func holdsPassword(name, value string) bool {
	shown := mask(name, value)
	return shown != value && shown != masked
}

// readSettings returns the settings in nodes, which are names and values alternately.
func readSettings(path string, nodes []*yaml.Node) (map[string]entry, error) {
	settings, faults := map[string]entry{}, []error(nil)
	for pair := range slices.Chunk(nodes, 2) {
		faults = append(faults, readSetting(settings, fmt.Sprintf("%s line %d", path, pair[0].Line), pair[0].Value, pair[1]))
	}
	return settings, joinFaults(faults...)
}

// readSetting adds the setting of one line, which is at the place.
func readSetting(settings map[string]entry, place, written string, node *yaml.Node) error {
	if !slices.Contains(fileNames(), written) {
		return badConfig("%s: %q is not a setting.%s", place, written, suggestSetting(written, fileNames()))
	}
	name, isPath := written, false
	if !slices.Contains(settingNames(), written) { // master-key-file is a setting itself
		name, isPath = strings.CutSuffix(written, "-file")
	}
	if earlier, twice := settings[name]; twice {
		return badConfig("%s: %s is already set, in %s. Keep one of them.", place, name, earlier.origin)
	}
	value, ok := scalar(node)
	if !ok {
		return badConfig("%s: %s: write a plain value, or a list of plain values.", place, written)
	}
	settings[name] = entry{value, place + ": " + written, isPath}
	return nil
}

// scalar returns a plain value, or the plain values of a list joined by commas; false for
// anything else.
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
