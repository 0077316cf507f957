package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/internal/strictjson"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/front"
)

type explainFlags struct {
	tenant, resource, context string
	version                   int64
	asJSON                    bool
}

func explainCommand() *cobra.Command {
	var f explainFlags
	cmd := onDatabase(withoutMigration(), &cobra.Command{
		Use: "explain WHO ACTION", Short: "Say why somebody may do something, or may not",
		Long: `Explain decides as a check does, and prints what has decided: role, key, policy or
tenant. WHO is an address, the id of a user, or the id of an API key. A user is
taken without a session, so policies that read authAge or aal find no value.`,
		Example: `  doorward explain ann@acme.example message.send
  doorward explain ann@acme.example message.send --context '{"ip": "192.0.2.7", "time": "2026-11-22T23:00:00Z"}'`,
		Args: twoArgs("WHO", "ACTION"),
	}, func(cmd *cobra.Command, n *node.Node, args []string) error {
		return f.explain(cmd, n, args[0], doorward.Action(args[1]))
	})
	cmd.Flags().StringVar(&f.tenant, "tenant", "", "`id` of the tenant, for people who are in several")
	cmd.Flags().StringVar(&f.resource, "resource", "", "what it is done to, as `JSON`: type, id, properties")
	cmd.Flags().StringVar(&f.context, "context", "", "the request, as `JSON`: ip, time, method, host, path")
	cmd.Flags().Int64Var(&f.version, "version", 0, "version of the policies to decide by, as if it were in force; 0: those in force now")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object, with the names of the API")
	return cmd
}

func (f *explainFlags) explain(cmd *cobra.Command, n *node.Node, who string, action doorward.Action) error {
	q, err := f.parseQuestion()
	if err != nil {
		return err
	}
	by := n.Operator()
	q.Action = action
	if strings.HasPrefix(who, "key_") {
		q.KeyID = who
	} else {
		u, err := findMembership(cmd, n, who, f.tenant)
		if err != nil {
			return err
		}
		q.UserID, by.TenantID = u.ID, u.TenantID
	}
	e, err := n.App.Policies.Explain(cmd.Context(), by, q)
	if doorward.HasCode(err, doorward.CodeValidationFailed) {
		return usageError("There is no action %s. \"doorward model show\" lists those of the platform.", action)
	}
	if err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(front.ViewExplanation(e))
	}
	writeExplanation(cmd.OutOrStdout(), who, action, e)
	return nil
}

func (f *explainFlags) parseQuestion() (q policy.Question, err error) {
	q.Version = f.version
	if f.resource != "" {
		r, err := strictjson.Decode[front.ExplainResource]([]byte(f.resource))
		if err != nil || r.Type == "" || r.ID == "" {
			return q, usageError("--resource must be like %s", `{"type": "invoice", "id": "17", "properties": {"amount": 12000}}`)
		}
		q.Resource = r.Object()
	}
	if f.context != "" {
		c, err := strictjson.Decode[front.ExplainContext]([]byte(f.context))
		if err != nil || c.Time != "" && c.Now != "" { // two names of one value
			return q, usageError("--context must be like %s", `{"ip": "192.0.2.7", "time": "2026-11-22T23:00:00Z"}`)
		}
		q.Context = c.Request()
	}
	return q, nil
}

func writeExplanation(out io.Writer, who string, action doorward.Action, e policy.Explanation) {
	verdict := "may not"
	if e.Allowed {
		verdict = "may"
	}
	fmt.Fprintf(out, "%s %s do %s.\n", who, verdict, action)
	for _, b := range e.Because {
		fmt.Fprint(out, "  ")
		if b.Platform {
			fmt.Fprint(out, "platform's ")
		}
		fmt.Fprintf(out, "%s %s", b.Kind, b.ID)
		if b.Line > 0 {
			fmt.Fprintf(out, ", line %d", b.Line)
		}
		if b.Reason != "" {
			fmt.Fprintf(out, ": %s", b.Reason)
		}
		fmt.Fprintln(out)
	}
}
