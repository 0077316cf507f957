package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/node"
)

func auditCommand() *cobra.Command {
	return group("audit", "Verify, search and export the audit trail, or show it in a browser", showingProgress(auditVerifyCommand()), showingProgress(auditExportCommand()), auditSearchCommand(), recording(auditLinkCommand()), recording(auditEndLinksCommand()))
}

func auditVerifyCommand() *cobra.Command {
	var tenant, since string
	cmd := onDatabase(withoutMigration(), &cobra.Command{
		Use:   "verify",
		Short: "Check that no event was edited, deleted or moved",
		Long: `Verify walks the chain of every tenant and of the installation and compares every
hash. It prints a line for each intact chain: its tenant, the number of its last
event and its hash. Faults go to stderr, and the exit code is 1.

Somebody who can write to the database can recompute an entire chain, or cut off its
end. Keep verify's output where they can't write, and pass it with --since: verify
then also checks that each of its lines still matches the trail.`,
		Example: "  doorward audit verify\n  doorward audit verify --since yesterday.txt > today.txt", Args: noArgs,
	}, func(cmd *cobra.Command, n *node.Node, _ []string) error {
		v := verification{ctx: cmd.Context(), trail: n.App.Audit, out: cmd.OutOrStdout(), faults: cmd.ErrOrStderr()}
		return v.run(tenant, since)
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "`id` of the only tenant to check, or \""+installation+"\"")
	cmd.Flags().StringVar(&since, "since", "", "`file` with an earlier output of this command")
	_ = cmd.MarkFlagFilename("since") // fails only for an unknown flag
	return cmd
}

// installation is the name of the installation's own chain.
const installation = "installation"

func chainName(tenantID string) string {
	if tenantID == "" {
		return installation
	}
	return tenantID
}

// verification is one run of verify.
type verification struct {
	ctx         context.Context
	trail       *audit.Trail
	out, faults io.Writer
	reported    int // number of faults
}

func (v *verification) run(tenant, since string) error {
	marks, err := readMarks(since)
	if err != nil {
		return err
	}
	scope := audit.Scope{TenantID: strings.TrimPrefix(tenant, installation), All: tenant == ""} // the installation's id is empty
	chains := []string{scope.TenantID}
	if scope.All {
		if chains, err = v.trail.Chains(v.ctx); err != nil {
			return err
		}
	}
	if err := v.trail.Begin(v.ctx, audit.Verifying, scope); err != nil {
		return err
	}
	for _, id := range chains {
		err := v.checkChain(id)
		if tenant == "" && doorward.HasCode(err, doorward.CodeNotFound) { // it has since been destroyed
			continue
		}
		if err != nil {
			return err
		}
	}
	for _, m := range marks {
		if tenant == "" || m.TenantID == chains[0] {
			if err := v.checkMark(m); err != nil {
				return err
			}
		}
	}
	if v.reported > 0 {
		return errors.New("the audit trail doesn't verify: it was tampered with or damaged, or an older backup was restored. docs/audit.md says what to do")
	}
	return nil
}

func (v *verification) checkChain(id string) error {
	end, faults, err := v.trail.Verify(v.ctx, id)
	if err != nil {
		return err
	}
	for _, f := range faults {
		v.report(id, f)
	}
	if len(faults) == 0 {
		fmt.Fprintf(v.out, "%s %d %x\n", chainName(id), end.Seq, end.Hash)
	}
	return nil
}

func (v *verification) checkMark(m audit.Mark) error {
	holds, err := v.trail.ContainsMark(v.ctx, m)
	if err == nil && !holds {
		v.report(m.TenantID, audit.Fault{Kind: audit.Rewritten, Seq: m.Seq})
	}
	return err
}

// meanings describe each kind of fault to the operator.
var meanings = map[audit.FaultKind]string{
	audit.Edited:    "is not what was written, or was never written by Doorward",
	audit.Reordered: "is genuine, but was moved here from another place",
	audit.Deleted:   "is missing, and perhaps more after it",
	audit.Inserted:  "was added to the database by somebody else",
	audit.CutOff:    "is the last event, but was not the last one written: later events are missing, or the recorded end was edited",
	audit.Rewritten: "is not what it was when the line in the file was printed: the chain was recomputed, cut off or removed, or an older backup was restored",
}

func (v *verification) report(id string, f audit.Fault) {
	v.reported++
	event := fmt.Sprintf("event %d", f.Seq)
	if f.EventID != "" {
		event += " (" + f.EventID + ")"
	}
	fmt.Fprintf(v.faults, "%s: %s: %s %s.\n", chainName(id), f.Kind, event, meanings[f.Kind])
}

// readMarks reads an earlier output of verify; without a file it returns none.
func readMarks(file string) (marks []audit.Mark, err error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, usageError("--since: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		m, err := parseMark(lines.Text())
		if err != nil {
			return nil, usageError("--since: %s: %q is not a line that \"doorward audit verify\" has printed.", file, lines.Text())
		}
		marks = append(marks, m)
	}
	return marks, lines.Err()
}

func parseMark(line string) (m audit.Mark, err error) {
	parts := strings.Split(line, " ")
	if len(parts) != 3 {
		return m, errors.New("not three words")
	}
	m.TenantID = strings.TrimPrefix(parts[0], installation)
	if m.Seq, err = strconv.ParseInt(parts[1], 10, 64); err != nil {
		return m, err
	}
	m.Hash, err = hex.DecodeString(parts[2])
	return m, err
}
