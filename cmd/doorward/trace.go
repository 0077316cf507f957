package main

import (
	"net/textproto"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/node"
)

// readTrace quotes neither the header nor the URL, which may hold secrets.
func (s *settings) readTrace(cfg *node.Config) error {
	header, ok := parseHeader(s.raw.TraceHeader)
	switch {
	case s.raw.TraceHeader != "" && !ok:
		return s.refuse("trace-header", "write NAME: VALUE, as in Authorization: Bearer and the token.")
	case s.raw.TraceOTLP == "" && s.raw.TraceHeader != "":
		return badConfig("%s is set, and %s is not, so it would be sent nowhere. Set both.", s.origins.place("trace-header"), s.origins.place("trace-otlp"))
	case s.raw.TraceOTLP == "":
		return nil
	}
	u, err := url.Parse(s.raw.TraceOTLP)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return s.refuse("trace-otlp", "write the address of a collector, for example http://localhost:4318.")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return s.refuse("trace-otlp", "it may have a host and a path, nothing else; what authenticates is for --trace-header.")
	}
	cfg.Trace.Collector, cfg.Trace.Header = u, header
	return nil
}

// parseHeader reads "Name: value" (RFC 9110, section 5.1).
func parseHeader(line string) (h trace.Header, ok bool) {
	name, value, found := strings.Cut(line, ":")
	h = trace.Header{Name: textproto.CanonicalMIMEHeaderKey(name), Value: strings.Trim(value, " \t")}
	return h, found && httpguts.ValidHeaderFieldName(name) && h.Value != "" && httpguts.ValidHeaderFieldValue(h.Value)
}
