//go:build linux

package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/doorward/doorward/internal/waittest"
)

// historyModel is the model of the load. Only X decides whether depends.on.X is allowed.
const historyModel = `
actions:
  message.send: {roles: [OWNER, ADMIN, USER]}
  message.read: {roles: [OWNER, ADMIN, USER, VIEWER]}
  depends.on.model: {roles: %s}
  depends.on.policy: {roles: [OWNER, ADMIN, USER, VIEWER]}
  depends.on.role: {roles: [OWNER]}
`

// changeRules has the load change the model, a custom role and the tenant's policies, too.
// Call it before run.
func (l *load) changeRules(ctx context.Context) {
	l.t.Helper()
	l.history.rules = map[string]register{}
	rules := []string{byModel, byPolicy, byRole}
	for _, action := range rules {
		l.history.rules[action] = register{{mutation{succeeded: true}, granted}}
	}
	if err := l.applyModel(granted); err != nil {
		l.t.Fatal(err)
	}
	owner := l.loginOwner().token
	made := l.call(0, http.MethodPost, "/api/v2/roles", owner, map[string]any{"name": customRole, "permissions": permissions(granted)})
	var role struct{ ID string }
	if err := json.Unmarshal(made.body, &role); made.status != http.StatusCreated || err != nil {
		l.t.Fatalf("create a role: %d %s", made.status, made.body)
	}
	l.actions = append(l.actions, rules...)
	l.roles = append(l.roles, customRole)
	l.running.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			l.changeRule(rules[i%3], owner, role.ID)
			wait(ctx, 300*time.Millisecond)
		}
	})
}

// permissions returns the permissions of the custom role; byRole is among them only if the
// value is granted.
func permissions(value string) []string {
	all := []string{"message.read", "message.send", byModel, byPolicy}
	if value == granted {
		all = append(all, byRole)
	}
	return all
}

// applyModel runs the operator's command, with a model in which byModel has the value.
func (l *load) applyModel(value string) error {
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	roles := "[OWNER]"
	if value == granted {
		roles = "[OWNER, ADMIN, USER, VIEWER]"
	}
	apply := exec.CommandContext(ctx, l.program, "model", "apply", "-", "--database", l.dsn)
	apply.Stdin = strings.NewReader(fmt.Sprintf(historyModel, roles))
	return apply.Run()
}

// changeRule toggles an action between granted and refused.
func (l *load) changeRule(action, owner, roleID string) {
	written := l.history.rules[action] // only this goroutine writes it
	value := granted
	if written[len(written)-1].value == granted {
		value = refused
	}
	m, mayHaveChanged := l.setRule(action, value, owner, roleID)
	if !mayHaveChanged {
		return
	}
	l.mu.Lock()
	l.history.rules[action] = append(written, write{m, value})
	l.mu.Unlock()
	l.countSuccess(action, m.succeeded)
	for range 3 {
		if s := l.pickLive(); s != nil {
			l.onEveryNode(func(node int) { l.checkAction(node, s, action) })
		}
	}
}

// setRule makes the call that gives the action the value. mayHaveChanged is false if the
// call was refused.
func (l *load) setRule(action, value, owner, roleID string) (_ mutation, mayHaveChanged bool) {
	if action == byModel {
		during := span{from: l.now()}
		err := l.applyModel(value)
		during.to = l.now()
		return mutation{during, operatorNode, err == nil}, true
	}
	node, r := l.pickNode(), reply{}
	if action == byRole {
		r = l.call(node, http.MethodPatch, "/api/v2/roles/"+roleID, owner, map[string]any{"permissions": permissions(value)})
	} else {
		text := ""
		if value == refused {
			text = fmt.Sprintf(`@id("refuse") forbid(principal, action == Action::%q, resource);`, byPolicy)
		}
		r = l.call(node, http.MethodPut, "/api/v2/policy", owner, map[string]any{"text": text})
	}
	if r.status >= 400 && r.status < 500 {
		l.t.Errorf("%s: %d %s", action, r.status, r.body)
		return mutation{}, false
	}
	return mutation{r.span, node, r.status == http.StatusOK}, true
}
