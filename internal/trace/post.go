package trace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// tracesPath is where a collector accepts spans
// (https://opentelemetry.io/docs/specs/otlp/#otlphttp-request).
const tracesPath = "/v1/traces"

// poster posts batches to a collector: the transport below OpenTelemetry's own exporter. It
// replaces the package otlptracehttp, which links gRPC into the program, reads environment
// variables meant for other programs, follows redirects with the secret header, and quotes
// answers in errors.
type poster struct {
	http    *http.Client
	url     string
	header  Header
	version string
}

func newPoster(o Options) *poster {
	address := strings.TrimSuffix(strings.TrimSuffix(o.Collector.String(), "/"), tracesPath) + tracesPath
	return &poster{url: address, header: o.Header, version: o.Version, http: &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Start implements otlptrace.Client.
func (p *poster) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (p *poster) Stop(context.Context) error {
	p.http.CloseIdleConnections()
	return nil
}

// The number of attempts for a batch, and the pause after the first, which doubles.
const (
	maxAttempts = 3
	firstPause  = time.Second
)

// UploadTraces posts a batch. TracesData has the same wire format as the OTLP request,
// as its definition promises.
func (p *poster) UploadTraces(ctx context.Context, spans []*wire.ResourceSpans) error {
	body, err := proto.Marshal(&wire.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		retry, err := p.post(ctx, body)
		if !retry || attempt == maxAttempts || !pause(ctx, firstPause<<(attempt-1)) {
			return err
		}
	}
}

// post sends body once. retry says whether another attempt may succeed
// (https://opentelemetry.io/docs/specs/otlp/#retryable-response-codes).
func (p *poster) post(ctx context.Context, body []byte) (retry bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "doorward/"+p.version)
	if p.header.Name != "" {
		req.Header.Set(p.header.Name, p.header.Value)
	}
	res, err := p.http.Do(req)
	if err != nil {
		return true, err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection can be used again
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		retry = true
	}
	return retry, fmt.Errorf("the collector answered %d", res.StatusCode)
}

// pause waits for the time, and reports whether it has passed before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
