package main

import (
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/text/language"

	"github.com/doorward/doorward/internal/texts"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web"
)

func textsCommand() *cobra.Command {
	return group("texts", "Print the texts of pages and mails", textsListCommand())
}

func textsListCommand() *cobra.Command {
	s, tag := newSettings(), "en"
	cmd := &cobra.Command{
		Use: "list", Short: "Print all texts of pages and mails in a language, as YAML",
		Long: `List prints the texts in the form of a file for --texts, by section: those that all
pages share, of the pages for people (hosted), of the console, of your platform's own
actions if the file has some, and of mails. Of a language that isn't built in it prints
the English texts, with the plural forms that the language needs, to be translated.

A file for --texts needs only the texts that differ from the built-in ones; but a language
that isn't built in must be whole, and has a name and a direction, ltr or rtl.`,
		Example: "  doorward texts list --language de\n  doorward texts list --language fr > texts.yaml",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if parsed, err := language.Parse(tag); err != nil || parsed.String() != tag {
				return usageError("--language %q is no language tag such as fr or pt-BR.", tag)
			}
			cfg, err := s.read(cmd)
			if err != nil {
				return err
			}
			return web.ListTexts(cmd.OutOrStdout(), cfg.Texts, tag)
		},
	}
	cmd.Flags().StringVar(&tag, "language", tag, "`TAG` of the language")
	s.register(cmd.Flags(), node.GroupFile, node.GroupTexts)
	return cmd
}

// readTexts reads and checks the file of texts.
func (s *settings) readTexts(cfg *node.Config) error {
	if s.raw.Texts == "" {
		return nil
	}
	source, err := os.ReadFile(s.raw.Texts)
	if err != nil {
		return s.refuse("texts", "%s", describeUnreadable(s.raw.Texts, err))
	}
	if cfg.Texts, err = texts.Parse(source); err == nil {
		err = web.CheckTexts(cfg.Texts)
	}
	if err != nil {
		return s.refuseValue("texts", s.raw.Texts, "%s", plain(err))
	}
	return nil
}
