package main

import (
	"github.com/spf13/cobra"
)

func ssoCommand() *cobra.Command {
	return group("sso", "Manage the sign-on of tenants' own", ssoListCommand())
}
