package provider

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// ReadForTest checks that the connection has all that a sign-in needs by what is to be tested, and reads what its provider
// says of itself. Errors: validation_failed for what the connection doesn't have yet, and those of ReadNow.
func (c *Client) ReadForTest(ctx context.Context, found doorward.Connection) error {
	parameters, isPending := found.ToTest()
	if found.Type == doorward.SAML {
		if _, _, err := c.ReadySAML(ctx, found.ID, isPending); err != nil || parameters.MetadataURL == "" {
			return err
		}
	} else {
		ready := Ready{Connection: found, Parameters: parameters}
		if err := ready.configure(ctx, c); err != nil {
			return err
		}
	}
	return c.readNow(ctx, access.System, found, parameters, isPending)
}

// ReadNow reads what the provider of the connection that is in force says of itself, for the caller, who must be allowed to
// change it. Errors: validation_failed for what it says, and where it can't be read at an address; too_many_attempts;
// provider_unavailable.
func (c *Client) ReadNow(ctx context.Context, by doorward.Caller, of doorward.Connection) error {
	switch {
	case of.Type == doorward.SCIMDirectory:
		return doorward.Invalid("/type", "invalid", "A connection of type scim has no provider to read.")
	case of.Type == doorward.SAML && of.InForce.MetadataURL == "":
		return doorward.Invalid("/metadataUrl", "required", "The metadata were given as a text. Enter their address, so that they can be read again.")
	case of.InForce.Issuer == "":
		return doorward.Invalid("/issuer", "required", "Enter the issuer first, as the provider writes it.")
	}
	return c.readNow(ctx, by, of, of.InForce, false)
}

// readNow reads what the provider says of itself, for somebody who waits for it. Errors: validation_failed for what it
// says; too_many_attempts; provider_unavailable; those of read.
func (c *Client) readNow(ctx context.Context, by doorward.Caller, found doorward.Connection, p doorward.ConnectionParameters, isPending bool) error {
	if err := c.countAsked(ctx, found.TenantID); err != nil {
		return err
	}
	_, err := c.read(ctx, by, store.KeptDiscovery{ConnectionID: found.ID, Type: found.Type, Pending: isPending, Issuer: p.Issuer, MetadataURL: p.MetadataURL})
	if isFault(err) && !isUnavailable(err) {
		return doorward.InvalidFields(fieldFault(err))
	}
	return unavailableTo(err)
}
