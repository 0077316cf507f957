package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/doorward/doorward"
)

const (
	tenantArg  = "TENANT-ID" // the argument of commands about one tenant, in Use
	tenantFlag = "tenant"
	seeTenants = "\"doorward tenant list\" shows all."
)

// checkTenantIDs has the commands that take a tenant say where its id is found, if they were given a name, or
// an id that no tenant has.
func checkTenantIDs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		checkTenantIDs(sub)
	}
	usage := strings.Fields(cmd.Use)
	takesArg := len(usage) > 1 && usage[1] == tenantArg
	if !takesArg && cmd.Flags().Lookup(tenantFlag) == nil {
		return
	}
	accepts, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := accepts(cmd, args); err != nil {
			return err
		}
		if takesArg {
			return checkTenantID("", args[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, id := range flaggedTenants(cmd.Flags()) {
			if err := checkTenantID("--"+tenantFlag+" ", id); err != nil {
				return err
			}
		}
		err := run(cmd, args)
		if e, _ := errors.AsType[*doorward.Error](err); takesArg && e != nil && e.Code == doorward.CodeNotFound {
			return doorward.Fail(doorward.CodeNotFound, "No tenant has the id %s. "+seeTenants, args[0])
		}
		return err
	}
}

// flaggedTenants returns what --tenant was given; commands about trails also take "installation".
func flaggedTenants(flags *pflag.FlagSet) []string {
	f := flags.Lookup(tenantFlag)
	switch {
	case f == nil || !f.Changed || f.Value.String() == "" || f.Value.String() == installation && strings.Contains(f.Usage, installation):
		return nil
	}
	if several, ok := f.Value.(pflag.SliceValue); ok {
		return several.GetSlice()
	}
	return []string{f.Value.String()}
}

func checkTenantID(place, id string) error {
	if strings.HasPrefix(id, doorward.PrefixTenant) {
		return nil
	}
	return usageError("%s", fmt.Sprintf("%s%q is not the id of a tenant, which begins with %s. ", place, id, doorward.PrefixTenant)+seeTenants)
}
